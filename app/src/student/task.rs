//! One task: its text, the editor, the one button, and the line that says where the submission stands.

use domain::{
    RecordState,
    action::TaskKind,
    phase::Phase,
    view::{AttemptView, SubmissionView, TaskStatus},
};
use leptos::{ev, html, prelude::*};
use leptos_router::hooks::{use_params_map, use_query_map};

use super::{
    api::{Asked, TaskPage, load_task},
    list::{TaskFacts, row_key},
    machine::{Hurdle, Machine},
};
use crate::{
    components::{At, PageHead, Shape, Skeleton, TaskBadge, fault_view, icon},
    device, path,
    text::{fill, grouped, words},
};

/// `/tasks/{id}`.
#[component]
pub(crate) fn TaskDetailPage() -> impl IntoView {
    let (params, query) = (use_params_map(), use_query_map());
    let task_id = Memo::new(move |_| params.read().get("id").unwrap_or_default());
    // What a form without JavaScript left in the address; later moves of this page do not depend on it.
    let request = query.read_untracked().get("request");
    let refused = query.read_untracked().get("refused");
    let attempt = query.read_untracked().get("attempt");
    let page = Resource::new(
        move || task_id.get(),
        move |id| load_task(id, request.clone(), attempt.clone()),
    );
    view! {
        <div class="page page-narrow">
            <p class="crumb"><a href="/tasks">"← " {words().back_to_tasks}</a></p>
            <Suspense fallback=|| view! { <Skeleton lines=10/> }>
                {move || {
                    let refused = refused.clone();
                    Suspend::new(async move {
                        match page.await {
                            Ok(page) => view! { <Task page=page refused=refused/> }.into_any(),
                            Err(fault) => fault_view(fault),
                        }
                    })
                }}
            </Suspense>
        </div>
    }
}

#[component]
fn Task(page: TaskPage, refused: Option<String>) -> impl IntoView {
    let words = words();
    let practice = page.task.kind == TaskKind::Practice;
    let machine = Machine::new(&page);
    machine.start();

    let done = Memo::new(move |_| machine.is_done());
    let badge = move || match machine.task.with(|task| task.status) {
        _ if done.get() => TaskStatus::Submitted,
        status => status,
    };
    let attempt = move || {
        practice.then(|| {
            let n = machine
                .intent
                .with(|intent| intent.submit_version)
                .to_string();
            view! { <span>{fill(words.attempt, &[("n", &n)])}</span> }
        })
    };
    let facts = Memo::new(move |_| machine.task.with(row_key));
    let (client_id, task_id) = (page.client_id.clone(), page.task.id.clone());
    let shown = page.shown.clone();
    view! {
        <PageHead title=page.task.title.clone()>
            {move || view! { <TaskBadge status=badge()/> }}
        </PageHead>
        <p class="task-facts">
            {move || {
                facts.track();
                view! { <TaskFacts task=machine.task.get_untracked()/> }
            }}
            {attempt}
        </p>
        <div class="instructions">{page.task.instructions.clone()}</div>
        <Answer page=page refused=refused machine=machine done=done/>
        {move || {
            let current = done.get() && !practice;
            // What was just handed in comes before what the address asked for.
            let sent = machine.intent.with(|intent| intent.phase == Phase::Submitted);
            let shown = shown.clone().filter(|_| !sent).or_else(|| machine.submission.get());
            shown.map(|submission| view! { <Submitted submission=submission current=current practice=practice/> })
        }}
        <Attempts machine=machine client_id=client_id task_id=task_id practice=practice/>
    }
}

