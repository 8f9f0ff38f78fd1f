//! `/progress`: one class, how far it is with each task, and its students, a page at a time; read again while it is in sight.

use std::time::Duration;

use domain::view::{ClassOverview, NotificationView, StudentProgress, TaskRate, TaskStatus};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::api::{PAGE_STUDENTS, Progress, ProgressQuery, load_progress};
use crate::{
    components::{Ago, Empty, PageHead, Shape, Skeleton, TaskBadge, fault_view, icon},
    live::{Freshness, Watched},
    news::{News, first_news},
    path,
    student::{Due, kind_word},
    text::{fill, grouped, words},
};

/// How often the numbers are read again.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// How many of the newest notifications stand above the students.
const SHOWN_NEWS: usize = 4;

/// `/progress`.
#[component]
pub(crate) fn ProgressPage() -> impl IntoView {
    let query = use_query_map();
    let asked = Memo::new(move |_| {
        let given = |name: &str| query.read().get(name).filter(|text| !text.is_empty());
        ProgressQuery {
            class: given("class"),
            q: given("q"),
            open: given("open"),
            after: given("after"),
        }
    });
    let progress = Resource::new(move || asked.get(), load_progress);
    let created = query.read_untracked().get("created");
    let news = first_news();
    view! {
        <div class="page">
            <Transition fallback=|| view! { <Skeleton lines=12/> }>
                {move || {
                    let created = created.clone();
                    Suspend::new(async move {
                        match progress.await {
                            Ok(progress) => view! { <Classes progress=progress news=news.await query=asked.get_untracked() created=created/> }.into_any(),
                            Err(fault) => fault_view(fault),
                        }
                    })
                }}
            </Transition>
        </div>
    }
}

/// The address of the page with other students of the same class.
fn address(query: &ProgressQuery) -> String {
    let mut address = String::from("/progress");
    let mut separator = '?';
    for (name, value) in [
        ("class", &query.class),
        ("q", &query.q),
        ("open", &query.open),
        ("after", &query.after),
    ] {
        if let Some(value) = value {
            address.push_str(&format!("{separator}{name}={}", path::escape(value)));
            separator = '&';
        }
    }
    address
}

#[component]
fn Classes(
    progress: Progress,
    news: Vec<NotificationView>,
    query: ProgressQuery,
    created: Option<String>,
) -> impl IntoView {
    let words = words();
    let current = progress.class.as_ref().map(|c| c.progress.class.id.clone());
    let choices: Vec<_> = progress
        .classes
        .iter()
        .cloned()
        .map(|class| {
            let chosen = (Some(&class.id) == current.as_ref()).then_some("page");
            view! { <a href=format!("/progress?class={}", class.id) aria-current=chosen>{class.name}</a> }
        })
        .collect();
    let body = match progress.class.clone() {
        None => view! { <Empty text=words.progress_empty/> }.into_any(),
        Some(class) => {
            let query = ProgressQuery {
                class: current,
                ..query
            };
            view! { <Class first=progress class=class news=news query=query created=created/> }
                .into_any()
        }
    };
    view! {
        <PageHead title=words.progress_title>
            <nav class="choices" aria-label=words.classes>{choices}</nav>
        </PageHead>
        {body}
    }
}

