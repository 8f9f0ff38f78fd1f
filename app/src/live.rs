//! Something that is read again while the page is in sight, and how fresh it is.

use std::{future::Future, time::Duration};

use leptos::{ev, prelude::*, task::spawn_local};
use web_sys::VisibilityState;

use crate::{
    clock::{self, clock},
    fault::{Fault, FaultKind},
    session::AccountResource,
    text::{fill, words},
};

/// How many times longer than a look takes it is not looked again: a store that is slow is not asked the more.
const SPARING: f64 = 5.0;

/// How fresh what a page shows is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pulse {
    /// When it came, by the reader's clock in milliseconds; `None` before hydration.
    received: RwSignal<Option<f64>>,
    /// Whether the last look was in vain.
    lost: RwSignal<bool>,
}

impl Pulse {
    /// Nothing is known before the first beat.
    pub(crate) fn new() -> Self {
        Self {
            received: RwSignal::new(None),
            lost: RwSignal::new(false),
        }
    }

    /// All that is shown has just come. The page may be gone by now; then there is nothing to set.
    pub(crate) fn beat(self) {
        self.received.try_set(Some(js_sys::Date::now()));
        self.lost.try_set(false);
    }

    /// The server answered, or did not, without anything new.
    pub(crate) fn note_lost(self, lost: bool) {
        self.lost.try_set(lost);
    }
}

/// How long a look is waited for before the next one is sent without its answer, in milliseconds.
const PATIENCE_MS: f64 = 10_000.0;

/// What was read last, and when.
#[derive(Debug)]
pub(crate) struct Watched<T: Send + Sync + 'static> {
    /// What was read last.
    pub(crate) data: RwSignal<T>,
    /// How fresh it is.
    pub(crate) pulse: Pulse,
}

impl<T: Send + Sync + 'static> Clone for Watched<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static> Copy for Watched<T> {}

impl<T: PartialEq + Clone + Send + Sync + 'static> Watched<T> {
    /// Begins with what the page was rendered from, and looks again every so often: while the page is in sight, and at once when it
    /// comes into sight again or the network is back.
    pub(crate) fn start<F, Answer>(first: T, every: Duration, load: F) -> Self
    where
        F: Fn() -> Answer + Clone + 'static,
        Answer: Future<Output = Result<T, Fault>> + 'static,
    {
        let watched = Self {
            data: RwSignal::new(first),
            pulse: Pulse::new(),
        };
        let account = use_context::<AccountResource>();
        let look = look(watched, load, account);
        {
            let look = look.clone();
            crate::pageshow::on_return(move || look(true));
        }
        Effect::new(move || {
            watched.pulse.beat();
            let (now, later) = (look.clone(), look.clone());
            if let Ok(timer) = set_interval_with_handle(move || later(false), every) {
                on_cleanup(move || timer.clear());
            }
            let online = look.clone();
            let listeners = [
                window_event_listener(ev::online, move |_| online(true)),
                window_event_listener(
                    ev::Custom::<ev::Event>::new("visibilitychange"),
                    move |_| now(true),
                ),
            ];
            on_cleanup(move || listeners.into_iter().for_each(|listener| listener.remove()));
        });
        watched
    }

    /// Takes over what came in another way than by a look.
    pub(crate) fn take(self, data: T) {
        self.pulse.beat();
        if self.data.try_with_untracked(|known| *known != data) == Some(true) {
            self.data.try_set(data);
        }
    }
}

/// One look: never while nobody sees it. Unless it is `urgent`, it waits for the one before it, and comes seldom when they take long; an
/// urgent one does not, since what a phone sent before it slept may never be answered.
fn look<T, F, Answer>(
    watched: Watched<T>,
    load: F,
    account: Option<AccountResource>,
) -> impl Fn(bool) + Clone + 'static
where
    T: PartialEq + Clone + Send + Sync + 'static,
    F: Fn() -> Answer + Clone + 'static,
    Answer: Future<Output = Result<T, Fault>> + 'static,
{
    let not_before = StoredValue::new(0.0_f64);
    // The numbers of the last look that was begun, and of the last one that was answered; when the former was.
    let (begun, answered) = (StoredValue::new(0_u32), StoredValue::new(0_u32));
    let begun_at = StoredValue::new(0.0_f64);
    move |urgent: bool| {
        let begin = js_sys::Date::now();
        let hidden = document().visibility_state() != VisibilityState::Visible;
        let waits = begun.get_value() != answered.get_value();
        let is_given_up = begin - begun_at.get_value() > PATIENCE_MS;
        if waits && is_given_up {
            watched.pulse.note_lost(true);
        }
        let busy = waits && !is_given_up;
        if hidden || !urgent && (busy || begin < not_before.get_value()) {
            return;
        }
        begun_at.set_value(begin);
        let number = begun.get_value() + 1;
        begun.set_value(number);
        let answer = load();
        spawn_local(async move {
            let answer = answer.await;
            let now = js_sys::Date::now();
            // The page may be gone by now, or a later look was quicker.
            if answered.try_get_value().is_none_or(|last| last >= number) {
                return;
            }
            answered.try_set_value(number);
            not_before.try_update_value(|at| *at = now + (now - begin) * SPARING);
            match answer {
                Ok(data) => watched.take(data),
                Err(fault) => {
                    watched.pulse.note_lost(true);
                    if let (FaultKind::SignedOut, Some(account)) = (fault.kind, account) {
                        account.0.refetch();
                    }
                }
            }
        });
    }
}

/// How fresh it is, in words.
#[component]
pub(crate) fn Freshness(
    /// Of what the page shows.
    pulse: Pulse,
    /// The moment of what the page was rendered from, where that is known; RFC 3339.
    at: Option<String>,
) -> impl IntoView {
    let words = words();
    let clock = clock();
    let age = Memo::new(move |_| Some((clock.now()? - pulse.received.get()?).max(0.0)));
    let state = move || match (age.get(), pulse.lost.get()) {
        (None, _) => words.live_off,
        (_, true) => words.live_lost,
        (_, false) => words.live_open,
    };
    let text = move || match age.get() {
        None => at.as_deref().map(clock::plain).unwrap_or_default(),
        Some(ms) => fill(
            words.data_age,
            &[("age", &words.duration((ms / 1_000.0) as i64))],
        ),
    };
    let class = move || match (age.get(), pulse.lost.get()) {
        (None, _) => "dot",
        (_, true) => "dot dot-lost",
        (_, false) => "dot dot-live",
    };
    view! {
        <p class="pulse freshness">
            <span class=class aria-hidden="true"></span>
            <span class="pulse-state" role="status">{state}</span>
            <span class="quiet number pulse-age">{text}</span>
        </p>
    }
}
