//! Rewards and what was redeemed.

use serde::{Deserialize, Serialize};

/// A reward as a student sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RewardView {
    /// The id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it costs, in points.
    pub price: i32,
    /// The sequence to send with the next redemption.
    pub next_sequence: i32,
}

/// A reward that was redeemed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedemptionView {
    /// The id.
    pub id: String,
    /// The reward.
    pub reward_id: String,
    /// The student.
    pub student_id: String,
    /// The how many-th purchase of this reward it is.
    pub sequence: i32,
    /// What it cost, in points.
    pub points: i32,
    /// When it was redeemed; RFC 3339.
    pub created_at: String,
}

/// A redemption that is not decided yet: its points are held, and the provider has not been heard of clearly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRedemptionView {
    /// The reward.
    pub reward_id: String,
    /// The key of the record that holds the points.
    pub key: String,
}
