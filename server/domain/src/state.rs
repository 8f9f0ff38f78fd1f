//! The states of an idempotency record and the only transitions between them.

use serde::{Deserialize, Serialize};

/// The state of a record.
///
/// ```text
/// (none) --claim--> PROCESSING --finish--> SUCCEEDED | FAILED_FINAL | FAILED_RETRYABLE
/// PROCESSING --finish: the outside gave no clear answer--> UNKNOWN
/// PROCESSING --lease ran out (epoch + 1)--> UNKNOWN
/// UNKNOWN --verified: the business row exists--> SUCCEEDED
/// UNKNOWN --verified: it does not, and cannot appear any more--> FAILED_RETRYABLE
/// UNKNOWN --no evidence--> UNKNOWN
/// FAILED_RETRYABLE --same key again, scanner or re_execute (attempt + 1, epoch + 1)--> PROCESSING
/// ```
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::AsRefStr,
    strum::VariantArray,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RecordState {
    /// Claimed and executing, presumed alive until its lease ends.
    Processing,
    /// Done; the answer is stored.
    Succeeded,
    /// Refused for good; the answer is stored.
    FailedFinal,
    /// Failed for a reason that may pass; the same key runs again.
    FailedRetryable,
    /// Interrupted; whether the effect happened must be verified.
    Unknown,
}

/// What can happen to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::VariantArray)]
pub enum RecordEvent {
    /// The owner finished with success.
    FinishSucceeded,
    /// The owner finished with a refusal by a business rule.
    FinishFailedFinal,
    /// The owner gave up for a reason that may pass.
    FinishFailedRetryable,
    /// The owner called the outside and nobody knows what became of it.
    FinishUnknown,
    /// The lease ran out before the owner finished.
    LeaseRanOut,
    /// The evidence shows that the effect happened.
    VerifiedPresent,
    /// The evidence shows that the effect did not happen and cannot happen under the old epoch.
    VerifiedAbsent,
    /// Somebody took the record over to execute it again.
    Reclaim,
    /// A person ended it as refused for good.
    FailByHand,
}

/// An event that has no place in the state it met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{event} has no place in {state}")]
pub struct InvalidTransition {
    /// The state that was met.
    pub state: RecordState,
    /// The event that came.
    pub event: RecordEvent,
}

impl RecordState {
    /// Nothing changes these any more, so their answers may be cached and retention counts from them.
    pub const TERMINAL: &[Self] = &[Self::Succeeded, Self::FailedFinal];

    /// These can become stuck, so only these are watched and compensated.
    pub const COMPENSABLE: &[Self] = &[Self::Processing, Self::Unknown, Self::FailedRetryable];

    /// Whether nothing changes the record any more.
    pub fn is_terminal(self) -> bool {
        Self::TERMINAL.contains(&self)
    }

    /// The state after an event.
    ///
    /// # Errors
    /// [`InvalidTransition`] when the event has no place in this state; nothing may be written then.
    pub fn apply(self, event: RecordEvent) -> Result<Self, InvalidTransition> {
        use RecordEvent as E;
        match (self, event) {
            (Self::Processing, E::FinishSucceeded) | (Self::Unknown, E::VerifiedPresent) => {
                Ok(Self::Succeeded)
            }
            (Self::Processing, E::FinishFailedFinal)
            | (Self::Unknown | Self::FailedRetryable, E::FailByHand) => Ok(Self::FailedFinal),
            (Self::Processing, E::FinishFailedRetryable) | (Self::Unknown, E::VerifiedAbsent) => {
                Ok(Self::FailedRetryable)
            }
            (Self::Processing, E::LeaseRanOut | E::FinishUnknown) => Ok(Self::Unknown),
            (Self::FailedRetryable, E::Reclaim) => Ok(Self::Processing),
            // A row written behind the engine's back while the record waited to run again.
            (Self::FailedRetryable, E::VerifiedPresent) => Ok(Self::Succeeded),
            (state, event) => Err(InvalidTransition { state, event }),
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_state_meets_every_event_as_drawn() {
        let drawn = [
            ("PROCESSING", "FinishSucceeded", "SUCCEEDED"),
            ("PROCESSING", "FinishFailedFinal", "FAILED_FINAL"),
            ("PROCESSING", "FinishFailedRetryable", "FAILED_RETRYABLE"),
            ("PROCESSING", "FinishUnknown", "UNKNOWN"),
            ("PROCESSING", "LeaseRanOut", "UNKNOWN"),
            ("FAILED_RETRYABLE", "VerifiedPresent", "SUCCEEDED"),
            ("FAILED_RETRYABLE", "Reclaim", "PROCESSING"),
            ("FAILED_RETRYABLE", "FailByHand", "FAILED_FINAL"),
            ("UNKNOWN", "VerifiedPresent", "SUCCEEDED"),
            ("UNKNOWN", "VerifiedAbsent", "FAILED_RETRYABLE"),
            ("UNKNOWN", "FailByHand", "FAILED_FINAL"),
        ];
        let mut found = Vec::new();
        for state in RecordState::VARIANTS {
            for event in RecordEvent::VARIANTS {
                if let Ok(next) = state.apply(*event) {
                    found.push((state.to_string(), event.to_string(), next.to_string()));
                }
            }
        }
        let drawn: Vec<_> = drawn
            .iter()
            .map(|(s, e, n)| (s.to_string(), e.to_string(), n.to_string()))
            .collect();
        assert_eq!(found, drawn);
    }

    #[test]
    fn nothing_leaves_a_terminal_state() {
        for state in RecordState::TERMINAL {
            for event in RecordEvent::VARIANTS {
                assert!(state.apply(*event).is_err(), "{state} {event}");
            }
        }
    }
}
