//! The same tasks as a teacher and a parent see them.

use serde::{Deserialize, Serialize};

use super::task::TaskStatus;

/// A class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassView {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
}

/// A student, as named in a class or to a parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StudentView {
    /// The account's id.
    pub id: String,
    /// The account's name.
    pub name: String,
}

/// How one task of one student stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskProgress {
    /// The task.
    pub task_id: String,
    /// Its title.
    pub title: String,
    /// What the student sees too.
    pub status: TaskStatus,
    /// The newest submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission_id: Option<String>,
    /// When it was written; RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<String>,
}

/// How all tasks of one student stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StudentProgress {
    /// The account's id.
    pub id: String,
    /// The account's name.
    pub name: String,
    /// Every task of the class.
    pub tasks: Vec<TaskProgress>,
}

/// The answer of `GET /api/v1/classes/{id}/progress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassProgress {
    /// The class.
    pub class: ClassView,
    /// Its students, by name.
    pub students: Vec<StudentProgress>,
}

/// The answer of `GET /api/v1/children/{id}/report`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildReport {
    /// The child.
    pub child: StudentView,
    /// Every task of the child.
    pub tasks: Vec<TaskProgress>,
}