/// Everything that was handed in for this task, when there is more than what stands above.
#[component]
fn Attempts(machine: Machine, client_id: String, task_id: String, practice: bool) -> impl IntoView {
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

/// The form: plain HTML that works as it is; a script takes over once it runs.
#[component]
fn Answer(
    page: TaskPage,
    refused: Option<String>,
    machine: Machine,
    done: Memo<bool>,
) -> impl IntoView {
    let words = words();
    let area = NodeRef::<html::Textarea>::new();
    let (blank, drafted) = (RwSignal::new(false), RwSignal::new(false));
    let typed_here = StoredValue::new(false);
    let practice = page.task.kind == TaskKind::Practice;
    let holds_text = RwSignal::new(false);
    // Handed in before this page was loaded: there is nothing to write, unless this device still holds something that was not sent.
    let was_settled = machine.is_settled();
    let at_rest = Memo::new(move |_| was_settled && done.get() && !holds_text.get());
    let locked = Memo::new(move |_| machine.intent.with(|intent| !intent.is_open()));
    let signed_out = Memo::new(move |_| machine.hurdle.get() == Some(Hurdle::SignedOut));

    // Text that was typed here is never overwritten, neither by a draft nor by what another tab sent.
    Effect::new(move || {
        let Some(area) = area.get() else { return };
        let sent = machine
            .intent
            .with(|intent| (!intent.is_open()).then(|| intent.content.clone()));
        match sent {
            Some(_) if typed_here.get_value() && !area.value().is_empty() => {}
            Some(sent) => area.set_value(&sent),
            None if area.value().is_empty() => {
                let submitted = machine
                    .submission
                    .with_untracked(|s| s.as_ref().map(|s| s.content.clone()));
                match machine.shelf().draft() {
                    // Another device has handed in the same.
                    Some(draft) if Some(&draft) == submitted.as_ref() => {
                        machine.shelf().forget_draft(&draft)
                    }
                    Some(draft) => {
                        area.set_value(&draft);
                        drafted.set(true);
                    }
                    None => {}
                }
            }
            None => {}
        }
        holds_text.set(!area.value().is_empty());
    });
    // What stands here is what was handed in elsewhere: then it is simply done.
    Effect::new(move || {
        let submitted = machine
            .submission
            .with(|s| s.as_ref().map(|s| s.content.clone()));
        let (Some(area), Some(submitted)) = (area.get(), submitted) else {
            return;
        };
        if done.get() && area.value() == submitted {
            drafted.set(false);
            machine.shelf().forget_draft(&submitted);
        }
    });
    let typed = move |_| {
        let Some(area) = area.get_untracked() else {
            return;
        };
        let text = area.value();
        blank.set(false);
        typed_here.set_value(true);
        drafted.set(!text.is_empty());
        machine.shelf().keep_draft(&text);
    };
    let press = move || {
        let Some(area) = area.get_untracked() else {
            return;
        };
        let content = area.value();
        if content.trim().is_empty() {
            blank.set(true);
            return;
        }
        machine.press(content);
    };
    let again = format!("/tasks/{}", page.task.id);
    let spent = move || done.get() && !practice;
    let submit = move |event: ev::SubmitEvent| {
        event.prevent_default();
        match (done.get_untracked(), practice) {
            (false, _) => press(),
            // A new page gives the next attempt's number; the answer to leaving is that nobody is here to hear of a failure.
            (true, true) => drop(window().location().assign(&again)),
            (true, false) => {}
        }
    };
    // The second half of a slow double click meant the button as it was at the first.
    let click = move |event: ev::MouseEvent| {
        if event.detail() > 1 || signed_out.get_untracked() {
            event.prevent_default();
        }
    };
    let shortcut = move |event: ev::KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            if !event.repeat() && !done.get_untracked() {
                press();
            }
        }
    };
    let unknown = Memo::new(move |_| machine.intent.with(|intent| intent.phase == Phase::Unknown));
    let label = move || match (done.get(), practice) {
        (true, true) => words.next_attempt,
        (false, _) if unknown.get() && !signed_out.get() => words.submit_retry,
        _ => words.submit,
    };
    let disabled = move || (spent() || signed_out.get()).then_some("true");
    let (task_id, version) = (page.task.id.clone(), page.task.submit_version);
    view! {
        <form class="answer" class:is-done=move || done.get() method="post" action="/api/fn/submit_task" on:submit=submit>
            <input type="hidden" name="task_id" value=task_id/>
            <input type="hidden" name="submit_version" value=version/>
            <input type="hidden" name="client_id" value=page.client_id/>
            <input type="hidden" name="key" value=page.key/>
            <div class="editor" hidden=move || at_rest.get()>
                <label for="content">{words.your_answer}</label>
                <textarea
                    id="content" name="content" rows="10" required=move || !done.get() node_ref=area
                    readonly=move || locked.get() on:input=typed on:keydown=shortcut
                ></textarea>
            </div>
            <div class="actions">
                <button class="primary" hidden=move || at_rest.get() on:click=click aria-disabled=disabled>{label}</button>
                <p class="phase" role="status" aria-live="polite">
                    <PhaseLine machine=machine done=done asked=page.asked refused=refused blank=blank drafted=drafted/>
                </p>
            </div>
        </form>
    }
}

