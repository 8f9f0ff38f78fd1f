//! Tasks and submissions of one student.

use domain::view::{AttemptView, RequestView, StoredResponse, SubmissionView, TaskView};
use sqlx::{FromRow, PgPool, types::time::OffsetDateTime};

use super::{actions::SubmissionRow, rfc3339};
use crate::{Actor, StoreError};

#[derive(FromRow)]
struct TaskRow {
    student_id: i64,
    task_id: i64,
    title: String,
    instructions: String,
    kind: String,
    due_at: Option<OffsetDateTime>,
    closes_at: Option<OffsetDateTime>,
    submit_version: i32,
    status: String,
    submission_id: Option<i64>,
    submission_version: Option<i32>,
    submission_content: Option<String>,
    submitted_at: Option<OffsetDateTime>,
    attempts: i64,
    points: i64,
}

impl TryFrom<TaskRow> for TaskView {
    type Error = StoreError;

    fn try_from(row: TaskRow) -> Result<Self, StoreError> {
        let corrupt = |what: &str| StoreError::Corrupt(format!("{what} of task {}", row.task_id));
        let submission = match (
            row.submission_id,
            row.submission_version,
            row.submission_content,
            row.submitted_at,
        ) {
            (Some(id), Some(submit_version), Some(content), Some(created_at)) => Some(
                SubmissionRow {
                    id,
                    task_id: row.task_id,
                    student_id: row.student_id,
                    submit_version,
                    content,
                    created_at,
                }
                .into(),
            ),
            _ => None,
        };
        Ok(Self {
            id: row.task_id.to_string(),
            title: row.title,
            instructions: row.instructions,
            kind: row.kind.parse().map_err(|_| corrupt("kind"))?,
            due_at: row.due_at.map(rfc3339),
            closes_at: row.closes_at.map(rfc3339),
            submit_version: row.submit_version,
            status: row.status.parse().map_err(|_| corrupt("status"))?,
            submission,
            attempts: row.attempts,
            points: row.points,
        })
    }
}

/// The tasks of a student.
pub(crate) async fn list_tasks(
    pool: &PgPool,
    student_id: i64,
) -> Result<Vec<TaskView>, StoreError> {
    let rows: Vec<TaskRow> = sqlx::query_as(
        "SELECT * FROM student_task WHERE student_id = $1 ORDER BY due_at NULLS LAST, task_id",
    )
    .bind(student_id)
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// The tasks of a student in the classes that a teacher teaches.
pub(crate) async fn list_tasks_taught_by(
    pool: &PgPool,
    teacher_id: i64,
    student_id: i64,
) -> Result<Vec<TaskView>, StoreError> {
    let rows: Vec<TaskRow> = sqlx::query_as(
        "SELECT t.* FROM student_task t
         JOIN class_member teaches ON teaches.class_id = t.class_id AND teaches.account_id = $1
         WHERE t.student_id = $2 ORDER BY t.due_at NULLS LAST, t.task_id",
    )
    .bind(teacher_id)
    .bind(student_id)
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// One task of a student.
pub(crate) async fn find_task(
    pool: &PgPool,
    student_id: i64,
    task_id: i64,
) -> Result<Option<TaskView>, StoreError> {
    let row: Option<TaskRow> =
        sqlx::query_as("SELECT * FROM student_task WHERE student_id = $1 AND task_id = $2")
            .bind(student_id)
            .bind(task_id)
            .fetch_optional(pool)
            .await?;
    row.map(TryInto::try_into).transpose()
}

/// A submission that this account may see: its student, the teachers of the task's class, the student's parents.
pub(crate) async fn find_submission(
    pool: &PgPool,
    actor: &Actor,
    id: i64,
) -> Result<Option<SubmissionView>, sqlx::Error> {
    let row: Option<SubmissionRow> = sqlx::query_as(
        "SELECT s.id, s.task_id, s.student_id, s.submit_version, s.content, s.created_at
         FROM submission s JOIN task t ON t.id = s.task_id
         WHERE s.id = $1 AND CASE $3
             WHEN 'student' THEN s.student_id = $2
             WHEN 'parent' THEN EXISTS (SELECT FROM parent_child p WHERE p.parent_id = $2 AND p.child_id = s.student_id)
             WHEN 'teacher' THEN EXISTS (
                 SELECT FROM class_member m WHERE m.class_id = t.class_id AND m.account_id = $2)
             ELSE false END",
    )
    .bind(id)
    .bind(actor.id)
    .bind(actor.role.as_ref())
    .fetch_optional(pool)
    .await?;
    Ok(row.map(Into::into))
}

#[derive(FromRow)]
struct AttemptRow {
    id: i64,
    submit_version: i32,
    created_at: OffsetDateTime,
    points: i64,
    excerpt: String,
    client_id: Option<String>,
}

/// A student's submissions of one task, newest first.
pub(crate) async fn list_submissions(
    pool: &PgPool,
    student_id: i64,
    task_id: i64,
    excerpt_chars: i32,
    limit: i64,
) -> Result<Vec<AttemptView>, sqlx::Error> {
    let rows: Vec<AttemptRow> = sqlx::query_as(
        "SELECT s.id, s.submit_version, s.created_at, left(s.content, $3) AS excerpt,
                (SELECT coalesce(sum(e.amount), 0) FROM points_entry e
                 WHERE e.source_kind = 'submission' AND e.source_id = s.id) AS points,
                -- Arrivals are kept for some days; the first one is the one that began the execution.
                (SELECT a.client_id FROM request_arrival a WHERE a.record_id = s.record_id
                 ORDER BY a.arrived_at LIMIT 1) AS client_id
         FROM submission s WHERE s.student_id = $1 AND s.task_id = $2
         ORDER BY s.submit_version DESC LIMIT $4",
    )
    .bind(student_id)
    .bind(task_id)
    .bind(excerpt_chars)
    .bind(limit)
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| AttemptView {
            id: row.id.to_string(),
            submit_version: row.submit_version,
            created_at: rfc3339(row.created_at),
            points: row.points,
            excerpt: row.excerpt,
            client_id: row.client_id,
        })
        .collect())
}

