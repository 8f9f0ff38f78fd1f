//! Tasks and submissions as a student sees them.

use serde::{Deserialize, Serialize};

use crate::action::TaskKind;

/// Whether the current version of a task was handed in.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::AsRefStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TaskStatus {
    /// Not handed in yet.
    Pending,
    /// Handed in.
    Submitted,
}

/// A task of one student.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskView {
    /// The id.
    pub id: String,
    /// The title.
    pub title: String,
    /// What is to be done.
    pub instructions: String,
    /// Assignment or practice.
    pub kind: TaskKind,
    /// Until when it is expected; RFC 3339.
    pub due_at: Option<String>,
    /// From when on nothing is accepted any more; RFC 3339.
    pub closes_at: Option<String>,
    /// The version to send back with a submission.
    pub submit_version: i32,
    /// An assignment is submitted when its current version is; a practice task when there is any attempt.
    pub status: TaskStatus,
    /// The newest submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission: Option<SubmissionView>,
}

/// A submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmissionView {
    /// The id.
    pub id: String,
    /// The task.
    pub task_id: String,
    /// The student.
    pub student_id: String,
    /// The version that it answers.
    pub submit_version: i32,
    /// What was handed in.
    pub content: String,
    /// When it was written; RFC 3339.
    pub created_at: String,
}
