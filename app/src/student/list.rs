//! The list of tasks.

use std::time::Duration;

use domain::{
    action::TaskKind,
    phase::Phase,
    view::{TaskStatus, TaskView},
};
use leptos::prelude::*;

use super::{
    api::{TaskList, list_tasks},
    storage::Shelf,
};
use crate::{
    clock::{self, clock},
    components::{At, Empty, PageHead, Shape, Skeleton, TaskBadge, fault_view, icon},
    live::{Freshness, Watched},
    text::{fill, grouped, words},
};

/// How often the list is read again.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// `/tasks`.
#[component]
pub(crate) fn TaskListPage() -> impl IntoView {
    let tasks = Resource::new(|| (), |()| list_tasks());
    view! {
        <div class="page page-narrow">
            <Suspense fallback=|| view! { <Skeleton lines=6/> }>
                {move || Suspend::new(async move {
                    match tasks.await {
                        Ok(list) => view! { <Tasks list=list/> }.into_any(),
                        Err(fault) => fault_view(fault),
                    }
                })}
            </Suspense>
        </div>
    }
}

#[component]
fn Tasks(list: TaskList) -> impl IntoView {
    let words = words();
    let student = StoredValue::new(list.student_id.clone());
    let watched = Watched::start(list, LOOK_EVERY, list_tasks);
    let list = watched.data;
    let points = move || grouped(list.with(|list| list.points));
    let summary = move || {
        let open = |task: &&TaskView| task.status == TaskStatus::Pending;
        match list.with(|list| (list.tasks.len(), list.tasks.iter().filter(open).count())) {
            (0, _) => view! { <Empty text=words.tasks_empty/> }.into_any(),
            (_, 0) => view! { <p class="quiet">{words.tasks_all_done}</p> }.into_any(),
            (_, n) => {
                let text = fill(words.tasks_open, &[("n", &n.to_string())]);
                view! { <p class="quiet">{text}</p> }.into_any()
            }
        }
    };
    view! {
        <PageHead title=words.tasks_title>
            <p class="points">
                <span class="quiet">{words.points}</span>
                <strong class="number">{points}</strong>
            </p>
        </PageHead>
        <Freshness pulse=watched.pulse at=None/>
        {summary}
        <ul class="task-list" hidden=move || list.with(|list| list.tasks.is_empty())>
            // Keyed by all that a row shows: a row that did not change keeps its place and its focus.
            <For each=move || list.with(|list| list.tasks.clone()) key=row_key let:task>
                <Row task=task student=student/>
            </For>
        </ul>
    }
}

/// What makes a row another one.
pub(crate) fn row_key(task: &TaskView) -> String {
    format!(
        "{}|{}|{:?}|{:?}|{}|{}|{:?}",
        task.id, task.title, task.due_at, task.closes_at, task.attempts, task.points, task.status
    )
}

#[component]
fn Row(task: TaskView, student: StoredValue<String>) -> impl IntoView {
    let href = format!("/tasks/{}", task.id);
    let pending = task.status == TaskStatus::Pending;
    let kept = RwSignal::new(Kept::Nothing);
    let shelf = student.with_value(|student| Shelf::new(student, &task.id));
    Effect::new(move || kept.set(Kept::find(&shelf, pending)));
    view! {
        <li class="task-row">
            <a class="task-link" href=href>{task.title.clone()}</a>
            <span class="task-facts"><TaskFacts task=task.clone()/> {move || kept.get().into_view()}</span>
            <span class="task-status"><TaskBadge status=task.status/></span>
        </li>
    }
}

/// What this device still holds of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    Draft,
    /// Sent, and not known to have arrived; the task's page goes on with it.
    Unconfirmed,
}

impl Kept {
    fn find(shelf: &Shelf, pending: bool) -> Self {
        let phase = shelf.intent().map(|intent| intent.phase);
        match phase {
            Some(Phase::Submitting | Phase::Unknown) => Self::Unconfirmed,
            _ if pending && shelf.draft().is_some() => Self::Draft,
            _ => Self::Nothing,
        }
    }

    fn into_view(self) -> AnyView {
        let words = words();
        match self {
            Self::Nothing => ().into_any(),
            Self::Draft => view! { <span>{words.kept_draft}</span> }.into_any(),
            Self::Unconfirmed => view! {
                <span class="phase-unknown kept">{icon(Shape::Question)} {words.kept_unconfirmed}</span>
            }
            .into_any(),
        }
    }
}

/// Kind, due date, attempts and points of a task, in one line.
#[component]
pub(crate) fn TaskFacts(task: TaskView) -> impl IntoView {
    let words = words();
    let number = |text, n: i64| {
        let text = fill(text, &[("n", &grouped(n))]);
        view! { <span class="number">{text}</span> }
    };
    let attempts = (task.kind == TaskKind::Practice && task.attempts > 0)
        .then(|| number(words.attempts, task.attempts));
    let points = (task.points != 0).then(|| number(words.points_earned, task.points));
    view! {
        <span>{kind_word(task.kind)}</span>
        <Due at=task.due_at open=task.status == TaskStatus::Pending/>
        {task.closes_at.map(|at| view! { <Closes at=at/> })}
        {attempts}
        {points}
    }
}

/// The word for a kind of task.
pub(crate) fn kind_word(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Assignment => words().kind_assignment,
        TaskKind::Practice => words().kind_practice,
    }
}

/// Until when a task is expected; what is late says so.
#[component]
pub(crate) fn Due(
    /// RFC 3339.
    at: Option<String>,
    /// Whether it is still to be handed in.
    open: bool,
) -> impl IntoView {
    let words = words();
    let Some(at) = at else {
        return view! { <span>{words.due_none}</span> }.into_any();
    };
    let late = is_past(at.clone());
    view! {
        <span>
            {words.due} " " <At at=at/>
            {move || (open && late.get()).then(|| view! { " " <strong class="late">{words.overdue}</strong> })}
        </span>
    }
    .into_any()
}

/// From when on nothing is accepted any more.
#[component]
fn Closes(at: String) -> impl IntoView {
    let words = words();
    let past = is_past(at.clone());
    let word = move || {
        if past.get() {
            words.closed_since
        } else {
            words.closes
        }
    };
    view! { <span>{word} " " <At at=at/></span> }
}

/// Whether a time has passed, by the reader's clock.
fn is_past(at: String) -> Memo<bool> {
    let clock = clock();
    Memo::new(move |_| clock.now().is_some_and(|now| clock::millis(&at) <= now))
}
