//! The stuck records: rows keep their identity through every refresh, and none comes, goes or moves while somebody is at them.

use domain::{
    RecordState,
    view::{PanelView, RecordPage, RecordSummary},
};
use leptos::{prelude::*, task::spawn_local};

use super::{
    api::{MAX_STUCK, list_stuck_records},
    live::{Live, Stream},
};
use crate::{
    clock::clock,
    components::{AgeBar, Ago, CutKey, Empty, StateBadge, StuckBadge},
    text::{fill, grouped, words},
};

/// How old the list may be while the panel is live, in milliseconds.
const REFRESH_MS: f64 = 5_000.0;

/// Whether somebody is at the list: points at it, has the focus in it, or has picked something.
const IS_TOUCHED: &str = "#stuck .picking:is(:hover, :focus-within), #stuck .picking :checked";

/// The list as it was last read, and the rows that are shown of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StuckRows {
    page: RwSignal<RecordPage>,
    shown: RwSignal<Vec<String>>,
}

impl StuckRows {
    /// Reads the list again when the number of stuck records changes, and now and then while numbers come in.
    pub(crate) fn follow(first: RecordPage, live: Live) -> Self {
        let shown = RwSignal::new(ids(&first));
        let rows = Self {
            page: RwSignal::new(first),
            shown,
        };
        let clock = clock();
        let count = Memo::new(move |_| live.view.with(|view| view.gauges.stuck));
        let (read_at, busy) = (StoredValue::new(0.0), StoredValue::new(false));
        Effect::new(move |before: Option<i64>| {
            let (now, count) = (clock.now().unwrap_or_default(), count.get());
            if before.is_none() {
                read_at.set_value(now);
                return count;
            }
            rows.settle();
            let due = live.stream.get() == Stream::Open && now - read_at.get_value() >= REFRESH_MS;
            if (before != Some(count) || due) && !busy.get_value() {
                read_at.set_value(now);
                busy.set_value(true);
                spawn_local(async move {
                    // A failed refresh keeps the rows that are there; the stream's own state says that something is wrong.
                    if let Ok(newest) = list_stuck_records().await
                        && rows.page.try_with_untracked(|page| *page != newest) == Some(true)
                    {
                        rows.page.try_set(newest);
                        rows.settle();
                    }
                    busy.try_set_value(false);
                });
            }
            count
        });
        rows
    }

    /// Shows the rows as they are now, unless somebody is at them: then nothing moves before it is asked for.
    fn settle(self) {
        let is_touched = document().query_selector(IS_TOUCHED);
        if is_touched.is_ok_and(|found| found.is_none()) {
            self.show();
        }
    }

    fn show(self) {
        let Some(newest) = self.page.try_with_untracked(ids) else {
            return;
        };
        if self.shown.try_with_untracked(|shown| *shown != newest) == Some(true) {
            self.shown.set(newest);
        }
    }

    /// How many rows there are more, and how many of the shown ones are gone.
    fn news(self) -> (usize, usize) {
        self.page.with(|page| {
            self.shown.with(|shown| {
                let is_new = |record: &&RecordSummary| !shown.contains(&record.id);
                let is_gone = |id: &&String| page.records.iter().all(|record| record.id != **id);
                (
                    page.records.iter().filter(is_new).count(),
                    shown.iter().filter(is_gone).count(),
                )
            })
        })
    }
}

fn ids(page: &RecordPage) -> Vec<String> {
    page.records
        .iter()
        .map(|record| record.id.clone())
        .collect()
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
    let none = Memo::new(move |_| rows.shown.with(Vec::is_empty));
    let more = Memo::new(move |_| page.with(|page| page.next.is_some()));
    let news = Memo::new(move |_| rows.news());
    let empty = move || {
        none.get().then(|| {
            let age = words.duration(view.with_untracked(|view| view.stuck_after_seconds));
            view! { <Empty text=fill(words.ops.stuck_empty, &[("age", &age)])/> }
        })
    };
    let cut = move || {
        more.get().then(|| {
            let text = fill(words.ops.stuck_more, &[("n", &MAX_STUCK.to_string())]);
            view! { <p class="quiet">{text} " " <a href="/records?stuck=true">{words.ops.glance_see}</a></p> }
        })
    };
    let news = move || {
        let (new, gone) = news.get();
        (new + gone > 0).then(|| {
            let numbers = [("new", &*new.to_string()), ("gone", &*gone.to_string())];
            let text = fill(words.ops.stuck_news, &numbers);
            view! { <button type="button" class="plain" on:click=move |_| rows.show()>{text}</button> }
        })
    };
    view! {
        <section class="box stuck" id="stuck" aria-labelledby="stuck-title" tabindex="-1">
            <div class="box-head">
                <h2 id="stuck-title">{words.ops.stuck_title}</h2>
                <div class="news-line" role="status">{news}</div>
            </div>
            <Filter view=view hidden=none/>
            {empty}
            <form method="get" action="/bulks/new" class="picking">
            <table class="records" role="table" aria-labelledby="stuck-title" hidden=move || none.get()>
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
                        {acts.then(|| view! { <th role="columnheader" scope="col" class="cell-act">{words.ops.look_and_act}</th> })}
                    </tr>
                </thead>
                <tbody role="rowgroup">
                    <For each=move || rows.shown.get() key=|id| id.clone() children=move |id| view! { <Row id=id page=page acts=acts/> }/>
                </tbody>
            </table>
            {acts.then(|| view! {
                <div class="action-bar">
                    <span class="picked">{words.ops.picked}</span>
                    <button class="primary">{words.ops.act_on_picked}</button>
                </div>
            })}
            </form>
            {cut}
        </section>
    }
}

