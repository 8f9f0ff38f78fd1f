//! The four phases of a client, and the refusal: one reducer for every front end.
//!
//! The articles' root cause was a client that knew only "not submitted" and "submitted"; `unknown` is the phase that was missing.

use serde::{Deserialize, Serialize};

use crate::key::task_submit_key;

/// How long a client waits for an answer before it calls the result unknown, in milliseconds; the articles' 3 s.
pub const ANSWER_TIMEOUT_MS: u32 = 3_000;

/// Where one submission stands, as the person in front of the page sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// Nothing was sent.
    Idle,
    /// Sent; the answer is awaited.
    Submitting,
    /// Sent; whether it took effect is not known. The key and the content stay as they are.
    Unknown,
    /// Confirmed by the server.
    Submitted,
    /// Refused for good, for the reason with this code.
    Refused {
        /// The code of the problem.
        code: String,
    },
}

/// What happens to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// The person pressed the button, with this content.
    Press {
        /// The content at that moment.
        content: String,
    },
    /// No answer came in time, or the connection broke.
    NoAnswer,
    /// The server says that it is still executing, that the outcome is unknown, or that it failed for now.
    NotYet,
    /// The server knows no request with this key: it never arrived.
    NeverArrived,
    /// The server confirmed.
    Confirmed,
    /// The server refused for good.
    Refused {
        /// The code of the problem.
        code: String,
    },
}

/// What the client has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Todo {
    /// Nothing.
    Rest,
    /// Send the request under the intent's key.
    Send,
    /// Ask for the status of the intent's key, then decide.
    Ask,
}

/// One business intent of one client: stored before the first byte is sent, resumed after a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Where it stands.
    #[serde(flatten)]
    pub phase: Phase,
    /// The task.
    pub task_id: String,
    /// The account.
    pub student_id: String,
    /// The version that the task's detail gave.
    pub submit_version: i32,
    /// This installation.
    pub client_id: String,
    /// Which intent of this person it is, from 1; a press after a refusal that was seen is the next one.
    pub ordinal: u32,
    /// What is handed in; frozen while the phase is submitting or unknown.
    pub content: String,
}

impl Intent {
    /// An intent that nothing was sent for.
    pub fn idle(
        task_id: String,
        student_id: String,
        submit_version: i32,
        client_id: String,
    ) -> Self {
        Self {
            phase: Phase::Idle,
            task_id,
            student_id,
            submit_version,
            client_id,
            ordinal: 1,
            content: String::new(),
        }
    }

    /// The key of this intent: the same for every retry.
    pub fn key(&self) -> String {
        task_submit_key(
            &self.task_id,
            &self.student_id,
            self.submit_version,
            &self.client_id,
            self.ordinal,
        )
    }

