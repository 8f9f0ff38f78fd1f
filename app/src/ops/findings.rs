//! What the numbers point at, in sentences, each with its threshold and a way to the rows behind it.

use domain::{
    symptom::{Measure, Symptom, SymptomKind, symptoms},
    view::{PanelView, Window},
};
use leptos::prelude::*;

use super::counters::{milliseconds, percent};
use crate::text::{Words, fill, grouped, words};

/// The findings; they are written anew only when one of them changes.
#[component]
pub(crate) fn Findings(view: RwSignal<PanelView>) -> impl IntoView {
    let words = words();
    let found = Memo::new(move |_| view.with(|view| (symptoms(view), view.window)));
    let list = move || {
        let (found, window) = found.get();
        if found.is_empty() {
            return view! { <p class="quiet">{words.ops.findings_none}</p> }.into_any();
        }
        let items = found.into_iter().map(|symptom| {
            let threshold = fill(words.ops.threshold, &[("n", &measure(symptom.threshold))]);
            view! {
                <li data-finding=symptom.kind.as_ref().to_owned()>
                    {sentence(&symptom, words)} " "
                    <span class="quiet">{threshold}</span>
                    {rows_of(&symptom, window).map(|href| view! { " · " <a href=href>{words.ops.findings_rows}</a> })}
                </li>
            }
        });
        view! { <ul class="findings">{items.collect_view()}</ul> }.into_any()
    };
    view! {
        <section class="box" aria-labelledby="findings">
            <h2 id="findings">{words.ops.findings_title}</h2>
            {list}
        </section>
    }
}

fn sentence(symptom: &Symptom, words: &'static Words) -> String {
    let text = match symptom.kind {
        SymptomKind::Stuck => words.ops.find_stuck,
        SymptomKind::Approvals => words.ops.find_approvals,
        SymptomKind::Reuse => words.ops.find_reuse,
        SymptomKind::Conflict => words.ops.find_conflict,
        SymptomKind::FrontLock => words.ops.find_lock,
        SymptomKind::Compensated => words.ops.find_compensated,
        SymptomKind::Failed => words.ops.find_failed,
        SymptomKind::Mismatch => words.ops.find_mismatch,
        SymptomKind::Timeout => words.ops.find_timeout,
        SymptomKind::Slow => words.ops.find_slow,
    };
    fill(
        text,
        &[
            ("value", &measure(symptom.value)),
            ("action", symptom.action.as_deref().unwrap_or_default()),
            (
                "flow",
                &symptom
                    .flow_ms
                    .map_or_else(|| words.ops.latency_none.to_owned(), milliseconds),
            ),
        ],
    )
}

fn measure(measure: Measure) -> String {
    match measure {
        Measure::Count(n) => grouped(n),
        Measure::Share(share) => percent(share),
        Measure::Milliseconds(ms) => milliseconds(ms),
    }
}

/// Where the rows behind it are; events that are no arrivals and no records have none.
fn rows_of(symptom: &Symptom, window: Window) -> Option<String> {
    let arrivals = |outcome| {
        let action = symptom.action.as_deref().unwrap_or_default();
        format!("/arrivals?outcome={outcome}&action={action}&window={window}")
    };
    match symptom.kind {
        SymptomKind::Stuck => Some("/records?stuck=true".to_owned()),
        SymptomKind::Approvals => Some("/approvals".to_owned()),
        SymptomKind::Compensated => Some(format!("/compensated?window={window}")),
        SymptomKind::Reuse => Some(arrivals("reused")),
        SymptomKind::Conflict => Some(arrivals("constraint_conflict")),
        SymptomKind::Mismatch => Some(arrivals("mismatch")),
        SymptomKind::Failed => Some(format!("/failures?window={window}")),
        SymptomKind::Slow => Some(format!("/arrivals?window={window}")),
        SymptomKind::FrontLock | SymptomKind::Timeout => None,
    }
}
