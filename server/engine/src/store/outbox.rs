//! The outbox: messages that were written with their effects, and their way out.

use std::time::Duration;

use serde_json::Value;
use sqlx::{FromRow, PgExecutor, PgPool, types::time::OffsetDateTime};
use uuid::Uuid;

/// A message that this process is to deliver.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct Claimed {
    pub(crate) id: i64,
    pub(crate) record_id: i64,
    pub(crate) topic: String,
    pub(crate) payload: Value,
    pub(crate) created_at: OffsetDateTime,
    pub(crate) attempts: i32,
    /// The trace of the record that the message is about.
    pub(crate) trace_id: Option<String>,
}

/// Claims messages that are due, at most `limit`, so that nobody else delivers them meanwhile.
pub(crate) async fn claim_due(
    pool: &PgPool,
    token: Uuid,
    lease: Duration,
    limit: i64,
) -> Result<Vec<Claimed>, sqlx::Error> {
    sqlx::query_as(
        "UPDATE outbox o
         SET claim_token = $1, claimed_until = clock_timestamp() + make_interval(secs => $2), attempts = o.attempts + 1
         FROM (
             SELECT d.id FROM outbox d
             WHERE d.delivered_at IS NULL AND d.dead_at IS NULL AND d.next_attempt_at <= statement_timestamp()
               AND (d.claimed_until IS NULL OR d.claimed_until <= clock_timestamp())
             ORDER BY d.next_attempt_at, d.id LIMIT $3
             FOR UPDATE SKIP LOCKED
         ) due
         WHERE o.id = due.id
         RETURNING o.id, o.record_id, o.topic, o.payload, o.created_at, o.attempts,
                   (SELECT r.trace_id FROM idempotency_record r WHERE r.id = o.record_id) AS trace_id",
    )
    .bind(token)
    .bind(lease.as_secs_f64())
    .bind(limit)
    .fetch_all(pool)
    .await
}

/// The readers of a message: the teachers of the student's classes and the parents.
macro_rules! notify_sql {
    ($delivered:literal) => {
        concat!(
            "WITH ",
            $delivered,
            ", reader AS (
                 SELECT d.id AS outbox_id, d.topic, d.payload, m.account_id
                 FROM delivered d
                 JOIN class_member s ON s.account_id = (d.payload ->> 'student_id')::bigint
                 JOIN class_member m ON m.class_id = s.class_id
                 JOIN account a ON a.id = m.account_id AND a.role = 'teacher'
                 UNION
                 SELECT d.id, d.topic, d.payload, p.parent_id
                 FROM delivered d JOIN parent_child p ON p.child_id = (d.payload ->> 'student_id')::bigint
             ), told AS (
                 INSERT INTO notification (account_id, outbox_id, topic, payload)
                 SELECT account_id, outbox_id, topic, payload FROM reader ORDER BY outbox_id, account_id
                 ON CONFLICT ON CONSTRAINT uk_notification_outbox_account DO NOTHING
             )
             SELECT count(*) FROM delivered"
        )
    };
}

/// Delivers messages that are due inside, at most `limit`: readers and mark in one statement. Answers how many.
pub(crate) async fn deliver_inside(pool: &PgPool, limit: i64) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(notify_sql!(
        "due AS (
             SELECT o.id FROM outbox o
             WHERE o.delivered_at IS NULL AND o.dead_at IS NULL AND o.next_attempt_at <= statement_timestamp()
               AND (o.claimed_until IS NULL OR o.claimed_until <= clock_timestamp())
             ORDER BY o.next_attempt_at, o.id LIMIT $1
             FOR UPDATE SKIP LOCKED
         ), delivered AS (
             UPDATE outbox o SET delivered_at = clock_timestamp(), attempts = o.attempts + 1, last_error = NULL,
                                 claim_token = NULL, claimed_until = NULL
             FROM due WHERE o.id = due.id
             RETURNING o.id, o.topic, o.payload
         )"
    ))
    .bind(limit)
    .fetch_one(pool)
    .await
}

/// Marks a message as delivered, and tells its readers. Answers whether it was still this process's to deliver.
pub(crate) async fn mark_delivered_if_claimed(
    pool: &PgPool,
    id: i64,
    token: Uuid,
) -> Result<bool, sqlx::Error> {
    let marked: i64 = sqlx::query_scalar(notify_sql!(
        "delivered AS (
             UPDATE outbox SET delivered_at = clock_timestamp(), last_error = NULL, claim_token = NULL, claimed_until = NULL
             WHERE id = $1 AND claim_token = $2 AND delivered_at IS NULL
             RETURNING id, topic, payload
         )"
    ))
    .bind(id)
    .bind(token)
    .fetch_one(pool)
    .await?;
    Ok(marked == 1)
}

