//! One arrival, and the answer to it.

use std::time::Duration;

use domain::{ActionType, Bucket, Defence, IdempotencyKey};
use serde_json::Value;

/// One request that came in for an action.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The registered action.
    pub action: ActionType,
    /// The caller's name for the intent.
    pub key: IdempotencyKey,
    /// The checked command: route parameters and body, without `client_id`.
    pub command: Value,
    /// Which installation of a client asks.
    pub client_id: String,
    /// The trace of the request.
    pub trace_id: String,
    /// For how long the caller wants to wait for the result of an execution that is already running.
    pub wait: Duration,
}

/// The answer to one arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The arrival's bucket.
    pub bucket: Bucket,
    /// Which defence answered it.
    pub defence: Defence,
    /// The HTTP status.
    pub status: u16,
    /// JSON: the business row, a problem (from 400 on), or the state of the request (202).
    pub body: String,
    /// The `Location`.
    pub location: Option<String>,
    /// `Retry-After` in seconds.
    pub retry_after: Option<u32>,
    /// Whether it is the stored answer of an earlier execution.
    pub replayed: bool,
}
