//! Moves one submission through its phases: the reducer of `domain` decides, this carries out.
//!
//! It runs in the browser only; on the server it is a value that nothing happens to. It never makes a key and never picks
//! a phase: both come from [`Intent`].

mod answers;
mod standing;

use std::time::Duration;

use domain::{
    action::TaskKind,
    phase::{ANSWER_TIMEOUT_MS, ClientEvent, Intent, Phase, Todo},
    view::{AttemptView, SubmissionView, TaskStatus, TaskView},
};
use leptos::{ev, prelude::*};
use web_sys::VisibilityState;

use super::{
    api::TaskPage,
    storage::{self, Shelf},
};
use crate::{live::Pulse, session::AccountResource};

/// The pauses between two questions about an unknown result, in milliseconds; the last one repeats.
const BACK_OFF_MS: [u32; 5] = [500, 1_000, 2_000, 4_000, 8_000];

/// How much is added to a pause at most, as a part of it, so that many clients do not ask in step.
const JITTER: f64 = 0.25;

/// How long another tab of this browser is left to its own request before this one asks too, in milliseconds.
const OTHER_TAB_MS: u32 = ANSWER_TIMEOUT_MS + 1_000;

/// How long after the end of a lease it is asked about, in milliseconds: sooner it might still be alive.
const LEASE_MARGIN_MS: u32 = 50;

/// How often a page at rest looks whether the task stands otherwise by now: another device, a teacher.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How long a refusal has to be in sight before a press can mean "now something else", in milliseconds; a press before that was
/// meant for what stood there before.
const SEEN_MS: f64 = 700.0;

/// What keeps a submission from going on, besides the server being silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hurdle {
    /// The browser has no network.
    Offline,
    /// Nobody is signed in any more, or somebody else.
    SignedOut,
}

/// One submission under way on one page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    /// The intent, with its phase.
    pub(crate) intent: RwSignal<Intent>,
    /// The task, as last read from the server.
    pub(crate) task: RwSignal<TaskView>,
    /// What was handed in, newest first.
    pub(crate) attempts: RwSignal<Vec<AttemptView>>,
    /// The submission that counts, as read back from the server.
    pub(crate) submission: RwSignal<Option<SubmissionView>>,
    /// What is in the way.
    pub(crate) hurdle: RwSignal<Option<Hurdle>>,
    /// How fresh the task, its attempts and the submission are.
    pub(crate) pulse: Pulse,
    /// Why the version before the one at hand was refused; the next press begins anew.
    pub(crate) notice: RwSignal<Option<String>>,
    shelf: StoredValue<Shelf>,
    /// The number of the newest request or question; answers to older ones decide only when they are definite.
    ticket: StoredValue<u32>,
    asks: StoredValue<usize>,
    /// The server's own wish for the next pause, in milliseconds.
    retry_after_ms: StoredValue<u32>,
    /// When the lease of a running execution ends, at the latest worth waiting for, in milliseconds from the last answer.
    lease_ms: StoredValue<Option<u32>>,
    /// Since when a refusal is in sight, by the reader's clock; `None`: there is none, or nobody has looked yet.
    in_sight_since: StoredValue<Option<f64>>,
    account: StoredValue<Option<AccountResource>>,
}

impl Machine {
    /// A machine at rest for a page.
    pub(crate) fn new(page: &TaskPage) -> Self {
        let mut intent = Intent::idle(
            page.task.id.clone(),
            page.student_id.clone(),
            page.task.submit_version,
            page.client_id.clone(),
        );
        intent.ordinal = page.ordinal;
        Self {
            intent: RwSignal::new(intent),
            task: RwSignal::new(page.task.clone()),
            attempts: RwSignal::new(page.attempts.clone()),
            submission: RwSignal::new(page.task.submission.clone()),
            hurdle: RwSignal::new(None),
            pulse: Pulse::new(),
            notice: RwSignal::new(None),
            shelf: StoredValue::new(Shelf::new(&page.student_id, &page.task.id)),
            ticket: StoredValue::new(0),
            asks: StoredValue::new(0),
            retry_after_ms: StoredValue::new(0),
            lease_ms: StoredValue::new(None),
            in_sight_since: StoredValue::new(None),
            account: StoredValue::new(use_context()),
        }
    }

    /// Whether the task, as last read, takes nothing more of the version at hand.
    pub(crate) fn is_settled(self) -> bool {
        let version = self.intent.with(|intent| intent.submit_version);
        self.task.with(|task| is_settled(task, version))
    }

