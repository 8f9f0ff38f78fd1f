//! `/records`: the list, with its filter in the address and stuck records first.

use domain::{
    Bucket, RecordState, Role,
    view::{RecordFilter, RecordPage, RecordSummary, Window},
};
use engine::{Actor, REGISTRY};
use leptos::prelude::*;
use strum::VariantArray;

use super::{
    Query, Sheet, listed,
    names::outcome_word,
    parts::{address, choice, do_filter, field, pager, when},
    sheet,
};
use crate::{
    components::{AgeBar, CutKey, Empty, StateBadge, StuckBadge},
    fault::Fault,
    ops::glance::window_word,
    request,
    text::{fill, grouped, sheet_words, words},
};

/// How many stuck records stand above the unrestricted list.
const STUCK_ABOVE: u32 = 5;
/// The ages that the form offers, in seconds.
const AGES: [u32; 4] = [60, 300, 3_600, 86_400];

/// Writes the page.
pub(super) async fn write(actor: &Actor, query: &Query) -> Result<Sheet, Fault> {
    let (words, common) = (sheet_words(), words());
    let filter = read(query);
    let engine = request::engine()?;
    let page = listed(engine.list_records(&filter).await)?;
    let is_first = filter.after.is_none() && filter.before.is_none();
    let stuck = if filter.is_open() && is_first {
        let stuck = RecordFilter {
            stuck: Some(true),
            limit: Some(STUCK_ABOVE),
            ..RecordFilter::default()
        };
        listed(engine.list_records(&stuck).await)?
    } else {
        RecordPage::default()
    };
    let acts = actor.role == Role::Admin;
    let to = |after: Option<String>, before: Option<String>| {
        (after.is_some() || before.is_some()).then(|| {
            let filter = RecordFilter {
                after,
                before,
                ..filter.clone()
            };
            address("/records", &pairs(&filter))
        })
    };
    let has_more_stuck = stuck.next.is_some();
    let read = (page.clone(), stuck.clone());
    let above = (!stuck.records.is_empty()).then(|| {
        let more =
            has_more_stuck.then(|| view! { <a href="/records?stuck=true">{words.all_stuck}</a> });
        view! {
            <section class="box" aria-labelledby="stuck-first">
                <div class="box-head"><h2 id="stuck-first">{common.ops.stuck_title}</h2>{more}</div>
                {table(stuck.records, acts, "stuck-first")}
            </section>
        }
    });
    let csv = RecordFilter {
        after: None,
        before: None,
        limit: None,
        ..filter.clone()
    };
    let view = view! {
        <div class="page-head">
            <h1 id="records">{words.records_title}</h1>
            <a href=address("/api/v1/records.csv", &pairs(&csv)) download="records.csv" rel="external">{words.export}</a>
        </div>
        {form(&filter)}
        {counted(&filter)}
        <form method="get" action="/bulks/new" class="picking">
            {above}
            <section class="box" aria-labelledby="records">
                {page.records.is_empty().then(|| view! { <Empty text=words.records_empty/> })}
                {(!page.records.is_empty()).then(|| table(page.records.clone(), acts, "records"))}
                {pager(to(None, page.prev.clone()), to(page.next.clone(), None))}
            </section>
            {acts.then(|| view! {
                <div class="action-bar">
                    <span class="picked">{common.ops.picked}</span>
                    <button class="primary">{common.ops.act_on_picked}</button>
                </div>
            })}
        </form>
    };
    Ok(sheet(words.records_title, &read, view))
}

