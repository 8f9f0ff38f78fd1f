//! What the scanner looks for: unfinished records that are due, and finished ones that have expired.

use std::time::Duration;

use domain::RecordState;
use sqlx::{FromRow, PgPool};

use crate::StoreError;

/// An unfinished record whose turn it is.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    pub(crate) id: i64,
    pub(crate) state: RecordState,
    pub(crate) epoch: i64,
    pub(crate) action_type: String,
    pub(crate) trace_id: String,
    /// How often the scanner has tried, this time included.
    pub(crate) attempts: i32,
}

#[derive(FromRow)]
struct DueRow {
    id: i64,
    state: String,
    epoch: i64,
    action_type: String,
    trace_id: String,
    attempts: i32,
}

/// Takes the records that are due, at most `limit`, and sets their next turn, so that no other scanner takes them meanwhile.
/// The pause doubles with each attempt up to a bound; after `max_attempts` a record waits for its caller or a person.
pub(crate) async fn take_due(
    pool: &PgPool,
    limit: i64,
    first_pause: Duration,
    longest_pause: Duration,
    max_attempts: i32,
) -> Result<Vec<Due>, StoreError> {
    let rows: Vec<DueRow> = sqlx::query_as(
        "UPDATE idempotency_record r
         SET scan_attempts = r.scan_attempts + 1, scanned_at = clock_timestamp(),
             scan_after = clock_timestamp() + least(make_interval(secs => $2) * 2 ^ least(r.scan_attempts, 20),
                                                    make_interval(secs => $3))
         FROM (
             SELECT id FROM idempotency_record
             WHERE state IN ('PROCESSING', 'UNKNOWN', 'FAILED_RETRYABLE') AND scan_after <= statement_timestamp()
               AND (state <> 'PROCESSING' OR lease_until <= clock_timestamp())
               AND scan_attempts < $4
             ORDER BY scan_after, id LIMIT $1
             FOR UPDATE SKIP LOCKED
         ) due
         WHERE r.id = due.id
         RETURNING r.id, r.state, r.epoch, r.action_type, r.trace_id, r.scan_attempts AS attempts",
    )
    .bind(limit)
    .bind(first_pause.as_secs_f64())
    .bind(longest_pause.as_secs_f64())
    .bind(max_attempts)
    .fetch_all(pool)
    .await?;
    let due = |row: DueRow| {
        Ok(Due {
            state: row
                .state
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("state of record {}", row.id)))?,
            id: row.id,
            epoch: row.epoch,
            action_type: row.action_type,
            trace_id: row.trace_id,
            attempts: row.attempts,
        })
    };
    rows.into_iter().map(due).collect()
}

/// Keeps why the scanner's last attempt at a record did not end it.
pub(crate) async fn update_scan_note(
    pool: &PgPool,
    record_id: i64,
    note: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE idempotency_record SET scan_note = $2 WHERE id = $1")
        .bind(record_id)
        .bind(note)
        .execute(pool)
        .await
        .map(drop)
}

/// Deletes records that have expired, at most `limit`; those with an undelivered message, an
/// open approval or a running bulk stay. Answers how many.
pub(crate) async fn delete_expired_records(pool: &PgPool, limit: i64) -> Result<u64, sqlx::Error> {
    let gone: i64 = sqlx::query_scalar(
        "WITH gone AS (
             DELETE FROM idempotency_record r
             USING (
                 SELECT e.id FROM idempotency_record e
                 -- Not clock_timestamp(): what changes within a statement cannot be looked up in an index, and all rows would be read.
                 WHERE e.expires_at <= statement_timestamp() AND e.state IN ('SUCCEEDED', 'FAILED_FINAL', 'FAILED_RETRYABLE')
                   AND NOT EXISTS (SELECT FROM outbox o WHERE o.record_id = e.id AND o.delivered_at IS NULL)
                   AND NOT EXISTS (SELECT FROM compensation c WHERE c.record_id = e.id AND c.status = 'awaiting_approval')
                   AND NOT EXISTS (SELECT FROM bulk_item b WHERE b.record_id = e.id AND b.outcome IS NULL)
                 ORDER BY e.expires_at LIMIT $1
                 -- A submit that holds one of them is not waited for.
                 FOR UPDATE SKIP LOCKED
             ) expired
             WHERE r.id = expired.id
             RETURNING r.id
         ), claims AS (
             DELETE FROM past_claim c USING gone g WHERE c.record_id = g.id
         )
         SELECT count(*) FROM gone",
    )
    .bind(limit)
    .fetch_one(pool)
    .await?;
    Ok(gone.unsigned_abs())
}

/// Deletes arrivals that are older than they are kept, at most `limit`; undecided ones stay. Counters stay for ever.
pub(crate) async fn delete_old_arrivals(
    pool: &PgPool,
    kept_days: i32,
    limit: i64,
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(
        "DELETE FROM request_arrival WHERE id IN (
             SELECT id FROM request_arrival
             -- Ids are made in the order of time: the oldest are at the beginning of the primary key.
             WHERE arrived_at < statement_timestamp() - make_interval(days => $1) AND outcome IS NOT NULL
             ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
         )",
    )
    .bind(kept_days)
    .bind(limit)
    // Planned for the time at hand: for any time, Postgres would walk all arrivals by the primary key and find none.
    .persistent(false)
    .execute(pool)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes tokens that have expired, at most `limit`.
pub(crate) async fn delete_expired_tokens(pool: &PgPool, limit: i64) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(
        "DELETE FROM access_token WHERE token_hash IN (
             SELECT token_hash FROM access_token WHERE expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED
         )",
    )
    .bind(limit)
    .execute(pool)
    .await?;
    Ok(done.rows_affected())
}