#[component]
fn Class(
    first: Progress,
    class: ClassOverview,
    news: Vec<NotificationView>,
    query: ProgressQuery,
    created: Option<String>,
) -> impl IntoView {
    let words = words();
    let at = class.at.clone();
    // The moment changes with each look; what is compared and drawn is the rest.
    let watched = {
        let query = query.clone();
        Watched::start(still(first), LOOK_EVERY, move || {
            let answer = load_progress(query.clone());
            async move { answer.await.map(still) }
        })
    };
    let data = watched.data;
    let rates = move || {
        data.with(|p| {
            p.class
                .as_ref()
                .map(|c| c.rates.clone())
                .unwrap_or_default()
        })
    };
    let total = move || data.with(|p| p.class.as_ref().map_or(0, |c| c.students));
    let has_tasks = move || data.with(|p| p.class.as_ref().is_some_and(|c| !c.rates.is_empty()));
    let new = format!("/progress/new?class={}", class.progress.class.id);
    if created.is_some() {
        Effect::new(super::new_task::forget_draft);
    }
    let created = created.and_then(|id| {
        let task = class.rates.iter().find(|rate| rate.task_id == id)?;
        let text = fill(words.task_created, &[("title", &task.title)]);
        Some(view! {
            <p class="phase-submitted done-line" role="status">{icon(Shape::Check)} <span>{text}</span></p>
        })
    });
    let only = query.open.clone();
    let base = query.clone();
    view! {
        <div class="class-bar">
            <Freshness pulse=watched.pulse at=Some(at)/>
            <a class="button primary" href=new>{words.task_new}</a>
        </div>
        {created}
        <section class="box rates" hidden=move || !has_tasks()>
            <h2>{words.rates_title}</h2>
            <ul>
                <For each=rates key=TaskRate::clone let:rate>
                    <Rate only=only.clone() base=base.clone() rate=rate/>
                </For>
            </ul>
        </section>
        {move || (!has_tasks()).then(|| view! { <Empty text=words.class_no_tasks/> })}
        {move || match total() {
            0 => view! { <Empty text=words.progress_no_students/> }.into_any(),
            _ => ().into_any(),
        }}
        <News first=news most=SHOWN_NEWS/>
        <Students watched=watched query=query/>
    }
}

/// A progress without its moment.
fn still(mut progress: Progress) -> Progress {
    if let Some(class) = &mut progress.class {
        class.at.clear();
    }
    progress
}

/// How far the class is with one task, as a number, a part and a bar.
#[component]
fn Rate(rate: TaskRate, base: ProgressQuery, only: Option<String>) -> impl IntoView {
    let words = words();
    let percent = (rate.submitted * 100)
        .checked_div(rate.students)
        .unwrap_or(0);
    let done = fill(
        words.progress_done,
        &[
            ("n", &grouped(rate.submitted)),
            ("all", &grouped(rate.students)),
        ],
    );
    let open = rate.students - rate.submitted;
    let is_open = open > 0;
    let is_chosen = only.as_ref() == Some(&rate.task_id);
    let to = address(&ProgressQuery {
        open: (!is_chosen).then(|| rate.task_id.clone()),
        after: None,
        ..base
    });
    let text = if is_chosen {
        words.students_all.to_owned()
    } else {
        fill(words.students_open, &[("n", &grouped(open))])
    };
    let link = (is_open || is_chosen)
        .then(|| view! { <a href=to aria-current=is_chosen.then_some("true")>{text}</a> });
    view! {
        <li class="rate">
            <span class="rate-title">{rate.title}</span>
            <span class="task-facts"><span>{kind_word(rate.kind)}</span> <Due at=rate.due_at open=is_open/></span>
            <svg class="rate-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                <rect class="rate-all" x="0" y="0" width="100" height="4"></rect>
                <rect class="rate-done" x="0" y="0" width=percent.to_string() height="4"></rect>
            </svg>
            <span class="rate-number number"><strong>{format!("{percent} %")}</strong> <span class="quiet">{done}</span></span>
            <span class="rate-open">{link}</span>
        </li>
    }
}