/// From here to the whole list, among the stuck records only.
#[component]
fn Filter(view: RwSignal<PanelView>, hidden: Memo<bool>) -> impl IntoView {
    let words = words();
    let option = |value: String, text: String| view! { <option value=value>{text}</option> };
    let any = || option(String::new(), words.any.to_owned());
    let states = [RecordState::Processing, RecordState::Unknown]
        .map(|state| option(state.as_ref().to_owned(), words.state(state).to_owned()));
    let actions = view.with_untracked(|view| {
        let actions = view.by_action.iter().map(|row| row.action.clone());
        actions
            .map(|action| option(action.clone(), action))
            .collect_view()
    });
    view! {
        <form method="get" action="/records" class="filter" role="search" aria-label=words.filter hidden=move || hidden.get()>
            <input type="hidden" name="stuck" value="true"/>
            <label class="filter-wide"><span>{words.ops.search_records}</span><input name="q" autocomplete="off" spellcheck="false"/></label>
            <label><span>{words.ops.column_state}</span><select name="state">{any()} {states}</select></label>
            <label><span>{words.ops.column_action}</span><select name="action">{any()} {actions}</select></label>
            <label><span>{words.ops.column_subject}</span><input name="subject" autocomplete="off" spellcheck="false"/></label>
            <div class="filter-do"><button class="button plain">{words.filter}</button></div>
        </form>
    }
}

/// One record. The row stays the same element; only what changed in it is drawn anew.
#[component]
fn Row(id: String, page: RwSignal<RecordPage>, acts: bool) -> impl IntoView {
    let words = words();
    let data_id = id.clone();
    let href = format!("/records/{id}");
    let act = href.clone();
    let pick = acts.then(|| {
        let label = fill(words.ops.pick_one, &[("id", &id)]);
        view! { <td role="cell" class="cell-pick"><input type="checkbox" name="id" value=id.clone() aria-label=label/></td> }
    });
    let newest =
        Memo::new(move |_| page.with(|page| page.records.iter().find(|r| r.id == id).cloned()));
    let record = Memo::new(move |before: Option<&Option<RecordSummary>>| {
        newest.get().or_else(|| before.cloned().flatten())
    });
    let first = record.get_untracked();
    let fixed = first.map(|r| (r.key, r.subject_name, r.action, r.created_at));
    let state = Memo::new(move |_| record.with(|r| r.as_ref().map(|r| r.state)));
    let is_gone = Memo::new(move |_| newest.with(Option::is_none));
    let age =
        Memo::new(move |_| record.with(|r| r.as_ref().and_then(|r| r.stuck_seconds).unwrap_or(0)));
    let oldest = Memo::new(move |_| {
        let ages = |page: &RecordPage| page.records.iter().filter_map(|r| r.stuck_seconds).max();
        page.with(ages).unwrap_or_default()
    });
    let number = move |read: fn(&RecordSummary) -> String| {
        move || record.with(|r| r.as_ref().map(read).unwrap_or_default())
    };
    let stuck_for = move || {
        if is_gone.get() {
            view! { <span class="quiet">{words.ops.no_longer_stuck}</span> }.into_any()
        } else {
            view! { <StuckBadge seconds=age/> <AgeBar seconds=age oldest=oldest/> }.into_any()
        }
    };
    fixed.map(|(key, subject, action, created_at)| {
        view! {
            <tr role="row" data-record=data_id class=move || if is_gone.get() { "is-gone" } else { "" }>
                {pick}
                <td role="cell" class="cell-state" data-label=words.ops.column_state>
                    {move || state.get().map(|state| view! { <StateBadge state=state/> })}
                </td>
                <td role="cell" class="cell-key" data-label=words.ops.column_key><a href=href><CutKey key=key/></a></td>
                <td role="cell" class="cell-subject" data-label=words.ops.column_subject>{subject}</td>
                <td role="cell" class="cell-action" data-label=words.ops.column_action><code>{action}</code></td>
                <td role="cell" class="number" data-label=words.ops.column_attempt>{number(|r| r.attempt.to_string())}</td>
                <td role="cell" class="number cell-age" data-label=words.ops.column_age>{stuck_for}</td>
                <td role="cell" class="cell-seen" data-label=words.ops.column_seen><Ago at=created_at/></td>
                <td role="cell" class="number" data-label=words.ops.column_arrivals>{number(|r| grouped(r.arrivals))}</td>
                {acts.then(|| view! { <td role="cell" class="cell-act"><a class="button plain" href=act>{words.ops.look_and_act}</a></td> })}
            </tr>
        }
    })
}
