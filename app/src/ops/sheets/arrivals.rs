//! `/arrivals`: the very rows that a counter counts.

use domain::{
    Bucket, Defence,
    view::{ArrivalFilter, ArrivalView},
};
use engine::REGISTRY;
use leptos::prelude::*;
use strum::VariantArray;

use super::{
    Query, Sheet, listed,
    names::{defence_word, outcome_word},
    parts::{Line, address, choice, do_filter, list, milliseconds, odd, pager, when, windows},
    sheet,
};
use crate::{
    components::CutKey,
    fault::Fault,
    request,
    text::{sheet_words, words},
};

const DEFENCES: [Defence; 6] = [
    Defence::None,
    Defence::Cache,
    Defence::InFlight,
    Defence::Record,
    Defence::Constraint,
    Defence::FrontLock,
];

/// Writes the page.
pub(super) async fn write(query: &Query) -> Result<Sheet, Fault> {
    let own = sheet_words();
    let filter = ArrivalFilter {
        outcome: query.parsed("outcome"),
        defence: query.parsed("defence"),
        action: query.get("action"),
        window: query.parsed("window"),
        after: query.get("after"),
        limit: None,
    };
    let page = listed(request::engine()?.list_arrivals(&filter).await)?;
    let next = page.next.clone().map(|after| {
        let mut pairs = pairs(&filter).to_vec();
        pairs.push(("after", Some(after)));
        address("/arrivals", &pairs)
    });
    let records = filter.outcome.map(|_| {
        let kept = pairs(&filter)
            .into_iter()
            .filter(|(name, _)| *name != "defence");
        view! { <a href=address("/records", &kept.collect::<Vec<_>>())>{own.see_records}</a> }
    });
    let view = view! {
        <div class="page-head"><h1 id="arrivals">{own.arrivals_title}</h1>{records}</div>
        {form(&filter)}
        <section class="box" aria-labelledby="arrivals">
            {list("arrivals", &columns(), page.arrivals.iter().map(line).collect(), own.arrivals_empty)}
            {pager(None, next)}
        </section>
    };
    Ok(sheet(own.arrivals_title, &page, view))
}

fn pairs(filter: &ArrivalFilter) -> [(&'static str, Option<String>); 4] {
    [
        ("outcome", filter.outcome.map(|o| o.to_string())),
        ("defence", filter.defence.map(|d| d.to_string())),
        ("action", filter.action.clone()),
        ("window", filter.window.map(|w| w.to_string())),
    ]
}

fn form(filter: &ArrivalFilter) -> impl IntoView + use<> {
    let (own, words) = (sheet_words(), words());
    let outcomes = Bucket::VARIANTS
        .iter()
        .map(|o| (o.to_string(), outcome_word(*o).to_owned()));
    let defences = DEFENCES.map(|d| (d.to_string(), defence_word(d).to_owned()));
    let actions = REGISTRY.iter().map(|a| {
        let name = a.action_type().to_string();
        (name.clone(), name)
    });
    view! {
        <form method="get" action="/arrivals" class="filter" role="search" aria-label=words.filter>
            {windows(filter.window)}
            {choice("outcome", own.column_outcome, filter.outcome.map(|o| o.to_string()), outcomes.collect())}
            {choice("defence", own.column_defence, filter.defence.map(|d| d.to_string()), defences.to_vec())}
            {choice("action", words.ops.column_action, filter.action.clone(), actions.collect())}
            {do_filter(None)}
        </form>
    }
}

fn columns() -> [(&'static str, &'static str); 8] {
    let (own, words) = (sheet_words(), words());
    [
        (own.column_at, ""),
        (own.column_outcome, ""),
        (own.column_defence, ""),
        (words.ops.column_key, ""),
        (words.ops.column_subject, ""),
        (own.column_client, ""),
        (own.column_trace, ""),
        (own.column_took, "number"),
    ]
}

fn line(arrival: &ArrivalView) -> Line {
    let own = sheet_words();
    let key = match arrival.key.clone() {
        Some(key) => {
            view! { <a href=format!("/records/{}", arrival.record_id)><CutKey key=key/></a> }
                .into_any()
        }
        None => view! { <span class="quiet">{own.purged}</span> }.into_any(),
    };
    Line {
        id: arrival.id.clone(),
        cells: vec![
            when(&arrival.arrived_at, "second").into_any(),
            arrival.outcome.map(outcome_word).into_any(),
            arrival.defence.map(defence_word).into_any(),
            key,
            arrival.subject_name.clone().into_any(),
            odd(&arrival.client_id).into_any(),
            view! { <code class="trace" title=arrival.trace_id.clone()>{arrival.trace_id.clone()}</code> }.into_any(),
            arrival.duration_ms.map(milliseconds).into_any(),
        ],
    }
}
