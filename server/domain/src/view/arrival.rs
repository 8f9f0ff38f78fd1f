//! Arrivals one by one: the rows that the counters count.

use serde::{Deserialize, Serialize};

use super::Window;
use crate::{Bucket, Defence};

/// Which decided arrivals to list; absent members do not restrict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
pub struct ArrivalFilter {
    /// Only arrivals with this outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Bucket>,
    /// Only arrivals that this defence answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defence: Option<Defence>,
    /// Only arrivals of this action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Back to when; the panel's counters of the same window count these very rows. 7d when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Continue after this cursor, the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many at most, 1 to 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One request that came in for a key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArrivalView {
    /// The id.
    pub id: String,
    /// The record; it may have been purged since.
    pub record_id: String,
    /// The action.
    pub action: String,
    /// The record's key; absent once the record is purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The name of the record's account; absent once the record is purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_name: Option<String>,
    /// When it came in; RFC 3339.
    pub arrived_at: String,
    /// Its outcome; absent until whoever executes the record decides it.
    pub outcome: Option<Bucket>,
    /// Which defence answered it; absent until it is decided.
    pub defence: Option<Defence>,
    /// Which installation of a client asked.
    pub client_id: String,
    /// The trace of the request.
    pub trace_id: String,
    /// Whether it asked for the same as the first.
    pub same_content: bool,
    /// From arrival to answer, in milliseconds; absent until it is decided.
    pub duration_ms: Option<f64>,
}

/// A page of arrivals.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArrivalPage {
    /// The arrivals, newest first.
    pub arrivals: Vec<ArrivalView>,
    /// The cursor of the next page; absent on the last.
    pub next: Option<String>,
}
