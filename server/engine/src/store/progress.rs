//! What teachers and parents see: the rows that the student sees.

use domain::view::{ClassView, StudentView, TaskProgress};
use sqlx::{FromRow, PgPool, types::time::OffsetDateTime};

use super::rfc3339;
use crate::{Actor, StoreError};

#[derive(FromRow)]
struct NamedRow {
    id: i64,
    name: String,
}

/// One task of one student.
#[derive(FromRow)]
struct ProgressRow {
    student_id: i64,
    student_name: String,
    task_id: i64,
    title: String,
    status: String,
    submission_id: Option<i64>,
    submitted_at: Option<OffsetDateTime>,
}

impl ProgressRow {
    fn split(self) -> Result<(StudentView, TaskProgress), StoreError> {
        let corrupt = || StoreError::Corrupt(format!("status of task {}", self.task_id));
        Ok((
            StudentView {
                id: self.student_id.to_string(),
                name: self.student_name,
            },
            TaskProgress {
                task_id: self.task_id.to_string(),
                title: self.title,
                status: self.status.parse().map_err(|_| corrupt())?,
                submission_id: self.submission_id.map(|id| id.to_string()),
                submitted_at: self.submitted_at.map(rfc3339),
            },
        ))
    }
}

/// The classes that this account teaches.
pub(crate) async fn list_classes(
    pool: &PgPool,
    actor: &Actor,
) -> Result<Vec<ClassView>, sqlx::Error> {
    let rows: Vec<NamedRow> = sqlx::query_as(
        "SELECT c.id, c.name FROM class c JOIN class_member m ON m.class_id = c.id WHERE m.account_id = $1 ORDER BY c.name",
    )
    .bind(actor.id)
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ClassView {
            id: row.id.to_string(),
            name: row.name,
        })
        .collect())
}

/// Every task of every student of a class, by student and task.
pub(crate) async fn list_class_progress(
    pool: &PgPool,
    class_id: i64,
) -> Result<Vec<(StudentView, TaskProgress)>, StoreError> {
    let rows: Vec<ProgressRow> = sqlx::query_as(
        "SELECT t.student_id, a.name AS student_name, t.task_id, t.title, t.status, t.submission_id, t.submitted_at
         FROM student_task t JOIN account a ON a.id = t.student_id AND a.role = 'student'
         WHERE t.class_id = $1
         ORDER BY t.student_id, t.due_at NULLS LAST, t.task_id",
    )
    .bind(class_id)
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(ProgressRow::split).collect()
}

/// The children of this account.
pub(crate) async fn list_children(
    pool: &PgPool,
    actor: &Actor,
) -> Result<Vec<StudentView>, sqlx::Error> {
    let rows: Vec<NamedRow> = sqlx::query_as(
        "SELECT a.id, a.name FROM parent_child p JOIN account a ON a.id = p.child_id WHERE p.parent_id = $1 ORDER BY a.name",
    )
    .bind(actor.id)
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| StudentView {
            id: row.id.to_string(),
            name: row.name,
        })
        .collect())
}

/// Every task of one student.
pub(crate) async fn list_student_progress(
    pool: &PgPool,
    student_id: i64,
) -> Result<Vec<TaskProgress>, StoreError> {
    let rows: Vec<ProgressRow> = sqlx::query_as(
        "SELECT t.student_id, '' AS student_name, t.task_id, t.title, t.status, t.submission_id, t.submitted_at
         FROM student_task t WHERE t.student_id = $1
         ORDER BY t.due_at NULLS LAST, t.task_id",
    )
    .bind(student_id)
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| row.split().map(|(_, task)| task))
        .collect()
}
