//! `task_submit`: a student hands in a task. The submission, its points and its message are written in one transaction.

use domain::{
    ActionType, ProblemCode,
    action::TASK_SUBMIT,
    command::{self, SubmissionBody},
    view::SubmissionView,
};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{FromRow, PgConnection, types::time::OffsetDateTime};

use super::{
    Action, ClaimRef, Evidence, Policy, ReadError, ReadRequest, Verdict, is_id, parameter,
};
use crate::{StoreError, store::rfc3339};

/// What a submission earns.
const POINTS_PER_SUBMISSION: i32 = 10;

/// The action.
#[derive(Debug)]
pub(crate) struct TaskSubmit;

/// The command: the route's parameter and the body without `client_id`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    task_id: String,
    submit_version: i32,
    content: String,
}

impl Action for TaskSubmit {
    fn action_type(&self) -> ActionType {
        TASK_SUBMIT
    }

    fn policy(&self) -> Policy {
        Policy {
            local_effects_only: true,
            lease: None,
            second_person: false,
        }
    }

    fn route(&self) -> &'static str {
        "/tasks/{task_id}/submissions"
    }

    fn read(&self, parameters: &[(&str, &str)], body: &[u8]) -> Result<ReadRequest, ReadError> {
        let task_id = parameter(parameters, "task_id")?;
        let body: SubmissionBody =
            serde_json::from_slice(body).map_err(|e| ReadError::Body(e.to_string()))?;
        body.check().map_err(|e| ReadError::Body(e.to_string()))?;
        let command = Command {
            task_id,
            submit_version: body.submit_version,
            content: body.content,
        };
        let command = serde_json::to_value(command).map_err(|e| ReadError::Body(e.to_string()))?;
        Ok(ReadRequest {
            client_id: body.client_id,
            command,
        })
    }

    fn check(&self, command: Value) -> Result<Value, String> {
        let command: Command = serde_json::from_value(command).map_err(|e| e.to_string())?;
        if !is_id(&command.task_id) {
            return Err("task_id is no id".to_owned());
        }
        command::check_submission(command.submit_version, &command.content)
            .map_err(|e| e.to_string())?;
        serde_json::to_value(command).map_err(|e| e.to_string())
    }

    fn run_effects<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        claims: &'a [ClaimRef],
    ) -> BoxFuture<'a, Result<Vec<(i64, Verdict)>, StoreError>> {
        Box::pin(async move {
            let tried = insert_submissions(connection, claims).await?;
            let mut to_derive: Vec<i64> = tried.iter().filter_map(|t| t.id).collect();
            let stopped: Vec<i64> = tried
                .iter()
                .filter(|t| t.refusal.is_none() && t.id.is_none())
                .map(|t| t.record_id)
                .collect();
            let mut winners = Vec::new();
            if !stopped.is_empty() {
                // RACE: the first statement's snapshot may be older than the winner's commit, so a second one reads the winners.
                winners = list_existing(connection, &stopped).await?;
                to_derive.extend(adopt_unowned(connection, &winners).await?);
            }
            if !to_derive.is_empty() {
                insert_derived(connection, &to_derive).await?;
            }
            let inserted = tried.into_iter().filter_map(Tried::into_verdict);
            Ok(inserted
                .chain(winners.into_iter().map(Existing::into_verdict))
                .collect())
        })
    }

    fn find_evidence<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<Evidence, StoreError>> {
        Box::pin(async move {
            let found = list_existing(connection, &[record_id]).await?;
            Ok(match found.into_iter().next() {
                // Local effects and a row that is not there: it cannot appear any more under the epoch that is fenced.
                None => Evidence::Absent,
                Some(existing) if existing.same_content => Evidence::Present {
                    by_this_record: existing.owner == Some(record_id),
                    body: existing.body(),
                    location: existing.location(),
                },
                Some(existing) => Evidence::Other {
                    location: existing.location(),
                },
            })
        })
    }

    fn complete_effects<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let existing = list_existing(connection, &[record_id]).await?;
            let mut ids = adopt_unowned(connection, &existing).await?;
            ids.extend(
                existing
                    .iter()
                    .filter(|e| e.owner == Some(record_id))
                    .map(|e| e.row.id),
            );
            Ok(insert_derived(connection, &ids).await?)
        })
    }
}

/// What the first statement made of one claim.
#[derive(FromRow)]
struct Tried {
    record_id: i64,
    refusal: Option<String>,
    id: Option<i64>,
    task_id: i64,
    student_id: i64,
    submit_version: i32,
    content: String,
    created_at: Option<OffsetDateTime>,
}

