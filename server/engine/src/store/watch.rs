//! What is watched beside the panel's counters: stuck claims, unfinished records, and what waits.

use std::time::Duration;

use domain::RecordState;
use sqlx::{FromRow, PgConnection, PgPool};

use crate::{
    StoreError,
    watch::{Queues, Unfinished},
};

#[derive(FromRow)]
struct MarkedRow {
    marked: i64,
    at: f64,
}

/// Counts claims that became stuck since the last look, at most `limit`. Answers how many, and Postgres's clock in seconds since
/// 1970.
pub(crate) async fn mark_stuck(
    pool: &PgPool,
    stuck_after: Duration,
    limit: i64,
) -> Result<(i64, f64), sqlx::Error> {
    let row: MarkedRow = sqlx::query_as(
        "WITH stuck AS (
             SELECT id FROM idempotency_record
             WHERE state IN ('PROCESSING', 'UNKNOWN') AND claimed_at <= now() - make_interval(secs => $1)
               -- The mark: a claim is counted once, whichever instance looks, and a later claim of the same record anew.
               AND stuck_claim IS DISTINCT FROM claimed_at
             ORDER BY claimed_at, id LIMIT $2
             -- What somebody else is just moving or marking is not waited for; what stays is seen by the next look.
             FOR UPDATE SKIP LOCKED
         ), marked AS (
             UPDATE idempotency_record r SET stuck_claim = r.claimed_at FROM stuck WHERE r.id = stuck.id
             RETURNING r.action_type
         ), counted AS (
             INSERT INTO stuck_counter AS c (action_type, n)
             SELECT action_type, count(*) FROM marked GROUP BY 1 ORDER BY 1
             ON CONFLICT ON CONSTRAINT pk_stuck_counter DO UPDATE SET n = c.n + EXCLUDED.n
         )
         SELECT count(*) AS marked, extract(epoch FROM clock_timestamp())::double precision AS at FROM marked",
    )
    .bind(stuck_after.as_secs_f64())
    .bind(limit)
    .fetch_one(pool)
    .await?;
    Ok((row.marked, row.at))
}

pub(crate) async fn list_stuck_counters(
    connection: &mut PgConnection,
) -> Result<Vec<(String, i64)>, sqlx::Error> {
    sqlx::query_as("SELECT action_type, n FROM stuck_counter")
        .fetch_all(connection)
        .await
}

#[derive(FromRow)]
struct UnfinishedRow {
    action_type: String,
    state: String,
    records: i64,
    stuck: i64,
    oldest_seconds: f64,
}

pub(crate) async fn list_unfinished(
    connection: &mut PgConnection,
    stuck_after: Duration,
) -> Result<Vec<Unfinished>, StoreError> {
    let rows: Vec<UnfinishedRow> = sqlx::query_as(
        "SELECT action_type, state, count(*) AS records,
                count(*) FILTER (WHERE state <> 'FAILED_RETRYABLE' AND age >= make_interval(secs => $1)) AS stuck,
                greatest(extract(epoch FROM max(age)), 0)::double precision AS oldest_seconds
         FROM (
             SELECT action_type, state, now() - claimed_at AS age FROM idempotency_record
             WHERE state IN ('PROCESSING', 'UNKNOWN', 'FAILED_RETRYABLE')
         ) unfinished
         GROUP BY 1, 2",
    )
    .bind(stuck_after.as_secs_f64())
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Unfinished {
                state: parse(&row.state)?,
                action: row.action_type,
                records: row.records,
                stuck: row.stuck,
                oldest_seconds: row.oldest_seconds,
            })
        })
        .collect()
}

fn parse(state: &str) -> Result<RecordState, StoreError> {
    state
        .parse()
        .map_err(|_| StoreError::Corrupt(format!("state {state:?}")))
}

pub(crate) async fn count_finished(
    connection: &mut PgConnection,
) -> Result<Vec<(String, RecordState, i64)>, StoreError> {
    let rows: Vec<(String, String, i64)> = sqlx::query_as(
        "SELECT action_type, state, count(*) FROM idempotency_record
         WHERE state IN ('SUCCEEDED', 'FAILED_FINAL') GROUP BY 1, 2",
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|(action, state, n)| Ok((action, parse(&state)?, n)))
        .collect()
}

#[derive(FromRow)]
struct QueuesRow {
    approvals: i64,
    oldest_approval: f64,
    undelivered: i64,
    oldest_undelivered: f64,
    dead: i64,
}

pub(crate) async fn find_queues(connection: &mut PgConnection) -> Result<Queues, sqlx::Error> {
    let row: QueuesRow = sqlx::query_as(
        "SELECT a.approvals, a.oldest_approval, o.undelivered, o.oldest_undelivered, o.dead
         FROM (
             SELECT count(*) AS approvals,
                    coalesce(greatest(extract(epoch FROM now() - min(created_at)), 0), 0)::double precision AS oldest_approval
             FROM compensation WHERE status = 'awaiting_approval'
         ) a, (
             SELECT count(*) FILTER (WHERE dead_at IS NULL) AS undelivered,
                    coalesce(greatest(extract(epoch FROM now() - min(created_at) FILTER (WHERE dead_at IS NULL)), 0), 0)
                        ::double precision AS oldest_undelivered,
                    count(*) FILTER (WHERE dead_at IS NOT NULL) AS dead
             FROM outbox WHERE delivered_at IS NULL
         ) o",
    )
    .fetch_one(connection)
    .await?;
    Ok(Queues {
        approvals: row.approvals,
        oldest_approval_seconds: row.oldest_approval,
        undelivered: row.undelivered,
        oldest_undelivered_seconds: row.oldest_undelivered,
        dead: row.dead,
    })
}
