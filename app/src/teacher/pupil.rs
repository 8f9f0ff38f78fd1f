//! One student, and one task of one student: what was handed in, and reopening it.

use std::time::Duration;

use domain::{
    action::TaskKind,
    view::{PupilTask, StudentView, TaskStatus, TaskView},
};
use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

use super::api::{load_pupil, load_pupil_task};
use crate::{
    components::{Ago, At, Empty, PageHead, Skeleton, TaskBadge, fault_view},
    live::{Freshness, Watched},
    student::{AttemptRow, TaskFacts, row_key},
    text::{fill, words},
};

/// How often what a student has done is read again.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// `/progress/students/{id}`.
#[component]
pub(crate) fn PupilPage() -> impl IntoView {
    let params = use_params_map();
    let student_id = Memo::new(move |_| params.read().get("student").unwrap_or_default());
    let pupil = Resource::new(move || student_id.get(), load_pupil);
    view! {
        <div class="page page-narrow">
            <p class="crumb"><a href="/progress">"← " {words().progress_title}</a></p>
            <Suspense fallback=|| view! { <Skeleton lines=6/> }>
                {move || Suspend::new(async move {
                    match pupil.await {
                        Ok(pupil) => view! { <Pupil first=pupil/> }.into_any(),
                        Err(fault) => fault_view(fault),
                    }
                })}
            </Suspense>
        </div>
    }
}

#[component]
fn Pupil(first: (StudentView, Vec<TaskView>)) -> impl IntoView {
    let StudentView { id, name } = first.0.clone();
    let of = id.clone();
    let watched = Watched::start(first, LOOK_EVERY, move || load_pupil(of.clone()));
    let data = watched.data;
    view! {
        <PageHead title=name/>
        <Freshness pulse=watched.pulse at=None/>
        {move || data.with(|(_, tasks)| tasks.is_empty()).then(|| view! { <Empty text=words().report_no_tasks/> })}
        <ul class="task-list" hidden=move || data.with(|(_, tasks)| tasks.is_empty())>
            <For each=move || data.with(|(_, tasks)| tasks.clone()) key=row_key let:task>
                <TaskRow href=Some(format!("/progress/students/{id}/tasks/{}", task.id)) task=task/>
            </For>
        </ul>
    }
}

/// A task of somebody else, in a list.
#[component]
pub(crate) fn TaskRow(task: TaskView, href: Option<String>) -> impl IntoView {
    let words = words();
    let title = task.title.clone();
    let title = match href {
        Some(href) => view! { <a class="task-link" href=href>{title}</a> }.into_any(),
        None => view! { <span class="task-link">{title}</span> }.into_any(),
    };
    let status = task.status;
    let when = task.submission.as_ref().map(|submission| {
        let at = submission.created_at.clone();
        view! { <span>{words.handed_in} " " <Ago at=at/></span> }
    });
    view! {
        <li class="task-row">
            {title}
            <span class="task-facts"><TaskFacts task=task/> {when}</span>
            <span class="task-status"><TaskBadge status=status/></span>
        </li>
    }
}

/// `/progress/students/{id}/tasks/{id}`.
#[component]
pub(crate) fn PupilTaskPage() -> impl IntoView {
    let (params, query) = (use_params_map(), use_query_map());
    let asked = Memo::new(move |_| {
        let given = |name: &str| params.read().get(name).unwrap_or_default();
        let version = query.read().get("version").and_then(|n| n.parse().ok());
        (given("student"), given("task"), version)
    });
    let page = Resource::new(
        move || asked.get(),
        |(student, task, version)| load_pupil_task(student, task, version),
    );
    view! {
        <div class="page page-narrow">
            <Suspense fallback=|| view! { <Skeleton lines=10/> }>
                {move || Suspend::new(async move {
                    match page.await {
                        Ok(page) => view! { <Detail first=page asked=asked.get_untracked()/> }.into_any(),
                        Err(fault) => fault_view(fault),
                    }
                })}
            </Suspense>
        </div>
    }
}

