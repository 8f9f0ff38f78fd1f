//! What teachers and parents see: the rows that the student sees.

use domain::view::{
    ClassView, StudentFilter, StudentProgress, StudentView, TaskProgress, TaskRate,
};
use sqlx::{FromRow, PgConnection, PgPool, types::time::OffsetDateTime};

use super::rfc3339;
use crate::{Actor, StoreError};

#[derive(FromRow)]
struct NamedRow {
    id: i64,
    name: String,
}

impl From<NamedRow> for ClassView {
    fn from(row: NamedRow) -> Self {
        Self {
            id: row.id.to_string(),
            name: row.name,
        }
    }
}

impl From<NamedRow> for StudentView {
    fn from(row: NamedRow) -> Self {
        Self {
            id: row.id.to_string(),
            name: row.name,
        }
    }
}

/// One task of one student; without a task for a student of a class that has none.
#[derive(FromRow)]
struct ProgressRow {
    student_id: i64,
    student_name: String,
    #[sqlx(flatten)]
    task: TaskRow,
}

#[derive(FromRow)]
struct TaskRow {
    task_id: Option<i64>,
    title: Option<String>,
    kind: Option<String>,
    due_at: Option<OffsetDateTime>,
    status: Option<String>,
    submission_id: Option<i64>,
    submitted_at: Option<OffsetDateTime>,
}

impl TaskRow {
    fn read(self) -> Result<Option<TaskProgress>, StoreError> {
        let (Some(task_id), Some(title), Some(kind), Some(status)) =
            (self.task_id, self.title, self.kind, self.status)
        else {
            return Ok(None);
        };
        let corrupt = |what: &str| StoreError::Corrupt(format!("{what} of task {task_id}"));
        Ok(Some(TaskProgress {
            task_id: task_id.to_string(),
            title,
            kind: kind.parse().map_err(|_| corrupt("kind"))?,
            due_at: self.due_at.map(rfc3339),
            status: status.parse().map_err(|_| corrupt("status"))?,
            submission_id: self.submission_id.map(|id| id.to_string()),
            submitted_at: self.submitted_at.map(rfc3339),
        }))
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
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Every task of the students of a class, student by student: of those that the filter lets through, at most `limit`.
pub(crate) async fn list_class_progress(
    connection: &mut PgConnection,
    class_id: i64,
    filter: &StudentFilter,
    open: Option<i64>,
    after: Option<i64>,
    limit: Option<i64>,
) -> Result<Vec<StudentProgress>, StoreError> {
    let rows: Vec<ProgressRow> = sqlx::query_as(
        "WITH page AS MATERIALIZED (
             SELECT a.id, a.name
             FROM class_member m JOIN account a ON a.id = m.account_id AND a.role = 'student'
             WHERE m.class_id = $1 AND m.account_id > $2
               AND ($3::text IS NULL OR starts_with(a.name, $3))
               AND ($4::bigint IS NULL OR EXISTS (
                   SELECT FROM student_task t
                   WHERE t.student_id = a.id AND t.task_id = $4 AND t.class_id = $1 AND t.status = 'pending'))
             ORDER BY m.account_id LIMIT $5
         )
         SELECT p.id AS student_id, p.name AS student_name, t.task_id, t.title, t.kind, t.due_at, t.status,
                t.submission_id, t.submitted_at
         FROM page p LEFT JOIN student_task t ON t.student_id = p.id AND t.class_id = $1
         ORDER BY p.id, t.due_at NULLS LAST, t.task_id",
    )
    .bind(class_id)
    .bind(after.unwrap_or(0))
    .bind(filter.q.as_deref())
    .bind(open)
    .bind(limit)
    .fetch_all(connection)
    .await?;
    let mut students: Vec<StudentProgress> = Vec::new();
    for row in rows {
        let id = row.student_id.to_string();
        if students.last().is_none_or(|last| last.id != id) {
            students.push(StudentProgress {
                id,
                name: row.student_name,
                tasks: Vec::new(),
            });
        }
        if let (Some(last), Some(task)) = (students.last_mut(), row.task.read()?) {
            last.tasks.push(task);
        }
    }
    Ok(students)
}

#[derive(FromRow)]
struct RateRow {
    task_id: i64,
    title: String,
    kind: String,
    due_at: Option<OffsetDateTime>,
    submitted: i64,
}

/// How far a class of so many students is with each of its tasks.
pub(crate) async fn list_rates(
    connection: &mut PgConnection,
    class_id: i64,
    students: i64,
) -> Result<Vec<TaskRate>, StoreError> {
    let rows: Vec<RateRow> = sqlx::query_as(
        "SELECT t.id AS task_id, t.title, t.kind, t.due_at, r.submitted
         FROM class_task_rate r JOIN task t ON t.id = r.task_id
         WHERE r.class_id = $1
         ORDER BY t.due_at NULLS LAST, t.id",
    )
    .bind(class_id)
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            let corrupt = || StoreError::Corrupt(format!("kind of task {}", row.task_id));
            Ok(TaskRate {
                task_id: row.task_id.to_string(),
                kind: row.kind.parse().map_err(|_| corrupt())?,
                title: row.title,
                due_at: row.due_at.map(rfc3339),
                submitted: row.submitted,
                students,
            })
        })
        .collect()
}

/// How many students a class has, and the moment of the snapshot.
pub(crate) async fn count_students(
    connection: &mut PgConnection,
    class_id: i64,
) -> Result<(i64, OffsetDateTime), sqlx::Error> {
    sqlx::query_as(
        "SELECT count(*), now()
         FROM class_member m JOIN account a ON a.id = m.account_id AND a.role = 'student' WHERE m.class_id = $1",
    )
    .bind(class_id)
    .fetch_one(connection)
    .await
}

/// A student of a class that this account teaches, with the class, when the task is for it; without a task, any such class.
pub(crate) async fn find_pupil(
    pool: &PgPool,
    teacher_id: i64,
    student_id: i64,
    task_id: Option<i64>,
) -> Result<Option<(StudentView, ClassView)>, sqlx::Error> {
    let row: Option<(i64, String, i64, String)> = sqlx::query_as(
        "SELECT a.id, a.name, c.id, c.name
         FROM class_member teaches
         JOIN class_member learns ON learns.class_id = teaches.class_id AND learns.account_id = $2
         JOIN account a ON a.id = learns.account_id AND a.role = 'student'
         JOIN class c ON c.id = teaches.class_id
         WHERE teaches.account_id = $1
           AND ($3::bigint IS NULL OR EXISTS (SELECT FROM task t WHERE t.id = $3 AND t.class_id = c.id))
         ORDER BY c.id LIMIT 1",
    )
    .bind(teacher_id)
    .bind(student_id)
    .bind(task_id)
    .fetch_optional(pool)
    .await?;
    Ok(row.map(|(id, name, class_id, class_name)| {
        (
            NamedRow { id, name }.into(),
            NamedRow {
                id: class_id,
                name: class_name,
            }
            .into(),
        )
    }))
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
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Every task of one student.
pub(crate) async fn list_student_progress(
    pool: &PgPool,
    student_id: i64,
) -> Result<Vec<TaskProgress>, StoreError> {
    let rows: Vec<TaskRow> = sqlx::query_as(
        "SELECT t.task_id, t.title, t.kind, t.due_at, t.status, t.submission_id, t.submitted_at
         FROM student_task t WHERE t.student_id = $1
         ORDER BY t.due_at NULLS LAST, t.task_id",
    )
    .bind(student_id)
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .filter_map(|row| row.read().transpose())
        .collect()
}
