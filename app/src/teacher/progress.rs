//! `/progress`: one class as a table, students down, tasks across.

use domain::view::{ClassProgress, StudentProgress, TaskStatus};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::api::{MAX_STUDENTS, Progress, load_progress};
use crate::{
    components::{Ago, Empty, PageHead, Skeleton, TaskBadge, fault_view},
    news::News,
    text::{fill, grouped, words},
};

/// `/progress`.
#[component]
pub(crate) fn ProgressPage() -> impl IntoView {
    let query = use_query_map();
    let class = Memo::new(move |_| query.read().get("class"));
    let progress = Resource::new(move || class.get(), load_progress);
    crate::pageshow::refetch_on_return(progress);
    view! {
        <div class="page">
            <Transition fallback=|| view! { <Skeleton lines=12/> }>
                {move || Suspend::new(async move {
                    match progress.await {
                        Ok(progress) => view! { <Classes progress=progress/> }.into_any(),
                        Err(fault) => fault_view(fault),
                    }
                })}
            </Transition>
            <News/>
        </div>
    }
}

#[component]
fn Classes(progress: Progress) -> impl IntoView {
    let words = words();
    let current = progress.class.as_ref().map(|c| c.class.id.clone());
    let choices: Vec<_> = progress
        .classes
        .into_iter()
        .map(|class| {
            let chosen = (Some(&class.id) == current.as_ref()).then_some("page");
            view! { <a href=format!("/progress?class={}", class.id) aria-current=chosen>{class.name}</a> }
        })
        .collect();
    let body = match progress.class {
        None => view! { <Empty text=words.progress_empty/> }.into_any(),
        Some(class) if class.students.is_empty() => {
            view! { <Empty text=words.progress_no_students/> }.into_any()
        }
        Some(class) => view! { <Class class=class students=progress.students/> }.into_any(),
    };
    view! {
        <PageHead title=words.progress_title>
            <nav class="choices" aria-label=words.classes>{choices}</nav>
        </PageHead>
        {body}
    }
}

#[component]
fn Class(class: ClassProgress, students: usize) -> impl IntoView {
    let words = words();
    let done = |i: usize| {
        let handed_in = |s: &&StudentProgress| {
            s.tasks
                .get(i)
                .is_some_and(|t| t.status == TaskStatus::Submitted)
        };
        class.students.iter().filter(handed_in).count().to_string()
    };
    let all = class.students.len().to_string();
    let heads: Vec<_> = class
        .students
        .first()
        .map(|student| student.tasks.as_slice())
        .unwrap_or_default()
        .iter()
        .enumerate()
        .map(|(i, task)| {
            let rate = fill(words.progress_done, &[("n", &done(i)), ("all", &all)]);
            view! { <th scope="col">{task.title.clone()} <span class="quiet number">{rate}</span></th> }
        })
        .collect();
    let cut = (students > MAX_STUDENTS).then(|| {
        let values = [
            ("n", grouped(MAX_STUDENTS as i64)),
            ("all", grouped(students as i64)),
        ];
        let text = fill(
            words.progress_cut,
            &[("n", &values[0].1), ("all", &values[1].1)],
        );
        view! { <p class="quiet">{text}</p> }
    });
    let name = class.class.name.clone();
    let rows: Vec<_> = class
        .students
        .into_iter()
        .map(|student| view! { <Row student=student/> })
        .collect();
    view! {
        {cut}
        <div class="scroll" role="region" tabindex="0" aria-label=name>
            <table class="grid-table">
                <thead><tr><th scope="col">{words.progress_student}</th>{heads}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

#[component]
fn Row(student: StudentProgress) -> impl IntoView {
    let cells: Vec<_> = student
        .tasks
        .into_iter()
        .map(|task| {
            let when = task.submitted_at.map(|at| view! { <Ago at=at/> });
            view! { <td><TaskBadge status=task.status/> {when}</td> }
        })
        .collect();
    view! { <tr><th scope="row">{student.name}</th>{cells}</tr> }
}
