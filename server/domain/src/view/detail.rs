//! One record with everything that is known about it.

use serde::{Deserialize, Serialize};

use super::{ArrivalView, CompensationEvent, EvidenceView, MessageView};
use crate::RecordState;

/// The answer of `GET /api/v1/records/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecordDetail {
    /// The id.
    pub id: String,
    /// The idempotency key.
    pub key: String,
    /// The action.
    pub action: String,
    /// The account's id.
    pub subject: String,
    /// The account's name.
    pub subject_name: String,
    /// The state.
    pub state: RecordState,
    /// Changes with each change of state or epoch.
    pub version: i64,
    /// How often it was executed, from 1.
    pub attempt: i32,
    /// When the key was first seen; RFC 3339.
    pub created_at: String,
    /// When the record last changed; RFC 3339.
    pub updated_at: String,
    /// For how long it has been executing or unknown, in seconds, when that is too long.
    pub stuck_seconds: Option<i64>,
    /// Why it failed.
    pub error_code: Option<String>,
    /// The fencing number of the newest claim.
    pub epoch: i64,
    /// When it was claimed for the last time; RFC 3339.
    pub claimed_at: String,
    /// Until when that claim is presumed alive; absent unless it executes; RFC 3339.
    pub lease_until: Option<String>,
    /// Whether the lease has not run out, by Postgres's clock.
    pub lease_is_live: bool,
    /// Until when it answers its key; absent while it is unfinished; RFC 3339.
    pub expires_at: Option<String>,
    /// The trace of the request that claimed the key first.
    pub trace_id: String,
    /// SHA-256 of the canonical request, in hexadecimal digits.
    pub fingerprint: String,
    /// How often the scanner tried to end it.
    pub scan_attempts: i32,
    /// When the scanner tried last; RFC 3339.
    pub scanned_at: Option<String>,
    /// Why the scanner's last attempt did not end it.
    pub scan_note: Option<String>,
    /// The stored answer.
    pub answer: Option<AnswerView>,
    /// How many requests came in for the key, also where not all are listed.
    pub arrival_count: i64,
    /// The requests that came in for the key, oldest first; of very many, the newest.
    pub arrivals: Vec<ArrivalView>,
    /// The claims, oldest first, the present one last.
    pub claims: Vec<ClaimView>,
    /// What people and the scanner did about it, oldest first.
    pub compensations: Vec<CompensationEvent>,
    /// Its messages to the outside.
    pub outbox: Vec<MessageView>,
    /// What the business tables tell about its effect, now.
    pub evidence: Option<EvidenceView>,
}

/// A stored answer as it is replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AnswerView {
    /// The HTTP status.
    pub status: u16,
    /// The `Location`.
    pub location: Option<String>,
    /// The body, byte for byte.
    pub body: String,
}

/// One claim of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClaimView {
    /// Counts the claims, from 1.
    pub attempt: i32,
    /// The fencing number that it ended with.
    pub epoch: i64,
    /// The name of the process that claimed.
    pub instance: String,
    /// When; RFC 3339.
    pub claimed_at: String,
    /// When it had ended, at the latest; absent for the present one; RFC 3339.
    pub ended_at: Option<String>,
}
