//! Takes one redemption from the press to its outcome, without a new page: it sends, asks, and sends again under the same key.
//!
//! It runs in the browser only. The key is the server's, made out of the sequence, and stands in the page's address before the first
//! byte is sent: a reload asks what became of it.

use std::time::Duration;

use domain::{IdempotencyKey, phase::ANSWER_TIMEOUT_MS};
use gloo_timers::future::TimeoutFuture;
use leptos::{ev, prelude::*, task::spawn_local};
use leptos_router::{NavigateOptions, hooks::use_navigate};

use super::rewards_api::{RewardForm, RewardPage, load_rewards, redeem_reward};
use crate::{
    fault::{Fault, FaultKind},
    live::{Pulse, Watched},
    path,
};

/// How often the page is read again.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// The pauses between two questions about a request that was not answered, in milliseconds; the last one repeats.
const BACK_OFF_MS: [u32; 5] = [500, 1_000, 2_000, 4_000, 8_000];

/// How much is added to a pause at most, as a part of it, so that many clients do not ask in step.
const JITTER: f64 = 0.25;

/// How long an outcome has to be in sight before a press can mean one more redemption, in milliseconds; a press before that was
/// meant for what stood there before.
const SEEN_MS: f64 = 700.0;

/// What is known of a request that is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// It may be answered any moment.
    Sending,
    /// It was not answered in time.
    Unanswered,
    /// The browser has no network.
    Offline,
}

/// The redemptions of one page.
#[derive(Clone, Copy)]
pub(super) struct Redeeming {
    watched: Watched<RewardPage>,
    /// The key that the page tells about.
    asked: RwSignal<Option<String>>,
    /// What is on its way, and how it stands.
    sent: RwSignal<Option<(RewardForm, Sent)>>,
    /// Why the last press was not accepted at all.
    refused: RwSignal<Option<String>>,
    /// The number of the newest request or question; what older ones lead to is not followed.
    ticket: StoredValue<u32>,
    asks: StoredValue<usize>,
    /// Since when the last outcome is in sight, by the reader's clock.
    settled_at: StoredValue<f64>,
    go: StoredValue<Go>,
}

/// Writes another address of this page.
type Go = std::sync::Arc<dyn Fn(&str) + Send + Sync>;

impl Redeeming {
    /// Begins with what the page was rendered from.
    pub(super) fn start(first: RewardPage, refused: Option<String>) -> Self {
        let asked = RwSignal::new(first.asked.as_ref().map(|asked| asked.key.clone()));
        let watched = Watched::start(first, LOOK_EVERY, move || {
            load_rewards(asked.get_untracked())
        });
        let navigate = use_navigate();
        let go: Go = std::sync::Arc::new(move |address: &str| {
            let options = NavigateOptions {
                replace: true,
                scroll: false,
                ..NavigateOptions::default()
            };
            navigate(address, options);
        });
        let redeeming = Self {
            watched,
            asked,
            sent: RwSignal::new(None),
            refused: RwSignal::new(refused),
            ticket: StoredValue::new(0),
            asks: StoredValue::new(0),
            settled_at: StoredValue::new(0.0),
            go: StoredValue::new(go),
        };
        redeeming.listen();
        redeeming
    }

    fn listen(self) {
        Effect::new(move || {
            let told = self.watched.data.with(|page| page.asked.clone());
            let Some(told) = told else { return };
            if self.is_about(&told.key) && told.state.is_some() {
                self.settle();
            }
            // What another device has begun is followed to its end, too.
            if self.asked.with_untracked(Option::is_none) {
                self.asked.set(Some(told.key));
            }
        });
        Effect::new(move || {
            let back = window_event_listener(ev::online, move |_| {
                if self.is_busy_untracked() {
                    self.asks.set_value(0);
                    self.ask_after(0);
                }
            });
            on_cleanup(move || back.remove());
        });
    }

    /// What the page shows.
    pub(super) fn page(self) -> RwSignal<RewardPage> {
        self.watched.data
    }

    /// How fresh it is.
    pub(super) fn pulse(self) -> Pulse {
        self.watched.pulse
    }

    /// Whether a request is on its way.
    pub(super) fn is_busy(self) -> bool {
        self.sent.with(Option::is_some)
    }

    /// How the request stands that is on its way.
    pub(super) fn sent(self) -> Option<Sent> {
        self.sent.with(|sent| sent.as_ref().map(|(_, sent)| *sent))
    }

    /// Why the last press was not accepted at all.
    pub(super) fn refused(self) -> Option<String> {
        self.refused.get()
    }

    fn is_busy_untracked(self) -> bool {
        self.sent.try_with_untracked(Option::is_some) == Some(true)
    }

