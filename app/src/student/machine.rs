//! Moves one submission through its phases: the reducer of `domain` decides, this carries out.
//!
//! It runs in the browser only; on the server it is a value that nothing happens to. It never makes a key and never picks
//! a phase: both come from [`Intent`].

use std::time::Duration;

use domain::{
    RecordState,
    phase::{ANSWER_TIMEOUT_MS, ClientEvent, Intent, Phase, Todo},
    view::SubmissionView,
};
use gloo_timers::future::TimeoutFuture;
use leptos::{ev, prelude::*, task::spawn_local};
use web_sys::VisibilityState;

use super::{
    api::{Outcome, SubmitReply, TaskPage, load_task, request_status, submit_task},
    storage::{self, Shelf},
};
use crate::fault::{Fault, FaultKind};

/// The pauses between two questions about an unknown result, in milliseconds; the last one repeats.
const BACK_OFF_MS: [u32; 5] = [500, 1_000, 2_000, 4_000, 8_000];

/// How much is added to a pause at most, as a part of it, so that many clients do not ask in step.
const JITTER: f64 = 0.25;

/// How long another tab of this browser is left to its own request before this one asks too, in milliseconds.
const OTHER_TAB_MS: u32 = ANSWER_TIMEOUT_MS + 1_000;

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
    /// The submission that counts, as read back from the server.
    pub(crate) submission: RwSignal<Option<SubmissionView>>,
    /// What is in the way.
    pub(crate) hurdle: RwSignal<Option<Hurdle>>,
    shelf: StoredValue<Shelf>,
    /// The number of the newest request or question; answers to older ones decide only when they are definite.
    ticket: StoredValue<u32>,
    asks: StoredValue<usize>,
    /// The server's own wish for the next pause, in milliseconds.
    retry_after_ms: StoredValue<u32>,
    /// The task was handed in before this page was loaded, and takes nothing more.
    settled: bool,
}

impl Machine {
    /// A machine at rest for a page.
    pub(crate) fn new(page: &TaskPage, settled: bool) -> Self {
        let mut intent = Intent::idle(
            page.task.id.clone(),
            page.student_id.clone(),
            page.task.submit_version,
            page.client_id.clone(),
        );
        intent.ordinal = page.ordinal;
        Self {
            intent: RwSignal::new(intent),
            submission: RwSignal::new(page.task.submission.clone()),
            hurdle: RwSignal::new(None),
            shelf: StoredValue::new(Shelf::new(&page.student_id, &page.task.id)),
            ticket: StoredValue::new(0),
            asks: StoredValue::new(0),
            retry_after_ms: StoredValue::new(0),
            settled,
        }
    }

    /// Where this task's intent and draft are kept.
    pub(crate) fn shelf(self) -> Shelf {
        self.shelf.get_value()
    }

