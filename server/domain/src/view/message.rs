//! Messages to the outside, and what their readers inside see.

use serde::{Deserialize, Serialize};

/// A message of a record, on its way out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MessageView {
    /// The id.
    pub id: String,
    /// What it is about, such as `submission.created`.
    pub topic: String,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub payload: serde_json::Value,
    /// When it was written; RFC 3339.
    pub created_at: String,
    /// When it was delivered; RFC 3339; absent before.
    pub delivered_at: Option<String>,
    /// How often it was tried since it was written or replayed.
    pub attempts: i32,
    /// Since when it is a dead letter, which nobody tries any more; RFC 3339.
    pub dead_at: Option<String>,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// A line that a teacher or a parent reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NotificationView {
    /// The id.
    pub id: String,
    /// What it is about, such as `submission.created`.
    pub topic: String,
    /// When it was delivered; RFC 3339.
    pub at: String,
    /// The student's name.
    pub student: String,
    /// The task's title, or the reward's name.
    pub title: String,
}