    /// The person pressed the button of a reward.
    pub(super) fn press(self, form: RewardForm) {
        let is_seen = js_sys::Date::now() - self.settled_at.get_value() >= SEEN_MS;
        if self.is_busy_untracked() || !is_seen {
            return;
        }
        let Ok(key) = IdempotencyKey::from_text(&form.key) else {
            return;
        };
        self.refused.set(None);
        self.asks.set_value(0);
        self.asked.set(Some(form.key.clone()));
        self.sent.set(Some((form.clone(), Sent::Sending)));
        // INVARIANT: the key stands in the address before the first byte is sent.
        self.go
            .with_value(|go| go(&format!("/rewards?request={}", key.to_path_segment())));
        self.send(form);
    }

    fn send(self, form: RewardForm) {
        let ticket = self.next_ticket();
        set_timeout(
            move || {
                if self.is_current(ticket) && self.sent.try_with_untracked(is_sending) == Some(true)
                {
                    self.unanswered();
                }
            },
            Duration::from_millis(ANSWER_TIMEOUT_MS.into()),
        );
        // The request is not cut when the time is up: on a slow line its late answer is still the quickest one.
        spawn_local(async move {
            let key = form.key.clone();
            let RewardForm {
                reward, client_id, ..
            } = form;
            let answer =
                redeem_reward(reward.id, reward.next_sequence, client_id, key.clone()).await;
            if !self.is_about(&key) {
                return;
            }
            match answer {
                // Accepted; what became of it is read with everything else.
                Ok(None) => self.ask_after(0),
                Ok(Some(code)) => {
                    self.refused.try_set(Some(code));
                    self.settle();
                }
                Err(fault) if self.is_current(ticket) => self.failed(fault),
                Err(_) => {}
            }
        });
    }

    fn ask_after(self, pause_ms: u32) {
        let ticket = self.next_ticket();
        spawn_local(async move {
            TimeoutFuture::new(pause_ms).await;
            let Some((form, _)) = self.sent.try_get_untracked().flatten() else {
                return;
            };
            if !self.is_current(ticket) {
                return;
            }
            let answer = load_rewards(Some(form.key.clone())).await;
            if !self.is_about(&form.key) {
                return;
            }
            match answer {
                Ok(page) if has_arrived(&page) => {
                    self.watched.take(page);
                    self.settle();
                }
                // It never arrived: the same request once more.
                Ok(_) if self.is_current(ticket) => self.send(form),
                Err(fault) if self.is_current(ticket) => self.failed(fault),
                _ => {}
            }
        });
    }

    fn failed(self, fault: Fault) {
        self.pulse().note_lost(true);
        if matches!(fault.kind, FaultKind::SignedOut | FaultKind::WrongRole) {
            // The address holds the key: after the sign-in the page says what became of it.
            let here = self.asked.try_get_untracked().flatten().unwrap_or_default();
            let back = format!("/rewards?request={}", path::escape(&here));
            // The answer to leaving is that nobody is here to hear of a failure.
            return drop(window().location().assign(&path::sign_in(&back)));
        }
        self.unanswered();
    }

    /// No answer: from now on it is asked what became of it, with growing pauses.
    fn unanswered(self) {
        let now = if window().navigator().on_line() {
            Sent::Unanswered
        } else {
            Sent::Offline
        };
        self.sent.try_update(|sent| {
            if let Some((_, sent)) = sent {
                *sent = now;
            }
        });
        let asks = self
            .asks
            .try_update_value(|asks| {
                *asks += 1;
                *asks - 1
            })
            .unwrap_or(0);
        let pause = BACK_OFF_MS[asks.min(BACK_OFF_MS.len() - 1)];
        let jitter = f64::from(pause) * JITTER * js_sys::Math::random();
        self.ask_after(pause.saturating_add(jitter as u32));
    }

    fn settle(self) {
        self.settled_at.try_set_value(js_sys::Date::now());
        self.sent.try_set(None);
    }

    fn is_about(self, key: &str) -> bool {
        let about = |sent: &Option<(RewardForm, Sent)>| {
            sent.as_ref().is_some_and(|(form, _)| form.key == key)
        };
        self.sent.try_with_untracked(about) == Some(true)
    }

    fn next_ticket(self) -> u32 {
        self.ticket
            .try_update_value(|ticket| {
                *ticket += 1;
                *ticket
            })
            .unwrap_or_default()
    }

    fn is_current(self, ticket: u32) -> bool {
        self.ticket.try_get_value() == Some(ticket)
    }
}

fn is_sending(sent: &Option<(RewardForm, Sent)>) -> bool {
    matches!(sent, Some((_, Sent::Sending)))
}

fn has_arrived(page: &RewardPage) -> bool {
    page.asked
        .as_ref()
        .is_some_and(|asked| asked.state.is_some())
}