/// Where the submission stands, in one line.
#[component]
fn PhaseLine(
    machine: Machine,
    done: Memo<bool>,
    asked: Option<Asked>,
    refused: Option<String>,
    blank: RwSignal<bool>,
    drafted: RwSignal<bool>,
) -> impl IntoView {
    let words = words();
    let phase = Memo::new(move |_| machine.intent.with(|intent| intent.phase.clone()));
    // Before anything else that a form without a script can be told: its own text did not go in.
    let asked_refusal = asked
        .as_ref()
        .and_then(|asked| asked.status.as_ref())
        .filter(|status| status.state == RecordState::FailedFinal)
        .and_then(|status| status.code.clone());
    let (asked, refused) = (StoredValue::new(asked), StoredValue::new(refused));
    move || {
        if machine.hurdle.get() == Some(Hurdle::SignedOut) {
            return view! { <span class="phase-refused">{icon(Shape::BarredSquare)} <span>{words.phase_signed_out} " " <a href=machine.task.with(|task| path::sign_in(&format!("/tasks/{}", task.id))) rel="external">{words.sign_in}</a></span></span> }.into_any();
        }
        match phase.get() {
            Phase::Submitting => {
                view! { <span class="phase-submitting">{icon(Shape::HalfRing)} {words.phase_submitting}</span> }.into_any()
            }
            Phase::Unknown => {
                let offline = machine.hurdle.get() == Some(Hurdle::Offline);
                let text = if offline {
                    words.phase_offline
                } else {
                    words.phase_unknown
                };
                view! { <span class="phase-unknown">{icon(Shape::Question)} {text}</span> }.into_any()
            }
            Phase::Refused { code } => refusal_line(machine, &code),
            Phase::Submitted => done_line(machine),
            Phase::Idle if asked_refusal.is_some() && !drafted.get() => {
                refusal_line(machine, asked_refusal.as_deref().unwrap_or_default())
            }
            Phase::Idle if machine.notice.with(Option::is_some) => {
                refusal_line(machine, &machine.notice.get().unwrap_or_default())
            }
            // What was typed here and is not what counts is said to be that.
            Phase::Idle if done.get() && drafted.get() => refusal_line(machine, "already-submitted"),
            Phase::Idle if done.get() => done_line(machine),
            Phase::Idle if blank.get() => {
                view! { <span class="phase-refused">{icon(Shape::BarredSquare)} {words.phase_blank}</span> }.into_any()
            }
            Phase::Idle => match (asked.get_value(), refused.get_value()) {
                _ if drafted.get() => {
                    view! { <span class="quiet">{words.phase_draft}</span> }.into_any()
                }
                (Some(asked), _) => asked_line(asked),
                (None, Some(code)) => {
                    view! { <span class="phase-refused">{icon(Shape::BarredSquare)} {words.refusal(&code)}</span> }.into_any()
                }
                (None, None) => view! { <span class="quiet">{words.phase_idle}</span> }.into_any(),
            },
        }
    }
}

/// When and from where it was submitted, and what it earned.
fn done_line(machine: Machine) -> AnyView {
    let words = words();
    let points = machine
        .attempts
        .with(|attempts| attempts.first().map_or(0, |attempt| attempt.points));
    let points = (points != 0).then(|| {
        let text = fill(words.points_earned, &[("n", &grouped(points))]);
        view! { " · " <span class="number">{text}</span> }
    });
    view! {
        <span class="phase-submitted">
            {icon(Shape::Check)}
            <span>{words.phase_submitted} " " {origin(machine)} {points}</span>
        </span>
    }
    .into_any()
}

/// Why it was refused; when another submission counts, also when and from where that came.
fn refusal_line(machine: Machine, code: &str) -> AnyView {
    let words = words();
    let practice = machine.task.with(|task| task.kind == TaskKind::Practice);
    let text = if practice && code == "already-submitted" {
        words.refused_attempt_taken
    } else {
        words.refusal(code)
    };
    let first = (code == "already-submitted").then(|| origin(machine));
    view! {
        <span class="phase-refused">
            {icon(Shape::BarredSquare)}
            <span>{text} {first.map(|first| view! { " (" {first} ")" })}</span>
        </span>
    }
    .into_any()
}

/// When the submission that counts was written, and from where.
fn origin(machine: Machine) -> AnyView {
    let words = words();
    let Some(at) = machine
        .submission
        .with(|s| s.as_ref().map(|s| s.created_at.clone()))
    else {
        return ().into_any();
    };
    // The list is read after the submission; until then nothing is said of the device.
    let from = machine.attempts.with(|attempts| {
        let newest = attempts.iter().find(|attempt| attempt.created_at == at)?;
        let own = machine.intent.with(|intent| intent.client_id.clone());
        Some(device::place(words, newest.client_id.as_deref(), &own))
    });
    view! { <At at=at today=true/> {from.map(|from| view! { " · " <span>{from}</span> })} }
        .into_any()
}

/// What became of the request of a form that no script sent.
fn asked_line(asked: Asked) -> AnyView {
    let words = words();
    let (class, shape, text, pending) = match asked.status.map(|s| (s.state, s.code)) {
        None => (
            "phase-refused",
            Shape::BarredSquare,
            words.plain_missing,
            false,
        ),
        Some((RecordState::Succeeded, _)) => (
            "phase-submitted",
            Shape::Check,
            words.phase_submitted,
            false,
        ),
        Some((RecordState::FailedFinal, code)) => (
            "phase-refused",
            Shape::BarredSquare,
            words.refusal(code.as_deref().unwrap_or_default()),
            false,
        ),
        Some((RecordState::FailedRetryable, _)) => {
            ("phase-unknown", Shape::RoundArrow, words.plain_again, false)
        }
        Some((RecordState::Processing | RecordState::Unknown, _)) => (
            "phase-unknown",
            Shape::HalfRing,
            words.plain_processing,
            true,
        ),
    };
    let look = pending.then(|| view! { " " <a href="" rel="external">{words.plain_check}</a> });
    view! { <span class=class>{icon(shape)} <span>{text} {look}</span></span> }.into_any()
}

#[component]
fn Submitted(submission: SubmissionView, current: bool, practice: bool) -> impl IntoView {
    let words = words();
    let title = match (current, practice) {
        (true, _) => words.your_answer.to_owned(),
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
