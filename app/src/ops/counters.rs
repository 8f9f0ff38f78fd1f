//! The counters that are not headlines, the latency, and the share of duplicates by action: quiet, in small tables.

use domain::view::{Counters as Numbers, PanelView};
use leptos::prelude::*;

use crate::text::{Words, fill, grouped, words};

type Name = fn(&'static Words) -> &'static str;
type Read = fn(&Numbers) -> i64;

/// Every counter that has no tile.
const ROWS: [(&str, Name, Read); 8] = [
    ("unknown", |w| w.counter_unknown, |c| c.unknown),
    ("mismatch", |w| w.counter_mismatch, |c| c.mismatch),
    (
        "failed_final",
        |w| w.counter_failed_final,
        |c| c.failed_final,
    ),
    (
        "failed_retryable",
        |w| w.counter_failed_retryable,
        |c| c.failed_retryable,
    ),
    (
        "timeout_after_success",
        |w| w.counter_timeout_after_success,
        |c| c.timeout_after_success,
    ),
    ("compensated", |w| w.counter_compensated, |c| c.compensated),
    (
        "front_lock_expired_suspected",
        |w| w.counter_lock_expired,
        |c| c.front_lock_expired_suspected,
    ),
    (
        "front_lock_release_mismatch",
        |w| w.counter_lock_mismatch,
        |c| c.front_lock_release_mismatch,
    ),
];

/// The quiet half of the panel.
#[component]
pub(crate) fn Counters(view: RwSignal<PanelView>) -> impl IntoView {
    let words = words();
    let rows = ROWS.map(|(key, name, read)| {
        let number = Memo::new(move |_| view.with(|view| read(&view.counters)));
        let total = Memo::new(move |_| view.with(|view| read(&view.totals)));
        let class = move || if number.get() == 0 { "is-zero" } else { "" };
        view! {
            <tr class=class data-counter=key>
                <th scope="row">{name(words)}</th>
                <td class="number" data-value="window">{move || grouped(number.get())}</td>
                <td class="number quiet" data-value="total">{move || grouped(total.get())}</td>
            </tr>
        }
    });
    view! {
        <section class="box" aria-labelledby="others">
            <h2 id="others">{words.others_title}</h2>
            <table class="plain-table">
                <thead>
                    <tr>
                        <th scope="col">{words.column_counter}</th>
                        <th scope="col" class="number">{words.column_window}</th>
                        <th scope="col" class="number">{words.column_total}</th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
            <Latency view=view/>
            <ByAction view=view/>
        </section>
    }
}

#[component]
fn Latency(view: RwSignal<PanelView>) -> impl IntoView {
    let words = words();
    let latency = Memo::new(move |_| view.with(|view| view.latency_ms));
    let text = move |value: Option<f64>| match value {
        None => words.latency_none.to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.1} ms"),
        Some(ms) => format!("{} ms", grouped(ms.round() as i64)),
    };
    view! {
        <dl class="facts">
            <div><dt>{words.latency_title} " p50"</dt><dd class="number">{move || text(latency.get().p50)}</dd></div>
            <div><dt>"p95"</dt><dd class="number">{move || text(latency.get().p95)}</dd></div>
            <div><dt>"p99"</dt><dd class="number">{move || text(latency.get().p99)}</dd></div>
        </dl>
    }
}

#[component]
fn ByAction(view: RwSignal<PanelView>) -> impl IntoView {
    let words = words();
    let rows = move || {
        view.with(|view| {
            view.by_action
                .iter()
                .map(|row| {
                    let all = row.counters.arrivals();
                    let share = match all {
                        0 => words.latency_none.to_owned(),
                        all => format!("{:.1} %", (all - row.counters.new) as f64 / all as f64 * 100.0),
                    };
                    view! {
                        <div>
                            <dt><code>{row.action.clone()}</code></dt>
                            <dd class="number">
                                {fill("{name} {n}", &[("name", words.column_arrivals), ("n", &grouped(all))])} " · "
                                {fill("{name} {n}", &[("name", words.column_duplicates), ("n", &share)])}
                            </dd>
                        </div>
                    }
                })
                .collect_view()
        })
    };
    view! { <dl class="facts facts-wide" aria-label=words.by_action_title>{rows}</dl> }
}
