//! Charts over time as inline SVG: colours come from classes, geometry from attributes, so a strict policy has nothing to forbid.
//!
//! Both are drawn in steps, because a counter of a minute holds for that minute and not for the moment between two.

use std::fmt::Write as _;

use leptos::prelude::*;

use crate::text::decimal;

/// Width of the drawing in its own units; the page stretches it.
const WIDTH: f64 = 600.0;

/// A line without axes. Which step is read is shared with the other charts of the page, which show its numbers; for whoever does not
/// look, those stand in the table.
#[component]
pub(crate) fn Sparkline(
    /// Oldest first.
    #[prop(into)]
    values: Signal<Vec<i64>>,
    /// The step that is read.
    at: RwSignal<Option<usize>>,
) -> impl IntoView {
    const HEIGHT: f64 = 28.0;
    let paths = Memo::new(move |_| {
        values.with(|values| {
            let top = values.iter().copied().max().unwrap_or(0).max(1);
            let line = steps(values, |v| y(v, top, HEIGHT - 2.0) + 1.0);
            let area = format!("{line}V28H0Z");
            (line, area)
        })
    });
    let steps = Memo::new(move |_| values.with(Vec::len));
    view! {
        <svg class="sparkline" viewBox="0 0 600 28" preserveAspectRatio="none" aria-hidden="true" on:pointerleave=move |_| at.set(None)>
            <path class="sparkline-area" d=move || paths.get().1></path>
            <path class="sparkline-line" d=move || paths.get().0></path>
            {move || columns(steps.get(), at, "28")}
        </svg>
    }
}

/// One layer of a [`StackedArea`], lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Its class, which gives the colour.
    pub(crate) class: &'static str,
    /// Its values, oldest first.
    pub(crate) values: Vec<i64>,
}

/// Layers on top of each other; the caller gives the text alternative, the scale and the legend.
#[component]
pub(crate) fn StackedArea(
    /// Lowest first, all of one length.
    #[prop(into)]
    layers: Signal<Vec<Layer>>,
    /// How many steps there are.
    #[prop(into)]
    steps: Signal<usize>,
    /// The value at the top edge.
    #[prop(into)]
    top: Signal<i64>,
    /// The step that is read, by pointer or by arrow keys.
    at: RwSignal<Option<usize>>,
    /// What the picture says, in words.
    #[prop(into)]
    label: Signal<String>,
) -> impl IntoView {
    let areas = Memo::new(move |_| layers.with(|layers| stacked(layers, top.get())));
    let step = move |event: leptos::ev::KeyboardEvent| {
        let last = steps.get_untracked().saturating_sub(1);
        let now = at.get_untracked();
        let next = match event.key().as_str() {
            "ArrowLeft" => now.map_or(last, |i| i.saturating_sub(1)),
            "ArrowRight" => now.map_or(0, |i| (i + 1).min(last)),
            "Home" => 0,
            "End" => last,
            "Escape" => return at.set(None),
            _ => return,
        };
        event.prevent_default();
        at.set(Some(next));
    };
    view! {
        <svg class="area" viewBox="0 0 600 160" preserveAspectRatio="none" role="img" tabindex="0"
            aria-label=move || label.get() on:keydown=step on:pointerleave=move |_| at.set(None)>
            <path class="grid" d="M0 40H600M0 80H600M0 120H600"></path>
            {move || {
                areas
                    .get()
                    .into_iter()
                    .map(|(class, d)| view! { <path class=class d=d></path> })
                    .collect_view()
            }}
            {move || columns(steps.get(), at, "160")}
        </svg>
    }
}

/// A column over each step, by which the step is read.
fn columns(n: usize, at: RwSignal<Option<usize>>, height: &'static str) -> impl IntoView {
    let width = WIDTH / n.max(1) as f64;
    let columns = (0..n).map(|i| {
        let class = move || if at.get() == Some(i) { "column is-read" } else { "column" };
        view! {
            <rect class=class x=decimal(i as f64 * width, 2) y="0" width=decimal(width, 2) height=height
                on:pointerenter=move |_| at.set(Some(i))></rect>
        }
    });
    columns.collect_view()
}

