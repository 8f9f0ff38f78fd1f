//! Records as ops see them.

use serde::{Deserialize, Serialize};

use super::Window;
use crate::{Bucket, RecordState};

/// Which records to list; absent members do not restrict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams, utoipa::ToSchema))]
pub struct RecordFilter {
    /// Only records in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RecordState>,
    /// Only stuck records, or only others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<bool>,
    /// Only records of this action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Only records of this account, by id or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// A key, the beginning of one, or a trace id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only unfinished records whose claim is at least so old, in seconds; oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_age: Option<u32>,
    /// Only records with an arrival of this outcome, in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Bucket>,
    /// Back to when: with an outcome, for its arrivals (7d when absent); with a failed state, for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Continue after this cursor, the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Go back to before this cursor, the `prev` of the page after; not together with `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// How many at most, 1 to 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl RecordFilter {
    /// Whether only unfinished records are asked for, so that the oldest come first.
    pub fn is_oldest_first(&self) -> bool {
        self.stuck == Some(true) || self.min_age.is_some()
    }

    /// Whether nothing is restricted.
    pub fn is_open(&self) -> bool {
        let paged = Self {
            after: self.after.clone(),
            before: self.before.clone(),
            limit: self.limit,
            ..Self::default()
        };
        *self == paged
    }
}

/// A line of the list of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecordSummary {
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
    /// How many requests came in for the key.
    pub arrivals: i64,
    /// Why it failed.
    pub error_code: Option<String>,
}

/// A page of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecordPage {
    /// The records, newest first; stuck ones oldest first when only they are asked for.
    pub records: Vec<RecordSummary>,
    /// The cursor of the next page; absent on the last.
    pub next: Option<String>,
    /// The cursor of the page before, to be sent as `before`; absent on the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<String>,
}
