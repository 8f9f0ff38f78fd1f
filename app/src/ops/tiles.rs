//! The five headline counters, equal in size: the window's number, its rate, its course, and the number of all time.

use domain::view::{Counters, PanelView};
use leptos::prelude::*;

use crate::{
    components::{At, Sparkline},
    text::{decimal, fill, grouped, words},
};

/// The five tiles.
#[component]
pub(crate) fn Tiles(
    view: RwSignal<PanelView>,
    /// The step that is read in one of the charts.
    step: RwSignal<Option<usize>>,
) -> impl IntoView {
    let words = words();
    let stuck_after = view.with_untracked(|view| view.stuck_after_seconds);
    let stuck_hint = fill(
        words.ops.tile_stuck_hint,
        &[("age", &words.duration(stuck_after))],
    );
    view! {
        <section class="tiles" aria-label=words.ops.headline_counters>
            <Tile view=view step=step name="new" label=words.ops.tile_new hint=words.ops.tile_new_hint read=|c| c.new/>
            <Tile view=view step=step name="reused" label=words.ops.tile_reused hint=words.ops.tile_reused_hint read=|c| c.reused/>
            <Tile view=view step=step name="processing" label=words.ops.tile_processing hint=words.ops.tile_processing_hint read=|c| c.processing/>
            <StuckTile view=view hint=stuck_hint/>
            <Tile view=view step=step name="constraint_conflict" label=words.ops.tile_conflict hint=words.ops.tile_conflict_hint read=|c| c.constraint_conflict/>
        </section>
    }
}

#[component]
fn Tile(
    view: RwSignal<PanelView>,
    step: RwSignal<Option<usize>>,
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    read: fn(&Counters) -> i64,
) -> impl IntoView {
    let words = words();
    let number = Memo::new(move |_| view.with(|view| read(&view.counters)));
    let total = Memo::new(move |_| view.with(|view| read(&view.totals)));
    let minutes = Memo::new(move |_| view.with(|view| view.window.minutes()));
    let course = Memo::new(move |_| {
        view.with(|view| {
            view.series
                .iter()
                .map(|point| read(&point.counters))
                .collect::<Vec<_>>()
        })
    });
    let href = move || {
        format!(
            "/arrivals?outcome={name}&window={}",
            view.with(|view| view.window)
        )
    };
    let rate = move || {
        let point = step
            .get()
            .and_then(|i| view.with(|view| view.series.get(i).cloned()));
        match point {
            Some(point) => {
                view! { <strong>{grouped(read(&point.counters))}</strong> " · " <At at=point.at/> }
                    .into_any()
            }
            None => {
                let rate = number.get() as f64 / f64::from(minutes.get());
                fill(words.ops.per_minute, &[("n", &rate_text(rate))]).into_any()
            }
        }
    };
    view! {
        <article class="tile" data-counter=name title=hint>
            <h2><a href=href>{label}</a></h2>
            <p class="tile-number number" data-value="window">{move || grouped(number.get())}</p>
            <p class="quiet number">{rate}</p>
            <Sparkline values=course at=step/>
            <p class="quiet number" data-value="total">{move || fill(words.ops.total, &[("n", &grouped(total.get()))])}</p>
        </article>
    }
}

/// Stuck is how records stand now, so it has an age where the others have a course.
#[component]
fn StuckTile(view: RwSignal<PanelView>, hint: String) -> impl IntoView {
    let words = words();
    let gauges = Memo::new(move |_| view.with(|view| view.gauges));
    let oldest = move || match gauges.get() {
        gauges if gauges.stuck == 0 => words.ops.oldest_none.to_owned(),
        gauges => fill(
            words.ops.oldest,
            &[("age", &words.duration(gauges.oldest_stuck_seconds))],
        ),
    };
    let in_flight = move || {
        let gauges = gauges.get();
        fill(
            words.ops.in_flight,
            &[
                ("n", &grouped(gauges.processing)),
                ("m", &grouped(gauges.unknown)),
            ],
        )
    };
    let class = move || {
        if gauges.get().stuck > 0 {
            "tile tile-stuck"
        } else {
            "tile"
        }
    };
    view! {
        <article class=class data-counter="stuck">
            <h2><a href="/records?stuck=true">{words.ops.tile_stuck}</a></h2>
            <p class="tile-number number" data-value="window">{move || grouped(gauges.get().stuck)}</p>
            <p class="quiet number">{oldest}</p>
            <p class="tile-hint quiet">{hint}</p>
            <p class="quiet number">{in_flight}</p>
        </article>
    }
}

/// A rate with as many places as it needs to differ from zero.
fn rate_text(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        r if r < 0.1 => decimal(r, 2),
        r if r < 100.0 => decimal(r, 1),
        r => grouped(r.round() as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::rate_text;

    #[test]
    fn small_rates_keep_their_places() {
        assert_eq!(rate_text(0.0), "0");
        assert_eq!(rate_text(0.05), "0.05");
        assert_eq!(rate_text(12.34), "12.3");
        assert_eq!(rate_text(12_345.6), "12,346");
    }
}
