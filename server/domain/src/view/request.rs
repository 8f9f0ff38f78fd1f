//! What became of one request, asked for by its key.

use serde::{Deserialize, Serialize};

use crate::RecordState;

/// The answer of `GET /api/v1/requests/{key}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RequestView {
    /// The idempotency key.
    pub key: String,
    /// The action.
    pub action: String,
    /// The state of its record.
    pub state: RecordState,
    /// How often it was executed, from 1.
    pub attempt: i32,
    /// Changes with each change of state or epoch.
    pub version: i64,
    /// When the key was first seen; RFC 3339.
    pub first_seen_at: String,
    /// When the record last changed; RFC 3339.
    pub updated_at: String,
    /// How many requests came in for the key.
    pub arrivals: i64,
    /// How much longer its owner is presumed alive, in milliseconds; 0: repeat the request, which moves it on. Only while it executes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_remaining_ms: Option<i64>,
    /// The stored answer, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<StoredResponse>,
}

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub body: serde_json::Value,
}
