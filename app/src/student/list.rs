//! The list of tasks.

use domain::{
    action::TaskKind,
    view::{TaskStatus, TaskView},
};
use leptos::prelude::*;

use super::api::{TaskList, list_tasks};
use crate::{
    components::{At, Empty, PageHead, Skeleton, TaskBadge, fault_view},
    text::{fill, grouped, words},
};

/// `/tasks`.
#[component]
pub(crate) fn TaskListPage() -> impl IntoView {
    let tasks = Resource::new(|| (), |()| list_tasks());
    crate::pageshow::refetch_on_return(tasks);
    view! {
        <div class="page page-narrow">
            <Transition fallback=|| view! { <Skeleton lines=6/> }>
                {move || Suspend::new(async move {
                    match tasks.await {
                        Ok(list) => view! { <Tasks list=list/> }.into_any(),
                        Err(fault) => fault_view(fault),
                    }
                })}
            </Transition>
        </div>
    }
}

#[component]
fn Tasks(list: TaskList) -> impl IntoView {
    let words = words();
    let open = list
        .tasks
        .iter()
        .filter(|task| task.status == TaskStatus::Pending)
        .count();
    let summary = match open {
        0 => words.tasks_all_done.to_owned(),
        n => fill(words.tasks_open, &[("n", &n.to_string())]),
    };
    let body = if list.tasks.is_empty() {
        view! { <Empty text=words.tasks_empty/> }.into_any()
    } else {
        let rows: Vec<_> = list
            .tasks
            .into_iter()
            .map(|task| view! { <Row task=task/> })
            .collect();
        view! {
            <p class="quiet">{summary}</p>
            <ul class="task-list">{rows}</ul>
        }
        .into_any()
    };
    view! {
        <PageHead title=words.tasks_title>
            <p class="points">
                <span class="quiet">{words.points}</span>
                <strong class="number">{grouped(list.points)}</strong>
            </p>
        </PageHead>
        {body}
    }
}

#[component]
fn Row(task: TaskView) -> impl IntoView {
    let href = format!("/tasks/{}", task.id);
    view! {
        <li class="task-row">
            <a class="task-link" href=href>{task.title.clone()}</a>
            <span class="task-facts"><TaskFacts task=task.clone()/></span>
            <span class="task-status"><TaskBadge status=task.status/></span>
        </li>
    }
}

/// Kind, attempt and due date of a task, in one line.
#[component]
pub(crate) fn TaskFacts(task: TaskView) -> impl IntoView {
    let words = words();
    let kind = match task.kind {
        TaskKind::Assignment => words.kind_assignment,
        TaskKind::Practice => words.kind_practice,
    };
    let due = match task.due_at {
        Some(at) => view! { <span>{words.due} " " <At at=at/></span> }.into_any(),
        None => view! { <span>{words.due_none}</span> }.into_any(),
    };
    view! { <span>{kind}</span> {due} }
}