    /// Whether the version at hand is handed in, from here or from elsewhere.
    pub(crate) fn is_done(self) -> bool {
        self.intent.with(|intent| intent.phase == Phase::Submitted)
            || self.intent.with(Intent::is_open) && self.is_settled()
    }

    /// Where this task's intent and draft are kept.
    pub(crate) fn shelf(self) -> Shelf {
        self.shelf.get_value()
    }

    /// Takes up what was under way, and listens to everything that may have changed meanwhile.
    pub(crate) fn start(self) {
        Effect::new(move || {
            self.pulse.beat();
            untrack(|| {
                self.intent.update(|intent| {
                    intent.client_id = storage::client_id(&intent.client_id);
                });
                self.resume();
            });
        });
        crate::pageshow::on_return(move || {
            self.resume();
            self.look_again();
        });
        Effect::new(move || {
            let look = move || {
                if is_visible() && self.is_at_rest() {
                    self.read_back();
                }
            };
            if let Ok(timer) = set_interval_with_handle(look, LOOK_EVERY) {
                on_cleanup(move || timer.clear());
            }
            let listeners = [
                window_event_listener(ev::online, move |_| self.look_again()),
                window_event_listener(ev::offline, move |_| self.note_offline()),
                window_event_listener(
                    ev::Custom::<ev::Event>::new("visibilitychange"),
                    move |_| self.look_again(),
                ),
                window_event_listener(ev::storage, move |event| {
                    if self.shelf().is_intent(event.key()) {
                        self.follow_other_tab();
                    }
                }),
            ];
            on_cleanup(move || listeners.into_iter().for_each(|listener| listener.remove()));
        });
    }

    /// The person pressed the button.
    pub(crate) fn press(self, content: String) {
        if self.hurdle.get_untracked() == Some(Hurdle::SignedOut) || self.is_unseen() {
            return;
        }
        // RACE: another tab may have pressed since; its storage event may not have been delivered yet.
        self.adopt();
        // A refusal that comes from there has not been seen here.
        if self.is_unseen() || untrack(|| self.is_done()) {
            return;
        }
        self.notice.set(None);
        self.asks.set_value(0);
        self.retry_after_ms.set_value(0);
        self.dispatch(ClientEvent::Press { content });
    }

    /// Whether there is a refusal that the person cannot have seen yet.
    fn is_unseen(self) -> bool {
        let refused = self
            .intent
            .with_untracked(|intent| matches!(intent.phase, Phase::Refused { .. }))
            || self.notice.with_untracked(Option::is_some);
        let seen = |since: f64| js_sys::Date::now() - since >= SEEN_MS;
        refused && !self.in_sight_since.get_value().is_some_and(seen)
    }

    /// Notes that a refusal is in sight from now on, if the page is.
    fn show_refusal(self) {
        let since = is_visible().then(js_sys::Date::now);
        self.in_sight_since.set_value(since);
    }

    /// Takes over what the storage holds, unless it belongs to a version that is done with.
    fn adopt(self) {
        let (Some(mut kept), Some(own)) = (self.shelf().intent(), self.intent.try_get_untracked())
        else {
            return;
        };
        let finished = kept.is_open() || kept.phase == Phase::Submitted;
        if finished && kept.submit_version != own.submit_version {
            return;
        }
        if !follows(&own, &kept) {
            return;
        }
        if kept.is_open()
            && self
                .task
                .with_untracked(|task| is_settled(task, kept.submit_version))
        {
            kept.phase = Phase::Idle;
        }
        if kept != own {
            if matches!(kept.phase, Phase::Refused { .. }) {
                self.show_refusal();
            }
            self.intent.try_set(kept);
        }
    }

    /// After a load, or when the browser brings the page back: a request of a page that is gone has no answer any more.
    fn resume(self) {
        self.adopt();
        let Some(before) = self.intent.try_get_untracked() else {
            return;
        };
        let (after, todo) = before.clone().resume();
        if todo != Todo::Rest {
            self.asks.set_value(0);
            self.shelf().keep_intent(&after);
            self.intent.try_set(after);
            self.ask_after(0);
        } else if before.phase == Phase::Submitted {
            self.read_back();
        }
    }

    /// The network or the person is back: no need to wait for the rest of the pause.
    fn look_again(self) {
        self.hurdle.try_update(|hurdle| {
            if *hurdle == Some(Hurdle::Offline) && window().navigator().on_line() {
                *hurdle = None;
            }
        });
        if !is_visible() {
            return;
        }
        if self.in_sight_since.get_value().is_none() {
            self.show_refusal();
        }
        if self.is_at_rest() {
            return self.read_back();
        }
        let unknown = self
            .intent
            .try_with_untracked(|intent| intent.phase == Phase::Unknown);
        if unknown == Some(true) {
            self.asks.set_value(0);
            self.ask_after(0);
        }
    }

