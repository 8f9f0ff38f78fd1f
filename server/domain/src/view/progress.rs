//! The same tasks as a teacher and a parent see them.

use serde::{Deserialize, Serialize};

use super::task::{AttemptView, SubmissionView, TaskStatus, TaskView};
use crate::action::TaskKind;

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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskProgress {
    /// The task.
    pub task_id: String,
    /// Its title.
    pub title: String,
    /// Assignment or practice.
    pub kind: TaskKind,
    /// Until when it is expected; RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Its students, in the order in which their accounts were made.
    pub students: Vec<StudentProgress>,
    /// The cursor of the next page; absent on the last, and when no page was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which students of a class to list; absent members do not restrict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
pub struct StudentFilter {
    /// Only students whose name begins with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only students who have not handed in this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// Continue after this cursor, the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many at most, 1 to 200; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// How far a class is with one task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskRate {
    /// The task.
    pub task_id: String,
    /// Its title.
    pub title: String,
    /// Assignment or practice.
    pub kind: TaskKind,
    /// Until when it is expected; RFC 3339.
    pub due_at: Option<String>,
    /// How many students have handed it in.
    pub submitted: i64,
    /// How many have to.
    pub students: i64,
}

/// A class at one moment: how far it is with each task, and a page of its students.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassOverview {
    /// The moment; RFC 3339.
    pub at: String,
    /// How many students the class has.
    pub students: i64,
    /// How far they are, task by task.
    pub rates: Vec<TaskRate>,
    /// A page of them.
    pub progress: ClassProgress,
}

/// One task of one student, as the teacher sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PupilTask {
    /// The student.
    pub student: StudentView,
    /// The class that the task is for.
    pub class: ClassView,
    /// The task as the student sees it.
    pub task: TaskView,
    /// Every submission, newest first; of very many, the newest.
    pub submissions: Vec<AttemptView>,
    /// The submission that was asked for, or the newest.
    pub shown: Option<SubmissionView>,
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