impl Tried {
    fn into_verdict(self) -> Option<(i64, Verdict)> {
        if let Some(refusal) = self.refusal {
            let code = match refusal.as_str() {
                "task-not-assigned" => ProblemCode::TaskNotAssigned,
                "task-closed" => ProblemCode::TaskClosed,
                _ => ProblemCode::VersionNotCurrent,
            };
            return Some((self.record_id, Verdict::Refused { code }));
        }
        let row = SubmissionView {
            id: self.id?.to_string(),
            task_id: self.task_id.to_string(),
            student_id: self.student_id.to_string(),
            submit_version: self.submit_version,
            content: self.content,
            created_at: rfc3339(self.created_at?),
        };
        Some((
            self.record_id,
            Verdict::Done {
                status: 201,
                location: location(&row.id),
                body: to_json(&row),
            },
        ))
    }
}

/// The row of one record's intent, whichever key wrote it.
#[derive(FromRow)]
struct Existing {
    record_id: i64,
    same_content: bool,
    /// The record that wrote it; `None` for another writer.
    owner: Option<i64>,
    #[sqlx(flatten)]
    row: SubmissionRow,
}

impl Existing {
    fn location(&self) -> String {
        location(&self.row.id.to_string())
    }

    fn body(&self) -> String {
        to_json(&SubmissionView::from(self.row.clone()))
    }

    fn into_verdict(self) -> (i64, Verdict) {
        let location = self.location();
        let verdict = if self.same_content {
            Verdict::ConflictSame {
                body: self.body(),
                location,
            }
        } else {
            Verdict::ConflictOther {
                code: ProblemCode::AlreadySubmitted,
                location: Some(location),
            }
        };
        (self.record_id, verdict)
    }
}

/// A row of `submission`.
#[derive(Clone, FromRow)]
pub(crate) struct SubmissionRow {
    pub(crate) id: i64,
    pub(crate) task_id: i64,
    pub(crate) student_id: i64,
    pub(crate) submit_version: i32,
    pub(crate) content: String,
    pub(crate) created_at: OffsetDateTime,
}

impl From<SubmissionRow> for SubmissionView {
    fn from(row: SubmissionRow) -> Self {
        Self {
            id: row.id.to_string(),
            task_id: row.task_id.to_string(),
            student_id: row.student_id.to_string(),
            submit_version: row.submit_version,
            content: row.content,
            created_at: rfc3339(row.created_at),
        }
    }
}

fn location(submission_id: &str) -> String {
    format!("/api/v1/submissions/{submission_id}")
}

fn to_json(row: &SubmissionView) -> String {
    serde_json::to_string(row).expect("a view of strings and numbers is always JSON")
}

async fn insert_submissions(
    connection: &mut PgConnection,
    claims: &[ClaimRef],
) -> Result<Vec<Tried>, sqlx::Error> {
    let record_ids: Vec<i64> = claims.iter().map(|c| c.record_id).collect();
    let epochs: Vec<i64> = claims.iter().map(|c| c.epoch).collect();
    sqlx::query_as(
        "WITH guard AS MATERIALIZED (
             -- Serialises the owner with whoever takes over; ordered, so that crossed sets cannot deadlock.
             SELECT r.id, r.epoch, r.subject_id, r.created_at,
                    (r.request ->> 'task_id')::bigint AS task_id,
                    (r.request ->> 'submit_version')::integer AS submit_version,
                    r.request ->> 'content' AS content
             FROM idempotency_record r
             JOIN unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS input (record_id, epoch, token)
               ON input.record_id = r.id AND input.epoch = r.epoch AND input.token = r.claim_token
             WHERE r.state = 'PROCESSING'
             ORDER BY r.id
             FOR UPDATE OF r
         ), judged AS MATERIALIZED (
             SELECT g.*,
                    CASE
                        -- The constraint answers before any rule: what was handed in stays handed in.
                        WHEN existing.id IS NOT NULL THEN NULL
                        WHEN t.task_id IS NULL THEN 'task-not-assigned'
                        -- Judged at the time of the arrival: midnight does not punish a crash.
                        WHEN t.closes_at <= g.created_at THEN 'task-closed'
                        WHEN g.submit_version <> t.submit_version THEN 'version-not-current'
                    END AS refusal,
                    existing.id IS NOT NULL AS exists_already
             FROM guard g
             LEFT JOIN student_task t ON t.task_id = g.task_id AND t.student_id = g.subject_id
             LEFT JOIN submission existing
               ON existing.task_id = g.task_id AND existing.student_id = g.subject_id
              AND existing.submit_version = g.submit_version
         ), inserted AS (
             INSERT INTO submission (task_id, student_id, submit_version, content, record_id, epoch)
             SELECT task_id, subject_id, submit_version, content, id, epoch FROM judged
             WHERE refusal IS NULL AND NOT exists_already
             ORDER BY task_id, subject_id, submit_version
             ON CONFLICT ON CONSTRAINT uk_task_student_version DO NOTHING
             RETURNING id, record_id, created_at
         )
         SELECT j.id AS record_id, j.refusal, i.id, j.task_id, j.subject_id AS student_id, j.submit_version, j.content,
                i.created_at
         FROM judged j LEFT JOIN inserted i ON i.record_id = j.id",
    )
    .bind(record_ids)
    .bind(epochs)
    .bind(claims.iter().map(|c| c.token).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
}