/// Keeps why a message could not be delivered: it is tried again after a pause, or never when it was tried too often.
pub(crate) async fn mark_failed_if_claimed(
    pool: &PgPool,
    id: i64,
    token: Uuid,
    error: &str,
    pause: Option<Duration>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE outbox
         SET last_error = $3, claim_token = NULL, claimed_until = NULL,
             next_attempt_at = clock_timestamp() + make_interval(secs => coalesce($4, 0)),
             dead_at = CASE WHEN $4 IS NULL THEN clock_timestamp() END
         WHERE id = $1 AND claim_token = $2 AND delivered_at IS NULL",
    )
    .bind(id)
    .bind(token)
    .bind(error)
    .bind(pause.map(|pause| pause.as_secs_f64()))
    .execute(pool)
    .await
    .map(drop)
}

/// What became of letting a dead letter be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revived {
    Done,
    /// It is no dead letter (any more).
    MovedOn,
    Missing,
}

/// Lets a dead letter be tried again, from the beginning.
pub(crate) async fn revive_if_dead(
    connection: &mut sqlx::PgConnection,
    id: i64,
) -> Result<Revived, sqlx::Error> {
    let revived = sqlx::query(
        "UPDATE outbox SET dead_at = NULL, attempts = 0, next_attempt_at = clock_timestamp()
         WHERE id = $1 AND dead_at IS NOT NULL AND delivered_at IS NULL",
    )
    .bind(id)
    .execute(&mut *connection)
    .await?;
    if revived.rows_affected() == 1 {
        return Ok(Revived::Done);
    }
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM outbox WHERE id = $1)")
        .bind(id)
        .fetch_one(connection)
        .await?;
    Ok(if exists {
        Revived::MovedOn
    } else {
        Revived::Missing
    })
}

/// A message as the record's page shows it.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct MessageRow {
    pub(crate) id: i64,
    pub(crate) topic: String,
    pub(crate) payload: Value,
    pub(crate) created_at: OffsetDateTime,
    pub(crate) delivered_at: Option<OffsetDateTime>,
    pub(crate) attempts: i32,
    pub(crate) dead_at: Option<OffsetDateTime>,
    pub(crate) last_error: Option<String>,
}

/// The messages of a record, oldest first.
pub(crate) async fn list_messages(
    executor: impl PgExecutor<'_>,
    record_id: i64,
) -> Result<Vec<MessageRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT id, topic, payload, created_at, delivered_at, attempts, dead_at, last_error
         FROM outbox WHERE record_id = $1 ORDER BY id",
    )
    .bind(record_id)
    .fetch_all(executor)
    .await
}

/// A line that a teacher or a parent reads.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct NotificationRow {
    pub(crate) id: i64,
    pub(crate) topic: String,
    pub(crate) created_at: OffsetDateTime,
    pub(crate) student_name: String,
    pub(crate) title: String,
}

/// The newest notifications of an account.
pub(crate) async fn list_notifications(
    pool: &PgPool,
    account_id: i64,
    limit: i64,
) -> Result<Vec<NotificationRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT n.id, n.topic, n.created_at, s.name AS student_name, coalesce(t.title, w.name, '') AS title
         FROM notification n
         JOIN account s ON s.id = (n.payload ->> 'student_id')::bigint
         LEFT JOIN task t ON t.id = (n.payload ->> 'task_id')::bigint
         LEFT JOIN reward w ON w.id = (n.payload ->> 'reward_id')::bigint
         WHERE n.account_id = $1 ORDER BY n.id DESC LIMIT $2",
    )
    .bind(account_id)
    .bind(limit)
    .fetch_all(pool)
    .await
}

/// Deletes delivered messages whose record is gone, and notifications, that are older than they are kept; at most `limit` each.
/// While the record is there its messages stay: they keep a repair from writing them again.
pub(crate) async fn delete_old(
    pool: &PgPool,
    kept_days: i32,
    limit: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH told AS (
             DELETE FROM notification WHERE id IN (
                 SELECT id FROM notification WHERE created_at < statement_timestamp() - make_interval(days => $1)
                 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
             )
         )
         DELETE FROM outbox WHERE id IN (
             SELECT o.id FROM outbox o
             WHERE o.delivered_at < statement_timestamp() - make_interval(days => $1)
               AND NOT EXISTS (SELECT FROM idempotency_record r WHERE r.id = o.record_id)
             ORDER BY o.delivered_at LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
    )
    .bind(kept_days)
    .bind(limit)
    .execute(pool)
    .await
    .map(drop)
}
