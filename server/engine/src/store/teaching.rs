//! Tasks as teachers make them, and reopenings.

use domain::{Fingerprint, IdempotencyKey, view::AssignedTask};
use sqlx::{FromRow, PgConnection, types::time::OffsetDateTime};

use super::rfc3339;
use crate::{
    StoreError,
    teaching::{Assigned, CheckedTask},
};

#[derive(FromRow)]
struct AssignedRow {
    id: i64,
    class_id: i64,
    title: String,
    instructions: String,
    kind: String,
    due_at: Option<OffsetDateTime>,
    closes_at: Option<OffsetDateTime>,
    created_at: OffsetDateTime,
    fingerprint: Option<Vec<u8>>,
}

/// The task that a request made before, with what it asked for.
pub(crate) struct Found {
    task: AssignedTask,
    fingerprint: Option<Fingerprint>,
}

impl Found {
    /// What it means for a request with the same key.
    pub(crate) fn same_as(self, asked: &CheckedTask) -> Assigned {
        if self.fingerprint.is_some_and(|f| f == asked.fingerprint) {
            Assigned::Reused(self.task)
        } else {
            Assigned::KeyReused
        }
    }
}

impl TryFrom<AssignedRow> for Found {
    type Error = StoreError;

    fn try_from(row: AssignedRow) -> Result<Self, StoreError> {
        let corrupt = || StoreError::Corrupt(format!("kind of task {}", row.id));
        Ok(Self {
            fingerprint: row
                .fingerprint
                .as_deref()
                .and_then(Fingerprint::from_stored),
            task: AssignedTask {
                id: row.id.to_string(),
                class_id: row.class_id.to_string(),
                title: row.title,
                instructions: row.instructions,
                kind: row.kind.parse().map_err(|_| corrupt())?,
                due_at: row.due_at.map(rfc3339),
                closes_at: row.closes_at.map(rfc3339),
                created_at: rfc3339(row.created_at),
            },
        })
    }
}

/// The task that this teacher made under this key.
pub(crate) async fn find_by_key(
    connection: &mut PgConnection,
    teacher_id: i64,
    key: &IdempotencyKey,
) -> Result<Option<Found>, StoreError> {
    let row: Option<AssignedRow> = sqlx::query_as(
        "SELECT id, class_id, title, instructions, kind, due_at, closes_at, created_at, fingerprint
         FROM task WHERE created_by = $1 AND creation_key = $2",
    )
    .bind(teacher_id)
    .bind(key.as_str())
    .fetch_optional(connection)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// The task of this class that says the same.
pub(crate) async fn find_by_content(
    connection: &mut PgConnection,
    asked: &CheckedTask,
) -> Result<Option<AssignedTask>, StoreError> {
    let row: Option<AssignedRow> = sqlx::query_as(
        "SELECT id, class_id, title, instructions, kind, due_at, closes_at, created_at, fingerprint
         FROM task WHERE class_id = $1 AND fingerprint = $2",
    )
    .bind(asked.class_id)
    .bind(asked.fingerprint.as_bytes().as_slice())
    .fetch_optional(connection)
    .await?;
    row.map(|row| Found::try_from(row).map(|found| found.task))
        .transpose()
}

/// Whether this teacher teaches this class.
pub(crate) async fn teaches(
    connection: &mut PgConnection,
    teacher_id: i64,
    class_id: i64,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM class_member WHERE class_id = $1 AND account_id = $2)",
    )
    .bind(class_id)
    .bind(teacher_id)
    .fetch_one(connection)
    .await
}

/// Inserts a task; `None` when the key or the same task is there already, or when it would be closed from its beginning.
pub(crate) async fn insert_task(
    connection: &mut PgConnection,
    teacher_id: i64,
    key: &IdempotencyKey,
    asked: &CheckedTask,
) -> Result<Option<AssignedTask>, StoreError> {
    let row: Option<AssignedRow> = sqlx::query_as(
        "INSERT INTO task (class_id, title, instructions, kind, due_at, closes_at, created_by, creation_key, fingerprint)
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
         WHERE $6::timestamptz IS NULL OR $6 > clock_timestamp()
         -- Without a target: either of the two constraints means that somebody was first.
         ON CONFLICT DO NOTHING
         RETURNING id, class_id, title, instructions, kind, due_at, closes_at, created_at, fingerprint",
    )
    .bind(asked.class_id)
    .bind(&asked.task.title)
    .bind(&asked.task.instructions)
    .bind(asked.task.kind.as_ref())
    .bind(asked.due_at)
    .bind(asked.closes_at)
    .bind(teacher_id)
    .bind(key.as_str())
    .bind(asked.fingerprint.as_bytes().as_slice())
    .fetch_optional(connection)
    .await?;
    row.map(|row| Found::try_from(row).map(|found| found.task))
        .transpose()
}

/// Whether this student has this task in a class that this teacher teaches.
pub(crate) async fn has_pupil(
    connection: &mut PgConnection,
    teacher_id: i64,
    task_id: i64,
    student_id: i64,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar(
        "SELECT EXISTS (
             SELECT FROM task t
             JOIN class_member teaches ON teaches.class_id = t.class_id AND teaches.account_id = $1
             JOIN class_member learns ON learns.class_id = t.class_id AND learns.account_id = $3
             JOIN account student ON student.id = learns.account_id AND student.role = 'student'
             WHERE t.id = $2)",
    )
    .bind(teacher_id)
    .bind(task_id)
    .bind(student_id)
    .fetch_one(connection)
    .await
}

/// Opens the next version of an assignment whose current one was handed in; answers which, or `None` when there is nothing to open.
pub(crate) async fn insert_reopening(
    connection: &mut PgConnection,
    teacher_id: i64,
    task_id: i64,
    student_id: i64,
    seen_version: Option<i32>,
) -> Result<Option<i32>, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO task_reopening (task_id, student_id, submit_version, reopened_by, created_at)
         SELECT t.task_id, t.student_id, greatest(t.submit_version, t.submission_version) + 1, $1, clock_timestamp()
         FROM student_task t
         WHERE t.task_id = $2 AND t.student_id = $3 AND t.kind = 'assignment' AND t.status = 'submitted'
           AND ($4::integer IS NULL OR t.submit_version = $4)
         -- RACE: two clicks at the same moment see the same version; the second waits here for the first and then does nothing.
         ON CONFLICT ON CONSTRAINT uk_task_reopening_version DO NOTHING
         RETURNING submit_version",
    )
    .bind(teacher_id)
    .bind(task_id)
    .bind(student_id)
    .bind(seen_version)
    .fetch_optional(connection)
    .await
}
