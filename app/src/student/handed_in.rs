//! What was handed in: the submission that is shown whole, and the list of all.

use domain::view::{AttemptView, SubmissionView};
use leptos::prelude::*;

use super::machine::Machine;
use crate::{
    components::At,
    device,
    text::{fill, grouped, words},
};

/// Everything that was handed in for this task, when there is more than what stands above.
#[component]
pub(super) fn Attempts(
    machine: Machine,
    client_id: String,
    task_id: String,
    practice: bool,
) -> impl IntoView {
    let words = words();
    let title = if practice {
        words.attempts_title
    } else {
        words.versions_title
    };
    let many = move || machine.attempts.with(|attempts| attempts.len() > 1);
    view! {
        <section class="attempts" hidden=move || !many()>
            <h2>{title}</h2>
            <ol class="task-list">
                <For
                    each=move || machine.attempts.get()
                    key=|attempt| (attempt.id.clone(), attempt.points)
                    let:attempt
                >
                    <AttemptRow href=format!("/tasks/{task_id}?attempt={}", attempt.id) attempt=attempt own=client_id.clone() practice=practice/>
                </For>
            </ol>
        </section>
    }
}

/// One submission in a list of them.
#[component]
pub(crate) fn AttemptRow(
    attempt: AttemptView,
    href: String,
    own: String,
    practice: bool,
) -> impl IntoView {
    let words = words();
    let n = if practice {
        words.attempt
    } else {
        words.version
    };
    let n = fill(n, &[("n", &attempt.submit_version.to_string())]);
    let from = device::place(words, attempt.client_id.as_deref(), &own);
    let points = (attempt.points != 0).then(|| {
        let text = fill(words.points_earned, &[("n", &grouped(attempt.points))]);
        view! { <span class="number">{text}</span> }
    });
    view! {
        <li class="task-row">
            <a class="task-link" href=href rel="external">{n}</a>
            <span class="task-facts"><At at=attempt.created_at/> <span>{from}</span> {points}</span>
            <span class="excerpt">{attempt.excerpt}</span>
        </li>
    }
}

/// One submission, whole.
#[component]
pub(super) fn Submitted(
    submission: SubmissionView,
    current: bool,
    practice: bool,
) -> impl IntoView {
    let words = words();
    let title = match (current, practice) {
        (true, _) => words.submitted_current.to_owned(),
        (false, true) => fill(
            words.attempt,
            &[("n", &submission.submit_version.to_string())],
        ),
        (false, false) => words.submitted_last.to_owned(),
    };
    view! {
        <section class="submitted">
            <h2>{title}</h2>
            // Of what counts now the line above says when.
            {(!current).then(|| view! { <p class="task-facts"><At at=submission.created_at focus=true/></p> })}
            <div class="content">{submission.content}</div>
        </section>
    }
}