/// The outlines of the layers, lowest first, in a box of 600 × 160.
fn stacked(layers: &[Layer], top: i64) -> Vec<(&'static str, String)> {
    const HEIGHT: f64 = 160.0;
    let n = layers.first().map_or(0, |layer| layer.values.len());
    let top = top.max(1);
    let mut below = vec![0_i64; n];
    let mut areas = Vec::with_capacity(layers.len());
    for layer in layers {
        let above: Vec<i64> = below
            .iter()
            .zip(&layer.values)
            .map(|(base, value)| base + value)
            .collect();
        if above != below {
            let mut d = steps(&above, |v| y(v, top, HEIGHT));
            // Back along the layer below, from right to left.
            let width = WIDTH / n.max(1) as f64;
            for (i, base) in below.iter().enumerate().rev() {
                let (at, x) = (y(*base, top, HEIGHT), i as f64 * width);
                let _ = write!(d, "V{}H{}", decimal(at, 2), decimal(x, 2));
            }
            d.push('Z');
            areas.push((layer.class, d));
        }
        below = above;
    }
    areas
}

/// The highest stack.
pub(crate) fn highest(layers: &[Layer]) -> i64 {
    let n = layers.first().map_or(0, |layer| layer.values.len());
    (0..n)
        .map(|i| layers.iter().filter_map(|layer| layer.values.get(i)).sum())
        .max()
        .unwrap_or(0)
}

/// The end of a scale that has room for this value, and whose quarters are whole and easy to read.
pub(crate) fn scale_end(value: i64) -> i64 {
    const QUARTERS: [i64; 8] = [1, 2, 3, 4, 5, 6, 8, 10];
    let mut unit = 1;
    while unit < i64::MAX / 100 {
        if let Some(quarter) = QUARTERS.iter().find(|quarter| value < 4 * *quarter * unit) {
            return 4 * quarter * unit;
        }
        // Tens of ten would be hundreds; between them 15 and 25 are easy to read, too.
        if let Some(quarter) = [15, 25].iter().find(|quarter| value < 4 * *quarter * unit) {
            return 4 * quarter * unit;
        }
        unit *= 10;
    }
    value
}

/// A path in steps from the left edge to the right one.
fn steps(values: &[i64], height: impl Fn(i64) -> f64) -> String {
    let width = WIDTH / values.len().max(1) as f64;
    let mut d = String::new();
    for (i, value) in values.iter().enumerate() {
        let (at, x) = (height(*value), (i + 1) as f64 * width);
        let head = if i == 0 { "M0 " } else { "V" };
        // Writing to a string cannot fail.
        let _ = write!(d, "{head}{}H{}", decimal(at, 2), decimal(x, 2));
    }
    if d.is_empty() {
        format!("M0 {}H600", decimal(height(0), 2))
    } else {
        d
    }
}

fn y(value: i64, top: i64, height: f64) -> f64 {
    height - value as f64 / top as f64 * height
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_stand_on_each_other_and_fill_the_width() {
        let layers = [
            Layer {
                class: "a",
                values: vec![1, 3],
            },
            Layer {
                class: "b",
                values: vec![1, 1],
            },
            Layer {
                class: "c",
                values: vec![0, 0],
            },
        ];
        assert_eq!(highest(&layers), 4);
        assert_eq!(
            stacked(&layers, 4),
            [
                (
                    "a",
                    "M0 120.00H300.00V40.00H600.00V160.00H300.00V160.00H0.00Z".to_owned()
                ),
                (
                    "b",
                    "M0 80.00H300.00V0.00H600.00V40.00H300.00V120.00H0.00Z".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn a_scale_has_room_above_its_highest_value() {
        let ends: Vec<_> = [0, 1, 3, 9, 10, 39, 40, 120].map(scale_end).to_vec();
        assert_eq!(ends, [4, 4, 4, 12, 12, 40, 60, 160]);
    }

    #[test]
    fn nothing_is_a_flat_line() {
        assert_eq!(steps(&[], |v| y(v, 1, 10.0)), "M0 10.00H600");
        assert!(stacked(&[], 1).is_empty());
    }
}