fn read(query: &Query) -> RecordFilter {
    let state = query.parsed::<RecordState>("state");
    let outcome = query.parsed::<Bucket>("outcome");
    let ends = matches!(
        state,
        Some(RecordState::FailedFinal | RecordState::FailedRetryable)
    );
    RecordFilter {
        state,
        stuck: query.parsed("stuck"),
        action: query.get("action"),
        subject: query.get("subject"),
        q: query
            .get("q")
            .map(|q| q.trim().to_owned())
            .filter(|q| !q.is_empty()),
        min_age: query.parsed("min_age"),
        outcome,
        window: query
            .parsed::<Window>("window")
            .filter(|_| outcome.is_some() || ends),
        after: query.get("after"),
        before: query.get("before"),
        limit: query
            .parsed::<u32>("limit")
            .map(|limit| limit.clamp(1, 200)),
    }
}

fn pairs(filter: &RecordFilter) -> [(&'static str, Option<String>); 11] {
    [
        ("state", filter.state.map(|s| s.to_string())),
        ("stuck", filter.stuck.map(|s| s.to_string())),
        ("action", filter.action.clone()),
        ("subject", filter.subject.clone()),
        ("q", filter.q.clone()),
        ("min_age", filter.min_age.map(|s| s.to_string())),
        ("outcome", filter.outcome.map(|o| o.to_string())),
        ("window", filter.window.map(|w| w.to_string())),
        ("after", filter.after.clone()),
        ("before", filter.before.clone()),
        ("limit", filter.limit.map(|n| n.to_string())),
    ]
}

fn form(filter: &RecordFilter) -> impl IntoView + use<> {
    let (own, words) = (sheet_words(), words());
    let states = RecordState::VARIANTS
        .iter()
        .map(|s| (s.to_string(), words.state(*s).to_owned()));
    let actions = REGISTRY.iter().map(|a| {
        let name = a.action_type().to_string();
        (name.clone(), name)
    });
    let ages = AGES.map(|s| (s.to_string(), words.duration(i64::from(s))));
    let stuck = vec![
        ("true".to_owned(), own.only_stuck.to_owned()),
        ("false".to_owned(), own.only_others.to_owned()),
    ];
    view! {
        <form method="get" action="/records" class="filter" role="search" aria-label=words.filter>
            {field("q", words.ops.search_records, filter.q.clone(), "filter-wide")}
            {choice("stuck", own.stuckness, filter.stuck.map(|s| s.to_string()), stuck)}
            {choice("state", words.ops.column_state, filter.state.map(|s| s.to_string()), states.collect())}
            {choice("action", words.ops.column_action, filter.action.clone(), actions.collect())}
            {field("subject", words.ops.column_subject, filter.subject.clone(), "")}
            {choice("min_age", own.unfinished_for, filter.min_age.map(|s| s.to_string()), ages.to_vec())}
            // Which counter's rows these are stays, whatever else is asked for.
            {kept("outcome", filter.outcome.map(|o| o.to_string()))}
            {kept("window", filter.window.map(|w| w.to_string()))}
            {do_filter((!filter.is_open()).then_some("/records"))}
        </form>
    }
}

/// A part of the filter that no field shows.
fn kept(name: &'static str, value: Option<String>) -> impl IntoView {
    value.map(|value| view! { <input type="hidden" name=name value=value/> })
}

/// Which counter these are the rows of.
fn counted(filter: &RecordFilter) -> impl IntoView + use<> {
    let own = sheet_words();
    let window = filter.window.map(|w| window_word(w, words()));
    let what = match (filter.outcome, filter.window) {
        (Some(outcome), _) => Some(fill(
            own.with_outcome,
            &[
                ("outcome", outcome_word(outcome)),
                ("window", window.unwrap_or(words().ops.window_7d)),
            ],
        )),
        (None, Some(_)) => Some(fill(
            own.ended_in,
            &[("window", window.unwrap_or_default())],
        )),
        _ => None,
    };
    let arrivals = filter.outcome.map(|outcome| {
        let pairs = [
            ("outcome", Some(outcome.to_string())),
            ("action", filter.action.clone()),
            ("window", filter.window.map(|w| w.to_string())),
        ];
        view! { <a href=address("/arrivals", &pairs)>{own.see_arrivals}</a> }
    });
    what.map(|what| view! { <p class="counted">{what} " " {arrivals}</p> })
}

fn table(records: Vec<RecordSummary>, acts: bool, label: &'static str) -> impl IntoView {
    let (own, words) = (sheet_words(), words());
    let oldest = records.iter().filter_map(|r| r.stuck_seconds).max();
    let rows = records
        .into_iter()
        .map(|record| row(record, acts, label, oldest.unwrap_or_default()));
    view! {
        <table class="records" role="table" aria-labelledby=label>
            <thead role="rowgroup">
                <tr role="row">
                    {acts.then(|| view! { <th role="columnheader" scope="col" class="cell-pick"><span class="visually-hidden">{words.ops.pick}</span></th> })}
                    <th role="columnheader" scope="col" class="cell-state">{words.ops.column_state}</th>
                    <th role="columnheader" scope="col" class="cell-key">{words.ops.column_key}</th>
                    <th role="columnheader" scope="col" class="cell-subject">{words.ops.column_subject}</th>
                    <th role="columnheader" scope="col" class="cell-action">{words.ops.column_action}</th>
                    <th role="columnheader" scope="col" class="number">{words.ops.column_attempt}</th>
                    <th role="columnheader" scope="col" class="number cell-age">{words.ops.column_age}</th>
                    <th role="columnheader" scope="col" class="cell-seen">{words.ops.column_seen}</th>
                    <th role="columnheader" scope="col" class="number">{words.ops.column_arrivals}</th>
                    <th role="columnheader" scope="col" class="cell-error">{own.column_error}</th>
                    {acts.then(|| view! { <th role="columnheader" scope="col" class="cell-act">{words.ops.look_and_act}</th> })}
                </tr>
            </thead>
            <tbody role="rowgroup">{rows.collect_view()}</tbody>
        </table>
    }
}

fn row(record: RecordSummary, acts: bool, place: &str, oldest: i64) -> impl IntoView + use<> {
    let words = words();
    let open = RecordState::COMPENSABLE.contains(&record.state);
    let href = format!("/records/{}", record.id);
    let act = href.clone();
    let label = fill(words.ops.pick_one, &[("id", &record.id)]);
    let subject = address(
        "/records",
        &[("subject", Some(record.subject_name.clone()))],
    );
    let look =
        open.then(|| view! { <a class="button plain" href=act>{words.ops.look_and_act}</a> });
    let pick = acts.then(|| {
        let input = open.then(|| view! { <input type="checkbox" name="id" id=format!("{place}-{}", record.id) value=record.id.clone() aria-label=label/> });
        view! { <td role="cell" class="cell-pick">{input}</td> }
    });
    view! {
        <tr role="row" data-record=record.id.clone()>
            {pick}
            <td role="cell" class="cell-state"><StateBadge state=record.state/></td>
            <td role="cell" class="cell-key"><a href=href><CutKey key=record.key/></a></td>
            <td role="cell" class="cell-subject" data-label=words.ops.column_subject><a class="quiet-link" href=subject>{record.subject_name}</a></td>
            <td role="cell" class="cell-action" data-label=words.ops.column_action><code>{record.action}</code></td>
            <td role="cell" class="number" data-label=words.ops.column_attempt>{record.attempt}</td>
            <td role="cell" class="number cell-age">{record.stuck_seconds.map(|s| view! { <StuckBadge seconds=s/> <AgeBar seconds=s oldest=oldest/> })}</td>
            <td role="cell" class="cell-seen" data-label=words.ops.column_seen>{when(&record.created_at, "short")}</td>
            <td role="cell" class="number" data-label=words.ops.column_arrivals>{grouped(record.arrivals)}</td>
            <td role="cell" class="cell-error">{record.error_code.map(|code| view! { <code>{code}</code> })}</td>
            {acts.then(|| view! { <td role="cell" class="cell-act">{look}</td> })}
        </tr>
    }
}
