//! Tasks and submissions of one student.

use domain::view::{RequestView, StoredResponse, SubmissionView, TaskView};
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
        })
    }
}

pub(crate) async fn list_tasks(pool: &PgPool, actor: &Actor) -> Result<Vec<TaskView>, StoreError> {
    let rows: Vec<TaskRow> = sqlx::query_as(
        "SELECT * FROM student_task WHERE student_id = $1 ORDER BY due_at NULLS LAST, task_id",
    )
    .bind(actor.id)
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

pub(crate) async fn find_task(
    pool: &PgPool,
    actor: &Actor,
    task_id: i64,
) -> Result<Option<TaskView>, StoreError> {
    let row: Option<TaskRow> =
        sqlx::query_as("SELECT * FROM student_task WHERE student_id = $1 AND task_id = $2")
            .bind(actor.id)
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
        response,
    }))
}
