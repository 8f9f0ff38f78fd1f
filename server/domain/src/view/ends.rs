//! The rows that two counters of the panel count.

use serde::{Deserialize, Serialize};

use crate::{RecordState, compensation::CompensationAction};

/// An execution that failed for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureView {
    /// The record.
    pub record_id: String,
    /// Which of its executions, from 1.
    pub attempt: i32,
    /// When it ended; RFC 3339.
    pub at: String,
    /// The idempotency key.
    pub key: String,
    /// The account's name.
    pub subject_name: String,
    /// The action.
    pub action: String,
    /// How the record stands now.
    pub state: RecordState,
}

/// A compensation that was done, by a person or by the scanner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedView {
    /// The id of its line in the log.
    pub id: String,
    /// The record.
    pub record_id: String,
    /// What was done.
    pub action: CompensationAction,
    /// Who did it: the account's name; absent for the scanner and for the command line without a name.
    pub actor_name: Option<String>,
    /// Why.
    pub reason: String,
    /// When; RFC 3339.
    pub at: String,
}
