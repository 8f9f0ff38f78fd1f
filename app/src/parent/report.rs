//! `/report`: one child's tasks, exactly as the child sees them, read again while the page is in sight.

use std::time::Duration;

use domain::view::{TaskStatus, TaskView};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::api::{Report, load_report};
use crate::{
    components::{Empty, PageHead, Skeleton, fault_view},
    live::{Freshness, Watched},
    news::{News, first_news},
    student::row_key,
    teacher::TaskRow,
    text::{fill, grouped, words},
};

/// How often the report is read again.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// How many of the newest notifications are shown.
const SHOWN_NEWS: usize = 20;

/// `/report`.
#[component]
pub(crate) fn ReportPage() -> impl IntoView {
    let query = use_query_map();
    let child = Memo::new(move |_| query.read().get("child"));
    let report = Resource::new(move || child.get(), load_report);
    let news = first_news();
    view! {
        <div class="page page-narrow">
            <Transition fallback=|| view! { <Skeleton lines=6/> }>
                {move || Suspend::new(async move {
                    match report.await {
                        Ok(report) => view! { <Children report=report asked=child.get_untracked()/> }.into_any(),
                        Err(fault) => fault_view(fault),
                    }
                })}
            </Transition>
            <Suspense>
                {move || Suspend::new(async move { view! { <News first=news.await most=SHOWN_NEWS/> } })}
            </Suspense>
        </div>
    }
}

#[component]
fn Children(report: Report, asked: Option<String>) -> impl IntoView {
    let words = words();
    let current = report.child.as_ref().map(|child| child.id.clone());
    let choices: Vec<_> = report
        .children
        .iter()
        .cloned()
        .map(|child| {
            let chosen = (Some(&child.id) == current.as_ref()).then_some("page");
            view! { <a href=format!("/report?child={}", child.id) aria-current=chosen>{child.name}</a> }
        })
        .collect();
    let body = match current {
        None => view! { <Empty text=words.report_empty/> }.into_any(),
        Some(_) => view! { <Tasks report=report asked=asked/> }.into_any(),
    };
    view! {
        <PageHead title=words.report_title>
            <nav class="choices" aria-label=words.children>{choices}</nav>
        </PageHead>
        {body}
    }
}

#[component]
fn Tasks(report: Report, asked: Option<String>) -> impl IntoView {
    let words = words();
    let watched = Watched::start(report, LOOK_EVERY, move || load_report(asked.clone()));
    let data = watched.data;
    let summary = move || {
        let done = |task: &&TaskView| task.status == TaskStatus::Submitted;
        let (all, done, points) = data.with(|report| {
            let points: i64 = report.tasks.iter().map(|task| task.points).sum();
            (
                report.tasks.len(),
                report.tasks.iter().filter(done).count(),
                points,
            )
        });
        let done = fill(
            words.progress_done,
            &[("n", &done.to_string()), ("all", &all.to_string())],
        );
        let points = (points != 0).then(|| fill(words.points_earned, &[("n", &grouped(points))]));
        view! { <p class="quiet number">{done} {points.map(|points| format!(" · {points}"))}</p> }
    };
    let none = move || data.with(|report| report.tasks.is_empty());
    view! {
        <Freshness pulse=watched.pulse at=None/>
        {move || if none() { view! { <Empty text=words.report_no_tasks/> }.into_any() } else { summary().into_any() }}
        <ul class="task-list" hidden=none>
            <For each=move || data.with(|report| report.tasks.clone()) key=row_key let:task>
                <TaskRow task=task href=None/>
            </For>
        </ul>
    }
}
