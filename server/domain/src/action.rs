//! The names of the kinds of business operation that must happen once.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of an action, as it stands in `idempotency_record.action_type` and in the labels of metrics.
///
/// Only names of registered actions are ever made into one, so it is safe as a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ActionType(&'static str);

impl ActionType {
    /// Names an action; the engine's registry is the only list of those that exist.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The name as stored and shown.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for ActionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A student hands in a learning task.
pub const TASK_SUBMIT: ActionType = ActionType::new("task_submit");

/// A student redeems points for a reward of an external provider.
pub const POINTS_REDEEM: ActionType = ActionType::new("points_redeem");

/// Which practice or assignment a task is.
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
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TaskKind {
    /// Handed in once; a teacher may reopen it.
    Assignment,
    /// Handed in as often as wanted, one submission per attempt number.
    Practice,
}