    /// Whether nothing is on its way.
    fn is_at_rest(self) -> bool {
        let resting = |intent: &Intent| !matches!(intent.phase, Phase::Submitting | Phase::Unknown);
        self.intent.try_with_untracked(resting) == Some(true)
    }

    fn note_offline(self) {
        self.hurdle.try_set(Some(Hurdle::Offline));
    }

    fn follow_other_tab(self) {
        self.adopt();
        match self.intent.try_get_untracked().map(|intent| intent.phase) {
            Some(Phase::Submitting | Phase::Unknown) => self.ask_after(OTHER_TAB_MS),
            Some(Phase::Submitted) => self.read_back(),
            _ => {}
        }
    }

    fn dispatch(self, event: ClientEvent) {
        let Some(before) = self.intent.try_get_untracked() else {
            return;
        };
        let (after, todo) = before.clone().apply(event);
        if after == before && todo == Todo::Rest {
            return;
        }
        // INVARIANT: the key and the content are kept before the first byte is sent.
        let shelf = self.shelf();
        shelf.keep_intent(&after);
        let phase = after.phase.clone();
        if phase == Phase::Submitted {
            shelf.forget_draft(&after.content);
        }
        if matches!(phase, Phase::Refused { .. }) {
            self.show_refusal();
        }
        self.intent.try_set(after);
        // What counts now, what it earned, and which version is current.
        if matches!(phase, Phase::Refused { .. } | Phase::Submitted) {
            self.read_back();
        }
        match todo {
            Todo::Rest => {}
            Todo::Send => self.send(),
            Todo::Ask => self.ask_after(self.pause_ms()),
        }
    }

    fn pause_ms(self) -> u32 {
        if self.hurdle.try_get_untracked().flatten() == Some(Hurdle::SignedOut) {
            return u32::MAX >> 1; // about 12 days: nothing is asked until the page is loaded anew
        }
        let asks = self.asks.get_value().min(BACK_OFF_MS.len() - 1);
        let pause = BACK_OFF_MS[asks].max(self.retry_after_ms.get_value());
        // No longer than the owner can be alive: the question after that sends the request again.
        let lease = self.lease_ms.get_value().unwrap_or(u32::MAX);
        let pause = pause.min(lease.saturating_add(LEASE_MARGIN_MS));
        let jitter = f64::from(pause) * JITTER * js_sys::Math::random();
        pause.saturating_add(jitter as u32)
    }

    fn is_about(self, key: &str) -> bool {
        self.intent.try_with_untracked(|intent| intent.key() == key) == Some(true)
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

/// Whether a task takes nothing more of this version: an assignment that was handed in.
fn is_settled(task: &TaskView, submit_version: i32) -> bool {
    task.kind == TaskKind::Assignment
        && task.status == TaskStatus::Submitted
        && task.submit_version <= submit_version
}

fn is_visible() -> bool {
    document().visibility_state() == VisibilityState::Visible
}

/// Whether a page whose own intent is `own` takes over what another tab has `kept` for the same version.
///
/// A text that was sent from here has its own fate: that of another text under the same key says nothing about it.
fn follows(own: &Intent, kept: &Intent) -> bool {
    match &own.phase {
        Phase::Idle => true,
        _ if kept.key() == own.key() => {
            own.phase != Phase::Submitted && kept.content == own.content
        }
        _ => own.is_open() && kept.ordinal > own.ordinal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(ordinal: u32, phase: Phase, content: &str) -> Intent {
        let mut intent = Intent::idle("7".into(), "12".into(), 1, "c".into());
        (intent.ordinal, intent.phase, intent.content) = (ordinal, phase, content.into());
        intent
    }

    #[test]
    fn tabs_follow_each_other_but_not_another_text() {
        let refused = || Phase::Refused {
            code: "task-closed".into(),
        };
        let idle = intent(1, Phase::Idle, "");
        assert!(follows(&idle, &intent(1, Phase::Submitting, "a")));
        let sent = intent(1, Phase::Submitting, "a");
        assert!(follows(&sent, &intent(1, Phase::Submitted, "a")));
        assert!(!follows(&sent, &intent(1, refused(), "b")));
        let done = intent(1, Phase::Submitted, "a");
        assert!(!follows(&done, &intent(1, Phase::Unknown, "a")));
        let no = intent(1, refused(), "a");
        assert!(follows(&no, &intent(2, Phase::Submitting, "b")));
        assert!(!follows(&intent(2, refused(), "a"), &no));
    }
}