/// A page of the students, and the ways to the others.
#[component]
fn Students(watched: Watched<Progress>, query: ProgressQuery) -> impl IntoView {
    let words = words();
    let data = watched.data;
    let students = move || {
        data.with(|p| {
            p.class
                .as_ref()
                .map(|c| c.progress.students.clone())
                .unwrap_or_default()
        })
    };
    let next = move || data.with(|p| p.class.as_ref().and_then(|c| c.progress.next.clone()));
    let none = move || {
        data.with(|p| {
            p.class
                .as_ref()
                .is_some_and(|c| c.students > 0 && c.progress.students.is_empty())
        })
    };
    let heads = move || {
        let heads = data.with(|p| {
            p.class
                .as_ref()
                .map(|c| c.rates.clone())
                .unwrap_or_default()
        });
        heads
            .into_iter()
            .map(|rate| view! { <th scope="col">{rate.title}</th> })
            .collect_view()
    };
    let titles = Memo::new(move |_| {
        data.with(|p| {
            let rates = p
                .class
                .as_ref()
                .map(|c| c.rates.as_slice())
                .unwrap_or_default();
            rates
                .iter()
                .map(|rate| rate.title.clone())
                .collect::<Vec<_>>()
        })
    });
    let total = move || {
        let n = data.with(|p| p.class.as_ref().map_or(0, |c| c.students));
        fill(words.students_total, &[("n", &grouped(n))])
    };
    let is_part = query.after.is_some();
    let start = address(&ProgressQuery {
        after: None,
        ..query.clone()
    });
    let all = address(&ProgressQuery {
        class: query.class.clone(),
        ..ProgressQuery::default()
    });
    let narrowed = query.q.is_some() || query.open.is_some();
    let further = {
        let query = query.clone();
        move || {
            next().map(|after| {
                let to = address(&ProgressQuery {
                    after: Some(after),
                    ..query.clone()
                });
                let text = fill(words.students_next, &[("n", &PAGE_STUDENTS.to_string())]);
                view! { <a class="next" href=to>{text}</a> }
            })
        }
    };
    view! {
        <section class="students">
            <div class="students-head">
                <h2>{words.students_title} " " <span class="quiet number">{total}</span></h2>
                <form class="search" method="get" action="/progress" role="search">
                    <input type="hidden" name="class" value=query.class.clone()/>
                    {query.open.clone().map(|open| view! { <input type="hidden" name="open" value=open/> })}
                    <label class="visually-hidden" for="q">{words.students_search}</label>
                    <input id="q" name="q" type="search" placeholder=words.students_search value=query.q.clone()/>
                    <button class="plain">{words.search}</button>
                </form>
            </div>
            <p class="ways-out" hidden=!narrowed><a href=all>{words.students_all}</a></p>
            {move || none().then(|| view! { <Empty text=words.students_none/> })}
            <table class="grid-table" hidden=none>
                <thead><tr><th scope="col">{words.progress_student}</th>{move || titles.with(|_| heads())}</tr></thead>
                <tbody>
                    <For each=students key=StudentProgress::clone let:student>
                        <Row student=student/>
                    </For>
                </tbody>
            </table>
            <nav class="pager" aria-label=words.students_title>
                {is_part.then(|| view! { <a href=start>{words.students_first}</a> })}
                {further}
            </nav>
        </section>
    }
}

#[component]
fn Row(student: StudentProgress) -> impl IntoView {
    let words = words();
    let done = student
        .tasks
        .iter()
        .filter(|task| task.status == TaskStatus::Submitted)
        .count();
    let done = fill(
        words.progress_done,
        &[
            ("n", &done.to_string()),
            ("all", &student.tasks.len().to_string()),
        ],
    );
    let home = format!("/progress/students/{}", student.id);
    let cells: Vec<_> = student
        .tasks
        .into_iter()
        .map(|task| {
            let when = task.submitted_at.map(|at| view! { <Ago at=at/> });
            let to = format!("{home}/tasks/{}", task.task_id);
            view! {
                <td data-label=task.title>
                    <a class="cell" href=to><TaskBadge status=task.status/> {when}</a>
                </td>
            }
        })
        .collect();
    view! {
        <tr>
            <th scope="row"><a href=home>{student.name}</a> <span class="quiet number">{done}</span></th>
            {cells}
        </tr>
    }
}
