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
    /// How many submissions there are, of all versions.
    pub attempts: i64,
    /// The points that they earned.
    pub points: i64,
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

/// A line of the list of one student's submissions of one task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttemptView {
    /// The submission's id.
    pub id: String,
    /// The version that it answers; for a practice task the number of the attempt.
    pub submit_version: i32,
    /// When it was written; RFC 3339.
    pub created_at: String,
    /// What it earned.
    pub points: i64,
    /// Its first characters.
    pub excerpt: String,
    /// The installation that sent it, as long as that is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// A task as the teacher who assigned it sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AssignedTask {
    /// The id.
    pub id: String,
    /// The class that has to do it.
    pub class_id: String,
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
    /// When it was assigned; RFC 3339.
    pub created_at: String,
}