    /// Whether the content may still be edited.
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Refused { .. })
    }

    /// The intent for the version that is current now. What was sent keeps its version: only an open intent moves on, and with
    /// another version its counting of intents begins anew.
    #[must_use]
    pub fn for_version(mut self, submit_version: i32) -> Self {
        if self.is_open() && self.submit_version != submit_version {
            self.submit_version = submit_version;
            self.ordinal = 1;
            // A press out of a refusal counts on; the first press of a version has no refusal behind it.
            self.phase = Phase::Idle;
        }
        self
    }

    /// The intent after an event, and what to do. Events that do not fit the phase change nothing.
    #[must_use]
    pub fn apply(mut self, event: ClientEvent) -> (Self, Todo) {
        use ClientEvent as E;
        let todo = match (&self.phase, event) {
            (Phase::Idle, E::Press { content }) => {
                self.content = content;
                self.phase = Phase::Submitting;
                Todo::Send
            }
            (Phase::Refused { .. }, E::Press { content }) => {
                self.ordinal += 1;
                self.content = content;
                self.phase = Phase::Submitting;
                Todo::Send
            }
            // INVARIANT: out of unknown neither key nor content changes, whatever was typed or pressed meanwhile.
            (Phase::Unknown, E::Press { .. } | E::NeverArrived) => {
                self.phase = Phase::Submitting;
                Todo::Send
            }
            (Phase::Submitting | Phase::Unknown, E::NoAnswer | E::NotYet) => {
                self.phase = Phase::Unknown;
                Todo::Ask
            }
            (Phase::Submitting | Phase::Unknown, E::Confirmed) => {
                self.phase = Phase::Submitted;
                Todo::Rest
            }
            (Phase::Submitting | Phase::Unknown, E::Refused { code }) => {
                self.phase = Phase::Refused { code };
                Todo::Rest
            }
            _ => Todo::Rest,
        };
        (self, todo)
    }

    /// What a page does that found this intent in its storage: a request of a page that is gone has no answer any more.
    #[must_use]
    pub fn resume(self) -> (Self, Todo) {
        match self.phase {
            Phase::Submitting | Phase::Unknown => self.apply(ClientEvent::NoAnswer),
            _ => (self, Todo::Rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn idle() -> Intent {
        Intent::idle("7".into(), "12".into(), 1, "c".into())
    }

    fn press(content: &str) -> ClientEvent {
        ClientEvent::Press {
            content: content.into(),
        }
    }

    #[test]
    fn a_timeout_leads_to_unknown_and_a_retry_repeats_key_and_content() {
        let (sent, todo) = idle().apply(press("first"));
        assert_eq!((&sent.phase, todo), (&Phase::Submitting, Todo::Send));
        let key = sent.key();
        let (unknown, todo) = sent.apply(ClientEvent::NoAnswer);
        assert_eq!((&unknown.phase, todo), (&Phase::Unknown, Todo::Ask));
        let (again, todo) = unknown.apply(press("edited meanwhile"));
        assert_eq!(
            (again.key(), again.content.as_str(), todo),
            (key, "first", Todo::Send)
        );
    }

    #[test]
    fn a_second_press_while_submitting_does_nothing() {
        let (sent, _) = idle().apply(press("x"));
        assert_eq!(sent.clone().apply(press("y")), (sent, Todo::Rest));
    }

    #[test]
    fn a_press_after_a_seen_refusal_is_a_new_intent() {
        let (sent, _) = idle().apply(press("x"));
        let (refused, _) = sent.apply(ClientEvent::Refused {
            code: "task-closed".into(),
        });
        let (next, todo) = refused.apply(press("y"));
        assert_eq!(
            (next.key().as_str(), todo),
            ("task_submit:7:12:1:c:2", Todo::Send)
        );
    }

    #[test]
    fn a_page_that_was_gone_asks_before_it_sends_again() {
        let (sent, _) = idle().apply(press("x"));
        let (resumed, todo) = sent.resume();
        assert_eq!((resumed.phase, todo), (Phase::Unknown, Todo::Ask));
    }

    #[test]
    fn only_what_is_not_on_its_way_moves_on_to_another_version() {
        let (sent, _) = idle().apply(press("x"));
        assert_eq!(sent.clone().for_version(2), sent);
        let (refused, _) = sent.apply(ClientEvent::Refused {
            code: "version-not-current".into(),
        });
        let (next, _) = refused.for_version(2).apply(press("x"));
        assert_eq!(next.key(), "task_submit:7:12:2:c");
        assert_eq!(idle().for_version(1), idle());
    }

    /// A row of the table that the client for other front ends is tested by too.
    #[derive(Deserialize)]
    struct Row {
        phase: String,
        event: String,
        to: String,
        todo: String,
        key: String,
        content: String,
    }

    fn phase(name: &str) -> Phase {
        match name {
            "idle" => Phase::Idle,
            "submitting" => Phase::Submitting,
            "unknown" => Phase::Unknown,
            "submitted" => Phase::Submitted,
            _ => Phase::Refused {
                code: "task-closed".into(),
            },
        }
    }

    fn event(name: &str) -> ClientEvent {
        match name {
            "press" => press("new"),
            "no_answer" => ClientEvent::NoAnswer,
            "not_yet" => ClientEvent::NotYet,
            "never_arrived" => ClientEvent::NeverArrived,
            "confirmed" => ClientEvent::Confirmed,
            _ => ClientEvent::Refused {
                code: "task-closed".into(),
            },
        }
    }

    #[test]
    fn the_client_for_other_front_ends_has_the_same_table() {
        let table = include_str!("../../../end2end/client/phases.json");
        let rows: Vec<Row> = serde_json::from_str(table).expect("a table");
        assert_eq!(rows.len(), 5 * 6, "every phase and every event");
        for row in rows {
            let mut intent = Intent::idle("7".into(), "12".into(), 3, "c".into());
            (intent.ordinal, intent.content) = (2, "old".into());
            intent.phase = phase(&row.phase);
            let (after, todo) = intent.apply(event(&row.event));
            let todo = match todo {
                Todo::Rest => "rest",
                Todo::Send => "send",
                Todo::Ask => "ask",
            };
            assert_eq!(
                (&after.phase, todo, after.key(), &after.content),
                (&phase(&row.to), &*row.todo, row.key, &row.content),
                "{} {}",
                row.phase,
                row.event
            );
        }
    }

    fn any_event() -> impl Strategy<Value = ClientEvent> {
        prop_oneof![
            "[a-c]".prop_map(|content| ClientEvent::Press { content }),
            Just(ClientEvent::NoAnswer),
            Just(ClientEvent::NotYet),
            Just(ClientEvent::NeverArrived),
            Just(ClientEvent::Confirmed),
            Just(ClientEvent::Refused { code: "x".into() }),
        ]
    }

    proptest! {
        #[test]
        fn a_key_names_one_content_for_ever(events in proptest::collection::vec(any_event(), 0..40)) {
            let mut sent = std::collections::HashMap::new();
            let mut intent = idle();
            for event in events {
                let todo;
                (intent, todo) = intent.apply(event);
                if todo == Todo::Send {
                    let content = sent.entry(intent.key()).or_insert_with(|| intent.content.clone());
                    prop_assert_eq!(&*content, &intent.content);
                }
            }
        }
    }
}