/// One version that a student has handed in.
pub(crate) async fn find_version(
    pool: &PgPool,
    student_id: i64,
    task_id: i64,
    submit_version: i32,
) -> Result<Option<SubmissionView>, sqlx::Error> {
    let row: Option<SubmissionRow> = sqlx::query_as(
        "SELECT id, task_id, student_id, submit_version, content, created_at
         FROM submission WHERE student_id = $1 AND task_id = $2 AND submit_version = $3",
    )
    .bind(student_id)
    .bind(task_id)
    .bind(submit_version)
    .fetch_optional(pool)
    .await?;
    Ok(row.map(Into::into))
}

pub(crate) async fn find_balance(
    pool: &PgPool,
    account_id: i64,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT balance FROM points_balance WHERE account_id = $1")
        .bind(account_id)
        .fetch_optional(pool)
        .await
}

#[derive(FromRow)]
struct RequestRow {
    idem_key: String,
    action_type: String,
    state: String,
    attempt: i32,
    version: i64,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    arrivals: i64,
    lease_remaining_ms: Option<i64>,
    response_status: Option<i16>,
    response_body: Option<String>,
}

/// What became of a key of this account.
pub(crate) async fn find_request(
    pool: &PgPool,
    actor: &Actor,
    action: &str,
    key: &str,
) -> Result<Option<RequestView>, StoreError> {
    let row: Option<RequestRow> = sqlx::query_as(
        "SELECT r.idem_key, r.action_type, r.state, r.attempt, r.version, r.created_at, r.updated_at,
                (SELECT count(*) FROM request_arrival a WHERE a.record_id = r.id) AS arrivals,
                CASE WHEN r.lease_until IS NOT NULL
                     THEN greatest(0, ceil(extract(epoch FROM r.lease_until - clock_timestamp()) * 1000))::bigint
                END AS lease_remaining_ms,
                r.response_status, r.response_body
         FROM idempotency_record r
         WHERE r.subject_id = $1 AND r.action_type = $2 AND r.idem_key = $3",
    )
    .bind(actor.id)
    .bind(action)
    .bind(key)
    .fetch_optional(pool)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let corrupt = |what: &str| StoreError::Corrupt(format!("{what} of a record"));
    let response = match (row.response_status, row.response_body) {
        (Some(status), Some(body)) => Some(StoredResponse {
            status: status.try_into().map_err(|_| corrupt("response_status"))?,
            body: serde_json::from_str(&body).map_err(|_| corrupt("response_body"))?,
        }),
        _ => None,
    };
    Ok(Some(RequestView {
        key: row.idem_key,
        action: row.action_type,
        state: row.state.parse().map_err(|_| corrupt("state"))?,
        attempt: row.attempt,
        version: row.version,
        first_seen_at: rfc3339(row.created_at),
        updated_at: rfc3339(row.updated_at),
        arrivals: row.arrivals,
        lease_remaining_ms: row.lease_remaining_ms,
        response,
    }))
}
