//! `/failures` and `/compensated`: the very rows that two counters of the panel count, which are neither arrivals nor records.

use domain::view::{AppliedView, FailureView, Window};
use leptos::prelude::*;

use super::{
    Query, Sheet, listed,
    names::action_word,
    parts::{Line, address, do_filter, list, odd, pager, record_link, when, windows},
    sheet,
};
use crate::{
    components::{CutKey, StateBadge},
    fault::Fault,
    request,
    text::{sheet_words, words},
};

/// Writes the executions that failed for now.
pub(super) async fn write_failures(query: &Query) -> Result<Sheet, Fault> {
    let (own, words) = (sheet_words(), words());
    let (window, after) = place(query);
    let engine = request::engine()?;
    let (failures, next) = listed(engine.list_failures(window, after.as_deref()).await)?;
    let line = |failure: &FailureView| {
        Line {
        id: format!("{}-{}", failure.record_id, failure.attempt),
        cells: vec![
            when(&failure.at, "second").into_any(),
            view! { <a href=format!("/records/{}", failure.record_id)><CutKey key=failure.key.clone()/></a> }.into_any(),
            failure.subject_name.clone().into_any(),
            view! { <code>{failure.action.clone()}</code> }.into_any(),
            failure.attempt.into_any(),
            view! { <StateBadge state=failure.state/> }.into_any(),
        ],
    }
    };
    let columns = [
        (own.column_at, ""),
        (words.ops.column_key, ""),
        (words.ops.column_subject, ""),
        (words.ops.column_action, ""),
        (words.ops.column_attempt, "number"),
        (own.column_now, ""),
    ];
    let table = list(
        "ends",
        &columns,
        failures.iter().map(line).collect(),
        own.failures_empty,
    );
    Ok(page(
        "/failures",
        own.failures_title,
        window,
        table,
        &failures,
        next,
    ))
}

/// Writes what was done to records.
pub(super) async fn write_compensated(query: &Query) -> Result<Sheet, Fault> {
    let own = sheet_words();
    let (window, after) = place(query);
    let engine = request::engine()?;
    let (applied, next) = listed(engine.list_applied(window, after.as_deref()).await)?;
    let line = |applied: &AppliedView| {
        let who = applied.actor_name.clone();
        Line {
            id: applied.id.clone(),
            cells: vec![
                when(&applied.at, "second").into_any(),
                action_word(applied.action).into_any(),
                record_link(&applied.record_id).into_any(),
                who.unwrap_or_else(|| own.by_scanner.to_owned()).into_any(),
                odd(&applied.reason).into_any(),
            ],
        }
    };
    let columns = [
        (own.column_at, ""),
        (own.column_what, ""),
        (own.column_record, ""),
        (own.column_who, ""),
        (own.reason, "wide-cell"),
    ];
    let table = list(
        "ends",
        &columns,
        applied.iter().map(line).collect(),
        own.compensated_empty,
    );
    Ok(page(
        "/compensated",
        own.compensated_title,
        window,
        table,
        &applied,
        next,
    ))
}

fn place(query: &Query) -> (Window, Option<String>) {
    (
        query.parsed("window").unwrap_or_default(),
        query.get("after"),
    )
}

fn page(
    path: &'static str,
    title: &'static str,
    window: Window,
    table: AnyView,
    read: &impl serde::Serialize,
    next: Option<String>,
) -> Sheet {
    let next = next.map(|after| {
        address(
            path,
            &[("window", Some(window.to_string())), ("after", Some(after))],
        )
    });
    let view = view! {
        <div class="page-head"><h1 id="ends">{title}</h1></div>
        <form method="get" action=path class="filter" role="search" aria-label=words().filter>
            {windows(Some(window))}
            {do_filter(None)}
        </form>
        <section class="box" aria-labelledby="ends">{table} {pager(None, next)}</section>
    };
    sheet(title, read, view)
}