async fn list_existing(
    connection: &mut PgConnection,
    record_ids: &[i64],
) -> Result<Vec<Existing>, sqlx::Error> {
    sqlx::query_as(
        "SELECT r.id AS record_id, s.content = r.request ->> 'content' AS same_content, s.record_id AS owner,
                s.id, s.task_id, s.student_id, s.submit_version, s.content, s.created_at
         FROM idempotency_record r
         JOIN submission s
           ON s.task_id = (r.request ->> 'task_id')::bigint AND s.student_id = r.subject_id
          AND s.submit_version = (r.request ->> 'submit_version')::integer
         WHERE r.id = ANY ($1)",
    )
    .bind(record_ids)
    .fetch_all(connection)
    .await
}

/// Takes over rows with the same content that another writer left without points and message; answers which.
async fn adopt_unowned(
    connection: &mut PgConnection,
    existing: &[Existing],
) -> Result<Vec<i64>, sqlx::Error> {
    let unowned: Vec<_> = existing
        .iter()
        .filter(|e| e.same_content && e.owner.is_none())
        .collect();
    if unowned.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query_scalar(
        "WITH input AS (
             -- Two keys of a set may have met the same row.
             SELECT id, min(record_id) AS record_id
             FROM unnest($1::bigint[], $2::bigint[]) AS input (id, record_id) GROUP BY id ORDER BY id
         )
         UPDATE submission s SET record_id = r.id, epoch = r.epoch
         FROM input i JOIN idempotency_record r ON r.id = i.record_id
         WHERE s.id = i.id AND s.record_id IS NULL
         RETURNING s.id",
    )
    .bind(unowned.iter().map(|e| e.row.id).collect::<Vec<_>>())
    .bind(unowned.iter().map(|e| e.record_id).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
}

/// Adds what each submission brings with it and does not have yet: points and the message. Each is unique per source.
async fn insert_derived(
    connection: &mut PgConnection,
    submission_ids: &[i64],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH written AS MATERIALIZED (
             SELECT s.id, s.task_id, s.student_id, s.submit_version, s.record_id, t.kind
             FROM submission s JOIN task t ON t.id = s.task_id
             WHERE s.id = ANY ($1)
         ), earned AS (
             INSERT INTO points_entry (account_id, amount, source_kind, source_id)
             SELECT student_id, $2, 'submission', id FROM written
             -- A reopened assignment earns no points again.
             WHERE kind = 'practice' OR submit_version = 1
             ORDER BY id
             ON CONFLICT ON CONSTRAINT uk_points_entry_source DO NOTHING
             RETURNING account_id, amount
         ), message AS (
             INSERT INTO outbox (record_id, topic, payload)
             SELECT record_id, 'submission.created',
                    jsonb_build_object('submission_id', id::text, 'task_id', task_id::text,
                                       'student_id', student_id::text, 'submit_version', submit_version)
             FROM written ORDER BY record_id
             ON CONFLICT ON CONSTRAINT uk_outbox_record_topic DO NOTHING
         )
         -- Summed first: an account may stand in a set more than once, but can be updated once.
         INSERT INTO points_balance AS b (account_id, balance)
         SELECT account_id, sum(amount) FROM earned GROUP BY account_id ORDER BY account_id
         ON CONFLICT ON CONSTRAINT pk_points_balance DO UPDATE SET balance = b.balance + EXCLUDED.balance",
    )
    .bind(submission_ids)
    .bind(POINTS_PER_SUBMISSION)
    .execute(connection)
    .await
    .map(drop)
}
