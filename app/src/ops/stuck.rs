//! The stuck records: rows keep their identity through every refresh, so nothing moves under the pointer without a cause.

use domain::view::{PanelView, RecordPage, RecordSummary};
use leptos::{prelude::*, task::spawn_local};

use super::{
    api::{MAX_STUCK, list_stuck_records},
    live::{Live, Stream},
};
use crate::{
    clock::clock,
    components::{Ago, CutKey, Empty, StateBadge, StuckBadge},
    text::{fill, grouped, words},
};

/// How old the list may be while the panel is live, in milliseconds.
const REFRESH_MS: f64 = 5_000.0;

/// The list as it was last read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StuckRows {
    page: RwSignal<RecordPage>,
}

impl StuckRows {
    /// Reads the list again when the number of stuck records changes, and now and then while the stream is open.
    pub(crate) fn follow(first: RecordPage, live: Live) -> Self {
        let page = RwSignal::new(first);
        let clock = clock();
        let count = Memo::new(move |_| live.view.with(|view| view.gauges.stuck));
        let (read_at, busy) = (StoredValue::new(0.0), StoredValue::new(false));
        Effect::new(move |before: Option<i64>| {
            let (now, count) = (clock.now().unwrap_or_default(), count.get());
            if before.is_none() {
                read_at.set_value(now);
                return count;
            }
            let due = live.stream.get() == Stream::Open && now - read_at.get_value() >= REFRESH_MS;
            if (before != Some(count) || due) && !busy.get_value() {
                read_at.set_value(now);
                busy.set_value(true);
                spawn_local(async move {
                    // A failed refresh keeps the rows that are there; the stream's own state says that something is wrong.
                    if let Ok(newest) = list_stuck_records().await
                        && page.try_with_untracked(|page| *page != newest) == Some(true)
                    {
                        page.try_set(newest);
                    }
                    busy.try_set_value(false);
                });
            }
            count
        });
        Self { page }
    }
}

/// The table; on a narrow screen each row is a card.
#[component]
pub(crate) fn StuckTable(
    rows: StuckRows,
    view: RwSignal<PanelView>,
    /// Whether the reader may act on what is picked.
    acts: bool,
) -> impl IntoView {
    let words = words();
    let page = rows.page;
    let none = Memo::new(move |_| page.with(|page| page.records.is_empty()));
    let more = Memo::new(move |_| page.with(|page| page.next.is_some()));
    let empty = move || {
        none.get().then(|| {
            let age = words.duration(view.with_untracked(|view| view.stuck_after_seconds));
            view! { <Empty text=fill(words.stuck_empty, &[("age", &age)])/> }
        })
    };
    let cut = move || {
        more.get().then(|| {
            let text = fill(words.stuck_more, &[("n", &MAX_STUCK.to_string())]);
            view! { <p class="quiet">{text}</p> }
        })
    };
    let ids = move || {
        page.with(|page| {
            page.records
                .iter()
                .map(|record| record.id.clone())
                .collect::<Vec<_>>()
        })
    };
    view! {
        <section class="box stuck" id="stuck" aria-labelledby="stuck-title" tabindex="-1">
            <h2 id="stuck-title">{words.stuck_title}</h2>
            {empty}
            <form method="get" action="/bulks/new" class="picking">
            <table class="records" role="table" aria-labelledby="stuck-title" hidden=move || none.get()>
                <thead role="rowgroup">
                    <tr role="row">
                        {acts.then(|| view! { <th role="columnheader" scope="col"></th> })}
                        <th role="columnheader" scope="col">{words.column_state}</th>
                        <th role="columnheader" scope="col">{words.column_key}</th>
                        <th role="columnheader" scope="col">{words.column_subject}</th>
                        <th role="columnheader" scope="col">{words.column_action}</th>
                        <th role="columnheader" scope="col" class="number">{words.column_attempt}</th>
                        <th role="columnheader" scope="col" class="number">{words.column_age}</th>
                        <th role="columnheader" scope="col">{words.column_seen}</th>
                        <th role="columnheader" scope="col" class="number">{words.column_arrivals}</th>
                    </tr>
                </thead>
                <tbody role="rowgroup">
                    <For each=ids key=|id| id.clone() children=move |id| view! { <Row id=id page=page acts=acts/> }/>
                </tbody>
            </table>
            {acts.then(|| view! {
                <div class="action-bar">
                    <span class="picked">{words.picked}</span>
                    <button class="primary">{words.act_on_picked}</button>
                </div>
            })}
            </form>
            {cut}
        </section>
    }
}

/// One record. The row stays the same element; only what changed in it is drawn anew.
#[component]
fn Row(id: String, page: RwSignal<RecordPage>, acts: bool) -> impl IntoView {
    let words = words();
    let data_id = id.clone();
    let href = format!("/records/{id}");
    let pick = acts.then(|| {
        let label = fill(words.pick_one, &[("id", &id)]);
        view! { <td role="cell" class="cell-pick"><input type="checkbox" name="id" value=id.clone() aria-label=label/></td> }
    });
    let record = Memo::new(move |before: Option<&Option<RecordSummary>>| {
        page.with(|page| page.records.iter().find(|record| record.id == id).cloned())
            .or_else(|| before.cloned().flatten())
    });
    let first = record.get_untracked();
    let fixed = first.map(|r| (r.key, r.subject_name, r.action, r.created_at));
    let state = Memo::new(move |_| record.with(|r| r.as_ref().map(|r| r.state)));
    let age =
        Memo::new(move |_| record.with(|r| r.as_ref().and_then(|r| r.stuck_seconds).unwrap_or(0)));
    let number = move |read: fn(&RecordSummary) -> String| {
        move || record.with(|r| r.as_ref().map(read).unwrap_or_default())
    };
    fixed.map(|(key, subject, action, created_at)| {
        view! {
            <tr role="row" data-record=data_id>
                {pick}
                <td role="cell" class="cell-state" data-label=words.column_state>
                    {move || state.get().map(|state| view! { <StateBadge state=state/> })}
                </td>
                <td role="cell" class="cell-key" data-label=words.column_key><a href=href><CutKey key=key/></a></td>
                <td role="cell" data-label=words.column_subject>{subject}</td>
                <td role="cell" data-label=words.column_action><code>{action}</code></td>
                <td role="cell" class="number" data-label=words.column_attempt>{number(|r| r.attempt.to_string())}</td>
                <td role="cell" class="number cell-age" data-label=words.column_age>
                    <StuckBadge seconds=age/>
                </td>
                <td role="cell" data-label=words.column_seen><Ago at=created_at/></td>
                <td role="cell" class="number" data-label=words.column_arrivals>{number(|r| grouped(r.arrivals))}</td>
            </tr>
        }
    })
}
