//! A state as shape, word and colour; never colour alone.

use domain::{RecordState, view::TaskStatus};
use leptos::prelude::*;

use crate::text::words;

/// The state of a record.
#[component]
pub(crate) fn StateBadge(state: RecordState) -> impl IntoView {
    let words = words();
    let (class, shape) = match state {
        RecordState::Processing => ("state state-processing", Shape::HalfRing),
        RecordState::Succeeded => ("state state-succeeded", Shape::Check),
        RecordState::FailedFinal => ("state state-failed-final", Shape::BarredSquare),
        RecordState::FailedRetryable => ("state state-failed-retryable", Shape::RoundArrow),
        RecordState::Unknown => ("state state-unknown", Shape::Question),
    };
    view! {
        <span class=class>{icon(shape)} {words.state(state)}</span>
    }
}

/// For how long a record has been stuck, on top of its state.
#[component]
pub(crate) fn StuckBadge(
    /// In seconds.
    #[prop(into)]
    seconds: Signal<i64>,
) -> impl IntoView {
    let words = words();
    view! {
        <span class="state state-stuck">{icon(Shape::Clock)} {move || words.duration(seconds.get())}</span>
    }
}

/// How old a stuck record is, beside the oldest of its list; the age in words is its text alternative.
#[component]
pub(crate) fn AgeBar(
    /// Its age.
    #[prop(into)]
    seconds: Signal<i64>,
    /// The age of the oldest.
    #[prop(into)]
    oldest: Signal<i64>,
) -> impl IntoView {
    let width = move || (seconds.get() * 100 / oldest.get().max(1)).clamp(2, 100);
    view! {
        <svg class="age-bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
            <rect class="age-all" width="100" height="4"></rect>
            <rect class="age-part" width=width height="4"></rect>
        </svg>
    }
}

/// Whether a task was handed in.
#[component]
pub(crate) fn TaskBadge(status: TaskStatus) -> impl IntoView {
    let words = words();
    match status {
        TaskStatus::Pending => view! {
            <span class="state state-pending">{icon(Shape::Ring)} {words.status_pending}</span>
        },
        TaskStatus::Submitted => view! {
            <span class="state state-succeeded">{icon(Shape::Check)} {words.status_submitted}</span>
        },
    }
}

/// The shapes of look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Open.
    Ring,
    /// Executing.
    HalfRing,
    /// Done.
    Check,
    /// Refused for good.
    BarredSquare,
    /// Runs again.
    RoundArrow,
    /// Not known.
    Question,
    /// Too long.
    Clock,
}

/// One shape, drawn in the colour of its text.
pub(crate) fn icon(shape: Shape) -> impl IntoView {
    let (class, paths): (_, &[&str]) = match shape {
        Shape::Ring => ("icon", &["M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2"]),
        Shape::HalfRing => (
            "icon icon-half",
            &[
                "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2",
                "M8 4.5a3.5 3.5 0 0 1 0 7z",
            ],
        ),
        Shape::Check => ("icon", &["M2.5 8.5l3.5 4 7.5-9"]),
        Shape::BarredSquare => ("icon", &["M2.5 2.5h11v11h-11z", "M5 8h6"]),
        Shape::RoundArrow => ("icon", &["M13.5 8A5.5 5.5 0 1 1 11.6 3.8", "M12.2 1v3.2H9"]),
        Shape::Question => (
            "icon icon-dashed",
            &[
                "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2",
                "M6.3 6.4a1.8 1.8 0 1 1 2.4 1.7c-.5.2-.7.5-.7 1.1",
                "M8 11.2v.3",
            ],
        ),
        Shape::Clock => (
            "icon",
            &["M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2", "M8 5v3.2l2 1.6"],
        ),
    };
    let paths: Vec<_> = paths.iter().map(|d| view! { <path d=*d></path> }).collect();
    view! { <svg class=class viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">{paths}</svg> }
}
