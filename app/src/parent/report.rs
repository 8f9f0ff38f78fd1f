//! `/report`: one child's tasks, exactly as the child sees them.

use domain::view::ChildReport;
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::api::{Report, load_report};
use crate::{
    components::{Ago, Empty, PageHead, Skeleton, TaskBadge, fault_view},
    news::News,
    text::words,
};

/// `/report`.
#[component]
pub(crate) fn ReportPage() -> impl IntoView {
    let query = use_query_map();
    let child = Memo::new(move |_| query.read().get("child"));
    let report = Resource::new(move || child.get(), load_report);
    crate::pageshow::refetch_on_return(report);
    view! {
        <div class="page page-narrow">
            <Transition fallback=|| view! { <Skeleton lines=6/> }>
                {move || Suspend::new(async move {
                    match report.await {
                        Ok(report) => view! { <Children report=report/> }.into_any(),
                        Err(fault) => fault_view(fault),
                    }
                })}
            </Transition>
            <News/>
        </div>
    }
}

#[component]
fn Children(report: Report) -> impl IntoView {
    let words = words();
    let current = report.report.as_ref().map(|r| r.child.id.clone());
    let choices: Vec<_> = report
        .children
        .into_iter()
        .map(|child| {
            let chosen = (Some(&child.id) == current.as_ref()).then_some("page");
            view! { <a href=format!("/report?child={}", child.id) aria-current=chosen>{child.name}</a> }
        })
        .collect();
    let body = match report.report {
        None => view! { <Empty text=words.report_empty/> }.into_any(),
        Some(report) if report.tasks.is_empty() => {
            view! { <Empty text=words.report_no_tasks/> }.into_any()
        }
        Some(report) => tasks(report).into_any(),
    };
    view! {
        <PageHead title=words.report_title>
            <nav class="choices" aria-label=words.children>{choices}</nav>
        </PageHead>
        {body}
    }
}

fn tasks(report: ChildReport) -> impl IntoView {
    let rows: Vec<_> = report
        .tasks
        .into_iter()
        .map(|task| {
            let when = task.submitted_at.map(|at| view! { <Ago at=at/> });
            view! {
                <li class="task-row">
                    <span class="task-link">{task.title}</span>
                    <span class="task-facts">{when}</span>
                    <span class="task-status"><TaskBadge status=task.status/></span>
                </li>
            }
        })
        .collect();
    view! { <ul class="task-list">{rows}</ul> }
}
