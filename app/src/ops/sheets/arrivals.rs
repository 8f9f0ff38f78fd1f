//! `/arrivals`: the very rows that a counter counts.

use domain::{
    Bucket, Defence,
    view::{ArrivalFilter, ArrivalView, Window},
};
use engine::REGISTRY;
use leptos::prelude::*;
use strum::VariantArray;

use super::{
    Query, Sheet, listed,
    parts::{address, choice, defence_word, milliseconds, outcome_word, pager, when, window_word},
    sheet,
};
use crate::{
    components::{CutKey, Empty},
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
    let rows: Vec<_> = page.arrivals.into_iter().map(row).collect();
    let is_empty = rows.is_empty();
    let view = view! {
        <div class="page-head"><h1 id="arrivals">{own.arrivals_title}</h1>{records}</div>
        {form(&filter)}
        <section class="box" aria-labelledby="arrivals">
            {is_empty.then(|| view! { <Empty text=own.arrivals_empty/> })}
            <div class="scroll" role="region" tabindex="0" aria-labelledby="arrivals" hidden=is_empty>
                <table class="plain-table rows-table">
                    <thead>
                        <tr>
                            <th scope="col">{own.column_at}</th>
                            <th scope="col">{own.column_outcome}</th>
                            <th scope="col">{own.column_defence}</th>
                            <th scope="col">{words().column_key}</th>
                            <th scope="col">{words().column_subject}</th>
                            <th scope="col">{own.column_client}</th>
                            <th scope="col">{own.column_trace}</th>
                            <th scope="col" class="number">{own.column_took}</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            {pager(None, next)}
        </section>
    };
    Ok(sheet(own.arrivals_title, view))
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
    let windows = Window::VARIANTS
        .iter()
        .map(|w| (w.to_string(), window_word(*w)(words).to_owned()));
    let actions = REGISTRY.iter().map(|a| {
        let name = a.action_type().to_string();
        (name.clone(), name)
    });
    view! {
        <form method="get" action="/arrivals" class="filter" role="search" aria-label=own.filter>
            {choice("window", words.window_label, filter.window.map(|w| w.to_string()), windows.collect())}
            {choice("outcome", own.column_outcome, filter.outcome.map(|o| o.to_string()), outcomes.collect())}
            {choice("defence", own.column_defence, filter.defence.map(|d| d.to_string()), defences.to_vec())}
            {choice("action", words.column_action, filter.action.clone(), actions.collect())}
            <div class="filter-do"><button class="primary">{own.do_filter}</button></div>
        </form>
    }
}

fn row(arrival: ArrivalView) -> impl IntoView {
    let own = sheet_words();
    let key = match arrival.key {
        Some(key) => {
            view! { <a href=format!("/records/{}", arrival.record_id)><CutKey key=key/></a> }
                .into_any()
        }
        None => view! { <span class="quiet">{own.purged}</span> }.into_any(),
    };
    view! {
        <tr data-arrival=arrival.id>
            <td>{when(&arrival.arrived_at, "second")}</td>
            <td>{arrival.outcome.map(outcome_word)}</td>
            <td>{arrival.defence.map(defence_word)}</td>
            <td>{key}</td>
            <td>{arrival.subject_name}</td>
            <td class="odd">{arrival.client_id}</td>
            <td><code class="trace">{arrival.trace_id}</code></td>
            <td class="number">{arrival.duration_ms.map(milliseconds)}</td>
        </tr>
    }
}
