//! The counters that are not headlines, and how well it goes, in all and by action: quiet, in small tables.

use domain::{
    symptom::COMPENSATION_SHARE,
    view::{Counters as Numbers, PanelView},
};
use leptos::prelude::*;

use crate::text::{Words, decimal, fill, grouped, words};

type Name = fn(&'static Words) -> &'static str;
type Read = fn(&Numbers) -> i64;

/// Every counter that has no tile.
const ROWS: [(&str, Name, Read); 8] = [
    ("unknown", |w| w.ops.counter_unknown, |c| c.unknown),
    ("mismatch", |w| w.ops.counter_mismatch, |c| c.mismatch),
    (
        "failed_final",
        |w| w.ops.counter_failed_final,
        |c| c.failed_final,
    ),
    (
        "failed_retryable",
        |w| w.ops.counter_failed_retryable,
        |c| c.failed_retryable,
    ),
    (
        "timeout_after_success",
        |w| w.ops.counter_timeout_after_success,
        |c| c.timeout_after_success,
    ),
    (
        "compensated",
        |w| w.ops.counter_compensated,
        |c| c.compensated,
    ),
    (
        "front_lock_expired_suspected",
        |w| w.ops.counter_lock_expired,
        |c| c.front_lock_expired_suspected,
    ),
    (
        "front_lock_release_mismatch",
        |w| w.ops.counter_lock_mismatch,
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
                <th scope="row">{rows_of(key, view, name(words))}</th>
                <td class="number" data-value="window">{move || grouped(number.get())}</td>
                <td class="number quiet" data-value="total">{move || grouped(total.get())}</td>
            </tr>
        }
    });
    view! {
        <section class="box" aria-labelledby="others">
            <h2 id="others">{words.ops.others_title}</h2>
            <table class="plain-table">
                <thead>
                    <tr>
                        <th scope="col">{words.ops.column_counter}</th>
                        <th scope="col" class="number">{words.ops.column_window}</th>
                        <th scope="col" class="number">{words.ops.column_total}</th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </section>
    }
}

/// The counter's name, as a link to the rows that it counts, where it counts rows.
fn rows_of(key: &'static str, view: RwSignal<PanelView>, name: &'static str) -> AnyView {
    let window = move || view.with(|view| view.window);
    match key {
        "unknown" | "mismatch" => {
            let href = move || format!("/arrivals?outcome={key}&window={}", window());
            view! { <a href=href>{name}</a> }.into_any()
        }
        "failed_final" => {
            let href = move || format!("/records?state=FAILED_FINAL&window={}", window());
            view! { <a href=href>{name}</a> }.into_any()
        }
        "failed_retryable" => {
            let href = move || format!("/failures?window={}", window());
            view! { <a href=href>{name}</a> }.into_any()
        }
        "compensated" => {
            let href = move || format!("/compensated?window={}", window());
            view! { <a href=href>{name}</a> }.into_any()
        }
        _ => name.into_any(),
    }
}

/// A share with as many places as it needs.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => format!("{} %", decimal(p, 2)),
        p if (10.0..99.95).contains(&p) => format!("{} %", decimal(p, 0)),
        p => format!("{} %", decimal(p, 1)),
    }
}

/// A length of time.
pub(super) fn milliseconds(ms: f64) -> String {
    if ms < 10.0 {
        format!("{} ms", decimal(ms, 1))
    } else {
        format!("{} ms", grouped(ms.round() as i64))
    }
}

/// How well it goes: shares and lengths of time, in all and by action.
#[component]
pub(crate) fn Shares(view: RwSignal<PanelView>) -> impl IntoView {
    let words = words();
    let latency = Memo::new(move |_| view.with(|view| view.latency_ms));
    let text = move |value: Option<f64>| {
        value.map_or_else(|| words.ops.latency_none.to_owned(), milliseconds)
    };
    let share =
        move |value: Option<f64>| value.map_or_else(|| words.ops.latency_none.to_owned(), percent);
    let counters = Memo::new(move |_| view.with(|view| view.counters));
    let reference = fill(words.ops.reference, &[("n", &percent(COMPENSATION_SHARE))]);
    view! {
        <section class="box shares" aria-labelledby="shares">
            <h2 id="shares" class="visually-hidden">{words.ops.shares_title}</h2>
            <dl class="facts">
                <div><dt>{words.ops.success_title}</dt><dd class="number" data-value="success">{move || share(counters.get().success_share())}</dd></div>
                <div>
                    <dt>{words.ops.compensation_title}</dt>
                    <dd class="number">{move || share(counters.get().compensation_share())} " " <span class="quiet">{reference}</span></dd>
                </div>
                <div><dt>{words.ops.latency_title} " p50"</dt><dd class="number">{move || text(latency.get().p50)}</dd></div>
                <div><dt>"p95"</dt><dd class="number">{move || text(latency.get().p95)}</dd></div>
                <div><dt>"p99"</dt><dd class="number">{move || text(latency.get().p99)}</dd></div>
            </dl>
            <ByAction view=view/>
        </section>
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
                    let none = || words.ops.latency_none.to_owned();
                    let share = row.counters.duplicate_share().map_or_else(none, percent);
                    let flow = |ms: Option<f64>| ms.map_or_else(none, milliseconds);
                    view! {
                        <tr>
                            <th scope="row"><code>{row.action.clone()}</code></th>
                            <td class="number">{grouped(row.counters.arrivals())}</td>
                            <td class="number">{share}</td>
                            <td class="number">{flow(row.flow_ms.p50)}</td>
                            <td class="number">{flow(row.flow_ms.p95)}</td>
                        </tr>
                    }
                })
                .collect_view()
        })
    };
    view! {
        <div class="scroll" role="group" tabindex="0" aria-label=words.ops.by_action_title>
        <table class="plain-table" aria-label=words.ops.by_action_title>
            <thead>
                <tr>
                    <th scope="col">{words.ops.column_action}</th>
                    <th scope="col" class="number">{words.ops.column_arrivals}</th>
                    <th scope="col" class="number">{words.ops.column_duplicates}</th>
                    <th scope="col" class="number">{words.ops.flow_title} " p50"</th>
                    <th scope="col" class="number">"p95"</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
        </div>
    }
}
