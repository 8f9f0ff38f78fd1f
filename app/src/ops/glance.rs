//! The first line of the panel: is it well, is it live, how old are the numbers, over which time.

use domain::view::{FrontLockHealth, Window};
use leptos::prelude::*;

use super::{
    front_lock::FrontLock,
    live::{Live, Stream},
};
use crate::{
    clock::{self, clock},
    components::{Shape, icon},
    text::{Words, fill, grouped, words},
};

/// Numbers older than this are marked, in milliseconds: the stream sends at least every 2 s.
const OLD_MS: f64 = 6_000.0;

/// Health in words, the stream, and the window.
#[component]
pub(crate) fn Glance(live: Live) -> impl IntoView {
    let words = words();
    let gauges = Memo::new(move |_| live.view.with(|view| view.gauges));
    // What is old says nothing of now: before hydration the page is as of its loading, which the pulse tells.
    let is_known = Memo::new(move |_| {
        matches!(
            live.stream.get(),
            Stream::Off | Stream::Open | Stream::Paused | Stream::Connecting
        )
    });
    let refuses = Memo::new(move |_| {
        live.view
            .with(|view| view.front_lock == FrontLockHealth::Refusing)
    });
    let waiting = move || {
        let n = gauges.get().awaiting_approval;
        let text = fill(words.ops.glance_waiting, &[("n", &grouped(n))]);
        (n > 0).then(|| view! { " " <a href="/approvals">{text}</a> })
    };
    let health = move || {
        match gauges.get() {
        _ if !is_known.get() => view! {
            <p class="health health-unsure">{icon(Shape::Question)} <strong>{words.ops.glance_unsure}</strong></p>
        }
        .into_any(),
        gauges if gauges.stuck == 0 && refuses.get() => view! {
            <p class="health health-stuck">{icon(Shape::Clock)} <strong>{words.ops.glance_refuses}</strong> {waiting()}</p>
        }
        .into_any(),
        gauges if gauges.stuck == 0 => view! {
            <p class="health health-clear">{icon(Shape::Check)} <strong>{words.ops.glance_clear}</strong> {waiting()}</p>
        }
        .into_any(),
        gauges => {
            let age = words.duration(gauges.oldest_stuck_seconds);
            let text = fill(words.ops.glance_stuck, &[("n", &grouped(gauges.stuck)), ("age", &age)]);
            view! {
                <p class="health health-stuck">
                    {icon(Shape::Clock)} <strong>{text}</strong> " "
                    <a href="#stuck" rel="external">{words.ops.glance_see}</a> {waiting()}
                </p>
            }
            .into_any()
        }
    }
    };
    view! {
        <section class="glance" aria-label=words.ops.panel_title>
            <div class="glance-health" role="status">{health} <FrontLock live=live/></div>
            <Pulse live=live/>
            <Windows live=live/>
        </section>
    }
}

#[component]
fn Pulse(live: Live) -> impl IntoView {
    let words = words();
    let clock = clock();
    let age = Memo::new(move |_| {
        let (now, received) = (clock.now()?, live.received.get()?);
        Some((now - received).max(0.0))
    });
    let text = move || match age.get() {
        None => live.view.with(|view| clock::plain(&view.at)),
        Some(ms) => fill(
            words.data_age,
            &[("age", &words.duration((ms / 1_000.0) as i64))],
        ),
    };
    let class = move || match live.stream.get() {
        Stream::Open if age.get().is_some_and(|ms| ms > OLD_MS) => "dot dot-lost",
        Stream::Open => "dot dot-live",
        Stream::Lost => "dot dot-lost",
        Stream::Off | Stream::Connecting | Stream::Paused => "dot",
    };
    let pressed = move || if live.paused.get() { "true" } else { "false" };
    view! {
        <div class="pulse">
            <span class=class aria-hidden="true"></span>
            <span class="pulse-state" role="status">{move || stream_word(live.stream.get(), words)}</span>
            <span class="quiet number pulse-age">{text}</span>
            <button class="plain" type="button" aria-pressed=pressed on:click=move |_| live.paused.update(|p| *p = !*p)>
                {move || if live.paused.get() { words.resume } else { words.ops.pause }}
            </button>
        </div>
    }
}

const fn stream_word(stream: Stream, words: &'static Words) -> &'static str {
    match stream {
        Stream::Off => words.live_off,
        Stream::Connecting => words.ops.live_connecting,
        Stream::Open => words.live_open,
        Stream::Lost => words.live_lost,
        Stream::Paused => words.ops.live_paused,
    }
}

/// The word for a window.
pub(in crate::ops) const fn window_word(window: Window, words: &'static Words) -> &'static str {
    match window {
        Window::FiveMinutes => words.ops.window_5m,
        Window::OneHour => words.ops.window_1h,
        Window::OneDay => words.ops.window_24h,
        Window::OneWeek => words.ops.window_7d,
    }
}

#[component]
fn Windows(live: Live) -> impl IntoView {
    let words = words();
    let links = [Window::FiveMinutes, Window::OneHour, Window::OneDay, Window::OneWeek].map(|window| {
        let current = move || live.view.with(|view| view.window == window).then_some("page");
        view! {
            <a href=format!("/panel?window={window}") aria-current=current>{window_word(window, words)}</a>
        }
    });
    view! { <nav class="choices" aria-label=words.ops.window_label>{links.collect_view()}</nav> }
}