#[component]
fn Detail(first: PupilTask, asked: (String, String, Option<i32>)) -> impl IntoView {
    let StudentView { id, name } = first.student.clone();
    let title = first.task.title.clone();
    let task_id = first.task.id.clone();
    let instructions = first.task.instructions.clone();
    let watched = Watched::start(first, LOOK_EVERY, move || {
        let (student, task, version) = asked.clone();
        load_pupil_task(student, task, version)
    });
    let data = watched.data;
    // Each part is drawn anew only when what it shows has changed: an open dialogue stays open meanwhile.
    let task = Memo::new(move |_| data.with(|page| page.task.clone()));
    let facts = Memo::new(move |_| task.with(row_key));
    let shown = Memo::new(move |_| data.with(|page| page.shown.clone()));
    let reopening = Memo::new(move |_| {
        task.with(|task| {
            let opens = task.kind == TaskKind::Assignment && task.status == TaskStatus::Submitted;
            opens.then_some(task.submit_version)
        })
    });
    let waits = Memo::new(move |_| {
        task.with(|task| {
            (task.status == TaskStatus::Pending && task.attempts > 0).then_some(task.submit_version)
        })
    });
    let base = format!("/progress/students/{id}/tasks/{task_id}");
    let home = format!("/progress/students/{id}");
    let crumb = name.clone();
    view! {
        <p class="crumb"><a href=home>"← " {crumb}</a></p>
        <PageHead title=title>
            {move || view! { <TaskBadge status=task.with(|task| task.status)/> }}
        </PageHead>
        <p class="task-facts">
            {move || facts.with(|_| view! { <TaskFacts task=task.get_untracked()/> })}
        </p>
        <Freshness pulse=watched.pulse at=None/>
        <details class="instructions-fold">
            <summary>{words().instructions}</summary>
            <div class="instructions">{instructions}</div>
        </details>
        {move || waits.get().map(|version| {
            let text = fill(words().reopened, &[("n", &version.to_string())]);
            view! { <p class="phase-unknown done-line" role="status">{text}</p> }
        })}
        {move || match shown.get() {
            None => view! { <Empty text=words().nothing_handed_in/> }.into_any(),
            Some(submission) => {
                let practice = task.with_untracked(|task| task.kind == TaskKind::Practice);
                let title = if practice { words().attempt } else { words().version };
                let title = fill(title, &[("n", &submission.submit_version.to_string())]);
                view! {
                    <section class="submitted">
                        <h2>{title}</h2>
                        <p class="task-facts"><At at=submission.created_at focus=true/></p>
                        <div class="content">{submission.content}</div>
                    </section>
                }
                .into_any()
            }
        }}
        <Versions watched=watched base=base/>
        {move || reopening.get().map(|version| view! {
            <Reopening student_id=id.clone() name=name.clone() task_id=task_id.clone() version=version/>
        })}
    }
}

/// Every submission, when there is more than one.
#[component]
fn Versions(watched: Watched<PupilTask>, base: String) -> impl IntoView {
    let data = watched.data;
    let few = move || data.with(|page| page.submissions.len() < 2);
    let practice = data.with_untracked(|page| page.task.kind == TaskKind::Practice);
    let title = if practice {
        words().attempts_title
    } else {
        words().versions_title
    };
    view! {
        <section class="attempts" hidden=few>
            <h2>{title}</h2>
            <ol class="task-list">
                <For
                    each=move || data.with(|page| page.submissions.clone())
                    key=|attempt| (attempt.id.clone(), attempt.points)
                    let:attempt
                >
                    <AttemptRow
                        href=format!("{base}?version={}", attempt.submit_version) own=String::new() practice=practice
                        attempt=attempt
                    />
                </For>
            </ol>
        </section>
    }
}

/// Reopening, behind a question that says what it means. The form carries the version that was seen, so a second press of an old
/// page opens nothing more.
#[component]
fn Reopening(student_id: String, name: String, task_id: String, version: i32) -> impl IntoView {
    let words = words();
    let consequence = fill(words.reopen_consequence, &[("name", &name)]);
    view! {
        <details class="box reopening">
            <summary>{words.reopen_ask}</summary>
            <p>{consequence}</p>
            <form method="post" action="/api/fn/reopen_task">
                <input type="hidden" name="student_id" value=student_id/>
                <input type="hidden" name="task_id" value=task_id/>
                <input type="hidden" name="seen_version" value=version.to_string()/>
                <button class="primary">{words.reopen}</button>
            </form>
        </details>
    }
}
