//! Sends, asks, and reads the answers: which event of [`Intent`] each of them is.

use std::time::Duration;

use domain::{
    RecordState,
    phase::{ANSWER_TIMEOUT_MS, ClientEvent, Intent, Phase},
    view::SubmissionView,
};
use gloo_timers::future::TimeoutFuture;
use leptos::{prelude::*, task::spawn_local};

use super::{Hurdle, Machine};
use crate::{
    fault::{Fault, FaultKind},
    student::api::{Outcome, SubmitReply, request_status, submit_task},
};

impl Machine {
    pub(super) fn send(self) {
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
                student_id,
                submit_version,
                client_id,
                content,
                ..
            } = intent;
            let answer = submit_task(
                task_id,
                student_id,
                submit_version,
                client_id,
                key.clone(),
                content,
            )
            .await;
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
                self.not_yet(ticket, reply.retry_after, None);
            }
            // RACE: two tabs pressed at the same moment with different texts. What became of the other text decides what to say.
            Ok(reply) if reply.code.as_deref() == Some("key-reused") => {
                self.not_yet(ticket, None, None)
            }
            Ok(reply) => self.refused(reply.code),
        }
    }

    pub(super) fn ask_after(self, pause_ms: u32) {
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
            // Its owner is alive. When the lease has run out, only a repeated request moves it on: that one verifies.
            Some((RecordState::Processing, status))
                if status.lease_remaining_ms.is_none_or(|ms| ms > 0) =>
            {
                let lease = status
                    .lease_remaining_ms
                    .and_then(|ms| u32::try_from(ms).ok());
                self.not_yet(ticket, None, lease);
            }
            // It never arrived, it failed for now, or its owner is gone.
            _ if self.is_current(ticket) => self.dispatch(ClientEvent::NeverArrived),
            _ => {}
        }
    }

    /// The server answered somebody who is signed in.
    fn clear_hurdle(self) {
        self.pulse.note_lost(false);
        let before = self.hurdle.try_update(Option::take).flatten();
        if before == Some(Hurdle::SignedOut) {
            self.read_account();
        }
    }

    /// The frame shows a name that does not hold any more.
    pub(super) fn read_account(self) {
        if let Some(Some(account)) = self.account.try_get_value() {
            account.0.refetch();
        }
    }

    fn confirmed(self, submission: Option<SubmissionView>) {
        self.clear_hurdle();
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
        self.clear_hurdle();
        let code = code.unwrap_or_else(|| "other".to_owned());
        self.dispatch(ClientEvent::Refused { code });
    }

    fn not_yet(self, ticket: u32, retry_after: Option<u32>, lease_ms: Option<u32>) {
        self.clear_hurdle();
        if self.is_current(ticket) {
            self.lease_ms.set_value(lease_ms);
            self.retry_after_ms
                .set_value(retry_after.unwrap_or(0).saturating_mul(1_000));
            self.dispatch(ClientEvent::NotYet);
        }
    }

    fn failed(self, ticket: u32, fault: Fault) {
        if !self.is_current(ticket) {
            return;
        }
        self.pulse.note_lost(true);
        match fault.kind {
            FaultKind::SignedOut | FaultKind::WrongRole => {
                // The intent is kept as unknown and goes on after the next sign-in; asking again now would not help.
                self.hurdle.try_set(Some(Hurdle::SignedOut));
                self.read_account();
            }
            FaultKind::Network if !window().navigator().on_line() => self.note_offline(),
            _ => {}
        }
        self.dispatch(ClientEvent::NoAnswer);
    }
}
