//! Arrivals over time by outcome: a stacked area, with its legend, its scale, and the same numbers as a table.

use domain::view::{Counters, PanelView};
use leptos::prelude::*;

use crate::{
    components::{At, Empty, Layer, StackedArea, highest, scale_end},
    text::{Words, fill, grouped, words},
};

/// A bucket as the chart shows it.
#[derive(Clone, Copy)]
struct Series {
    class: &'static str,
    swatch: &'static str,
    name: fn(&'static Words) -> &'static str,
    read: fn(&Counters) -> i64,
}

/// The six buckets, the lowest layer first.
const SERIES: [Series; 6] = [
    Series {
        class: "bucket-new",
        swatch: "swatch swatch-new",
        name: |w| w.ops.bucket_new,
        read: |c| c.new,
    },
    Series {
        class: "bucket-reused",
        swatch: "swatch swatch-reused",
        name: |w| w.ops.bucket_reused,
        read: |c| c.reused,
    },
    Series {
        class: "bucket-processing",
        swatch: "swatch swatch-processing",
        name: |w| w.ops.bucket_processing,
        read: |c| c.processing,
    },
    Series {
        class: "bucket-unknown",
        swatch: "swatch swatch-unknown",
        name: |w| w.ops.bucket_unknown,
        read: |c| c.unknown,
    },
    Series {
        class: "bucket-conflict",
        swatch: "swatch swatch-conflict",
        name: |w| w.ops.bucket_conflict,
        read: |c| c.constraint_conflict,
    },
    Series {
        class: "bucket-mismatch",
        swatch: "swatch swatch-mismatch",
        name: |w| w.ops.bucket_mismatch,
        read: |c| c.mismatch,
    },
];

/// The chart.
#[component]
pub(crate) fn Arrivals(
    view: RwSignal<PanelView>,
    /// The step that is read.
    read: RwSignal<Option<usize>>,
) -> impl IntoView {
    let words = words();
    let layers = Memo::new(move |_| {
        view.with(|view| {
            SERIES
                .map(|s| Layer {
                    class: s.class,
                    values: view
                        .series
                        .iter()
                        .map(|point| (s.read)(&point.counters))
                        .collect(),
                })
                .to_vec()
        })
    });
    let most = Memo::new(move |_| layers.with(|layers| highest(layers)));
    let top = Memo::new(move |_| scale_end(most.get()));
    let sum = Memo::new(move |_| view.with(|view| view.counters.arrivals()));
    let label = Signal::derive(move || {
        let step = words.duration(view.with(|view| i64::from(view.window.step_minutes()) * 60));
        fill(
            words.ops.arrivals_summary,
            &[
                ("n", &grouped(sum.get())),
                ("max", &grouped(most.get())),
                ("step", &step),
            ],
        )
    });
    let steps = Memo::new(move |_| view.with(|view| view.series.len()));
    let reading = move || {
        let point = read
            .get()
            .and_then(|i| view.with(|view| view.series.get(i).cloned()));
        point.map(|point| view! { <At at=point.at/> " " {sentence(&point.counters, words)} })
    };
    let ends = move || {
        let (first, last) =
            view.with(|view| (view.series.first().map(|p| p.at.clone()), view.at.clone()));
        view! { {first.map(|at| view! { <At at=at/> })} <At at=last/> }
    };
    let legend = SERIES.map(|s| {
        let n = Memo::new(move |_| view.with(|view| (s.read)(&view.counters)));
        view! {
            <li><span class=s.swatch></span> {(s.name)(words)} " " <span class="number">{move || grouped(n.get())}</span></li>
        }
    });
    let empty = move || (sum.get() == 0).then(|| view! { <Empty text=words.ops.arrivals_empty/> });
    view! {
        <section class="box arrivals" aria-labelledby="arrivals">
            <h2 id="arrivals">{words.ops.arrivals_title}</h2>
            <div class="chart">
                <div class="chart-scale quiet number" aria-hidden="true">
                    {[4, 3, 2, 1].map(|quarter| view! { <span>{move || grouped(top.get() / 4 * quarter)}</span> })}
                </div>
                <StackedArea layers=layers steps=steps top=top at=read label=label/>
                {empty}
            </div>
            <p class="chart-ends quiet number">{ends}</p>
            <p class="chart-reading number" role="status">{reading}</p>
            <ul class="legend">{legend.collect_view()}</ul>
            <details>
                <summary>{words.ops.arrivals_table}</summary>
                <Numbers view=view/>
            </details>
        </section>
    }
}

fn sentence(counters: &Counters, words: &'static Words) -> String {
    let parts: Vec<_> = SERIES
        .iter()
        .map(|s| ((s.name)(words), (s.read)(counters)))
        .filter(|(_, n)| *n != 0)
        .map(|(name, n)| format!("{name} {}", grouped(n)))
        .collect();
    if parts.is_empty() {
        "0".to_owned()
    } else {
        parts.join(" · ")
    }
}

/// The chart's numbers, for everybody who would rather read than look.
#[component]
fn Numbers(view: RwSignal<PanelView>) -> impl IntoView {
    let words = words();
    let heads = SERIES.map(|s| view! { <th scope="col">{(s.name)(words)}</th> });
    let rows = move || {
        view.with(|view| {
            view.series
                .iter()
                .map(|point| {
                    let cells: Vec<_> = SERIES
                        .iter()
                        .map(|s| view! { <td class="number">{grouped((s.read)(&point.counters))}</td> })
                        .collect();
                    view! { <tr><th scope="row"><At at=point.at.clone()/></th>{cells}</tr> }
                })
                .collect_view()
        })
    };
    view! {
        <div class="scroll" role="region" tabindex="0" aria-labelledby="arrivals">
            <table class="plain-table">
                <thead><tr><th scope="col">{words.ops.arrivals_from}</th>{heads.collect_view()}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}