    /// Takes up what was under way, and listens to everything that may have changed meanwhile.
    pub(crate) fn start(self) {
        Effect::new(move || {
            untrack(|| {
                self.intent.update(|intent| {
                    intent.client_id = storage::client_id(&intent.client_id);
                });
                self.resume();
            });
        });
        crate::pageshow::on_return(move || self.resume());
        Effect::new(move || {
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
        // RACE: another tab may have pressed since; its storage event may not have been delivered yet.
        self.adopt();
        self.asks.set_value(0);
        self.retry_after_ms.set_value(0);
        self.dispatch(ClientEvent::Press { content });
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
        if self.settled && kept.is_open() {
            kept.phase = Phase::Idle;
        }
        if kept != own {
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
        let unknown = self
            .intent
            .try_with_untracked(|intent| intent.phase == Phase::Unknown);
        if unknown == Some(true) && document().visibility_state() == VisibilityState::Visible {
            self.asks.set_value(0);
            self.ask_after(0);
        }
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
        self.intent.try_set(after);
        match phase {
            Phase::Refused { code } if code == "already-submitted" => self.read_back(),
            Phase::Submitted if self.is_submission_missing() => self.read_back(),
            _ => {}
        }
        match todo {
            Todo::Rest => {}
            Todo::Send => self.send(),
            Todo::Ask => self.ask_after(self.pause_ms()),
        }
    }

    fn send(self) {
        let Some(intent) = self.intent.try_get_untracked() else {
            return;
        };
        let (ticket, key) = (self.next_ticket(), intent.key());
        set_timeout(
            move || {
                let waiting = self
                    .intent
                    .try_with_untracked(|i| i.phase == Phase::Submitting);
                if waiting == Some(true) && self.is_current(ticket) {
                    self.dispatch(ClientEvent::NoAnswer);
                }
            },
            Duration::from_millis(ANSWER_TIMEOUT_MS.into()),
        );
        // The request is not cut when the time is up: on a slow line its late answer is still the quickest one.
        spawn_local(async move {
            let Intent {
                task_id,
                submit_version,
                client_id,
                content,
                ..
            } = intent;
            let answer =
                submit_task(task_id, submit_version, client_id, key.clone(), content).await;
            self.submit_answered(ticket, &key, answer);
        });
    }

    fn submit_answered(self, ticket: u32, key: &str, answer: Result<SubmitReply, Fault>) {
        if !self.is_about(key) {
            return;
        }
        match answer {
            Err(fault) => self.failed(ticket, fault),
            Ok(SubmitReply {
                status: 200 | 201,
                submission,
                ..
            }) => self.confirmed(submission),
            Ok(reply) if reply.status == 202 || reply.status == 429 || reply.status >= 500 => {
                self.not_yet(ticket, reply.retry_after);
            }
            // RACE: two tabs pressed at the same moment with different texts. What became of the other text decides what to say.
            Ok(reply) if reply.code.as_deref() == Some("key-reused") => self.not_yet(ticket, None),
            Ok(reply) => self.refused(reply.code),
        }
    }

    fn ask_after(self, pause_ms: u32) {
        let Some(key) = self.intent.try_with_untracked(Intent::key) else {
            return;
        };
        let ticket = self.next_ticket();
        spawn_local(async move {
            TimeoutFuture::new(pause_ms).await;
            let open = self.intent.try_with_untracked(Intent::is_open);
            if open != Some(false) || !self.is_about(&key) || !self.is_current(ticket) {
                return;
            }
            self.asks.try_update_value(|asks| *asks += 1);
            let answer = request_status(key.clone()).await;
            self.status_answered(ticket, &key, answer);
        });
    }

    fn status_answered(self, ticket: u32, key: &str, answer: Result<Option<Outcome>, Fault>) {
        if !self.is_about(key) {
            return;
        }
        let status = match answer {
            Err(fault) => return self.failed(ticket, fault),
            Ok(status) => status,
        };
        match status.map(|s| (s.state, s)) {
            Some((RecordState::Succeeded, status)) => self.confirmed(status.submission),
            Some((RecordState::FailedFinal, status)) => self.refused(status.code),
            Some((RecordState::Processing, _)) if self.asks.get_value() < BACK_OFF_MS.len() => {
                self.not_yet(ticket, None);
            }
            // It never arrived, or only a repeated request moves it on: one verifies what an owner that died left behind.
            _ if self.is_current(ticket) => self.dispatch(ClientEvent::NeverArrived),
            _ => {}
        }
    }

    fn confirmed(self, submission: Option<SubmissionView>) {
        self.hurdle.try_set(None);
        let sent = self
            .intent
            .try_with_untracked(|intent| intent.content.clone());
        // Another tab's text went in under this key: this one did not, and stays in the editor.
        let is_other = submission
            .as_ref()
            .zip(sent)
            .is_some_and(|(submission, sent)| submission.content != sent);
        if submission.is_some() {
            self.submission.try_set(submission);
        }
        if is_other {
            self.refused(Some("already-submitted".to_owned()));
        } else {
            self.dispatch(ClientEvent::Confirmed);
        }
    }

    fn refused(self, code: Option<String>) {
        self.hurdle.try_set(None);
        let code = code.unwrap_or_else(|| "other".to_owned());
        self.dispatch(ClientEvent::Refused { code });
    }

    fn not_yet(self, ticket: u32, retry_after: Option<u32>) {
        self.hurdle.try_set(None);
        if self.is_current(ticket) {
            self.retry_after_ms
                .set_value(retry_after.unwrap_or(0).saturating_mul(1_000));
            self.dispatch(ClientEvent::NotYet);
        }
    }

    fn failed(self, ticket: u32, fault: Fault) {
        if !self.is_current(ticket) {
            return;
        }
        match fault.kind {
            FaultKind::SignedOut | FaultKind::WrongRole => {
                // The intent is kept as unknown and goes on after the next sign-in; asking again now would not help.
                self.hurdle.try_set(Some(Hurdle::SignedOut));
            }
            FaultKind::Network if !window().navigator().on_line() => self.note_offline(),
            _ => {}
        }
        self.dispatch(ClientEvent::NoAnswer);
    }

    /// Reads the submission that counts.
    fn read_back(self) {
        let Some(task_id) = self
            .intent
            .try_with_untracked(|intent| intent.task_id.clone())
        else {
            return;
        };
        spawn_local(async move {
            if let Ok(TaskPage { task, .. }) = load_task(task_id, None).await
                && task.submission.is_some()
            {
                self.submission.try_set(task.submission);
            }
        });
    }

    fn pause_ms(self) -> u32 {
        if self.hurdle.try_get_untracked().flatten() == Some(Hurdle::SignedOut) {
            return u32::MAX >> 1; // about 12 days: nothing is asked until the page is loaded anew
        }
        let asks = self.asks.get_value().min(BACK_OFF_MS.len() - 1);
        let pause = BACK_OFF_MS[asks].max(self.retry_after_ms.get_value());
        let jitter = f64::from(pause) * JITTER * js_sys::Math::random();
        pause.saturating_add(jitter as u32)
    }

    fn is_submission_missing(self) -> bool {
        let version = self
            .intent
            .try_with_untracked(|intent| intent.submit_version);
        let known = self
            .submission
            .try_with_untracked(|s| s.as_ref().map(|s| s.submit_version));
        known.flatten() != version
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
