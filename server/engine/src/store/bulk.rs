//! Bulks: what was frozen, who runs it, and what became of each record.

use std::time::Duration;

use domain::{
    compensation::{BulkOutcome, CompensationAction},
    view::{BulkResult, BulkStatus, BulkView},
};
use sqlx::{FromRow, PgConnection, PgExecutor, PgPool};
use uuid::Uuid;

use crate::StoreError;

/// A bulk that is to be written.
#[derive(Debug)]
pub(crate) struct NewBulk<'a> {
    pub(crate) action: CompensationAction,
    pub(crate) reason: &'a str,
    pub(crate) actor_id: i64,
    pub(crate) key: &'a str,
    pub(crate) fingerprint: &'a [u8],
    pub(crate) origin: &'a str,
    pub(crate) total: i32,
}

/// Inserts a bulk; `None` when its key has one already.
pub(crate) async fn insert_bulk(
    connection: &mut PgConnection,
    new: &NewBulk<'_>,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO bulk (action, reason, actor_id, idem_key, fingerprint, origin, total)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT ON CONSTRAINT uk_bulk_key DO NOTHING
         RETURNING id",
    )
    .bind(new.action.as_ref())
    .bind(new.reason)
    .bind(new.actor_id)
    .bind(new.key)
    .bind(new.fingerprint)
    .bind(new.origin)
    .bind(new.total)
    .fetch_optional(connection)
    .await
}

/// Freezes records with the versions that they were seen with; without one, with the version that they have now.
pub(crate) async fn insert_items(
    connection: &mut PgConnection,
    bulk_id: i64,
    items: &[(i64, Option<i64>)],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO bulk_item (bulk_id, record_id, version)
         -- A record that does not exist has no version; its outcome will say so.
         SELECT $1, i.record_id, coalesce(i.version, r.version, 0)
         FROM unnest($2::bigint[], $3::bigint[]) AS i (record_id, version)
         LEFT JOIN idempotency_record r ON r.id = i.record_id
         ORDER BY i.record_id",
    )
    .bind(bulk_id)
    .bind(items.iter().map(|i| i.0).collect::<Vec<_>>())
    .bind(items.iter().map(|i| i.1).collect::<Vec<_>>())
    .execute(connection)
    .await
    .map(drop)
}

/// The bulk of a key, and what the key was used for.
pub(crate) async fn find_bulk_by_key(
    pool: &PgPool,
    actor_id: i64,
    key: &str,
) -> Result<Option<(i64, Vec<u8>)>, sqlx::Error> {
    sqlx::query_as("SELECT id, fingerprint FROM bulk WHERE actor_id = $1 AND idem_key = $2")
        .bind(actor_id)
        .bind(key)
        .fetch_optional(pool)
        .await
}

/// A bulk that this process runs.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedBulk {
    pub(crate) id: i64,
    pub(crate) token: Uuid,
    pub(crate) action: CompensationAction,
    pub(crate) reason: String,
    pub(crate) actor_id: i64,
    pub(crate) origin: String,
}

#[derive(FromRow)]
struct ClaimedRow {
    id: i64,
    action: String,
    reason: String,
    actor_id: i64,
    origin: String,
}

/// Claims the oldest bulk that nobody runs, or whose runner was not heard of for too long; `None` when there is none.
pub(crate) async fn claim_bulk(
    pool: &PgPool,
    token: Uuid,
    lease: Duration,
) -> Result<Option<ClaimedBulk>, StoreError> {
    let row: Option<ClaimedRow> = sqlx::query_as(
        "UPDATE bulk SET claim_token = $1, claimed_until = clock_timestamp() + make_interval(secs => $2)
         WHERE id = (
             SELECT id FROM bulk
             WHERE finished_at IS NULL AND (claimed_until IS NULL OR claimed_until <= clock_timestamp())
             ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
         )
         RETURNING id, action, reason, actor_id, origin",
    )
    .bind(token)
    .bind(lease.as_secs_f64())
    .fetch_optional(pool)
    .await?;
    row.map(|row| {
        Ok(ClaimedBulk {
            action: row
                .action
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("action of bulk {}", row.id)))?,
            id: row.id,
            token,
            reason: row.reason,
            actor_id: row.actor_id,
            origin: row.origin,
        })
    })
    .transpose()
}

/// Keeps the claim for the transaction, and longer. Answers whether this process still has it: a runner that was paused too
/// long does nothing more.
pub(crate) async fn renew_bulk(
    connection: &mut PgConnection,
    bulk: &ClaimedBulk,
    lease: Duration,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE bulk SET claimed_until = clock_timestamp() + make_interval(secs => $3)
         WHERE id = $1 AND claim_token = $2 AND finished_at IS NULL",
    )
    .bind(bulk.id)
    .bind(bulk.token)
    .bind(lease.as_secs_f64())
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Lets go of a claim, so that another runner can go on at once.
pub(crate) async fn release_bulk(pool: &PgPool, bulk: &ClaimedBulk) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE bulk SET claim_token = NULL, claimed_until = NULL
         WHERE id = $1 AND claim_token = $2 AND finished_at IS NULL",
    )
    .bind(bulk.id)
    .bind(bulk.token)
    .execute(pool)
    .await
    .map(drop)
}

/// The next record without an outcome, with its frozen version.
pub(crate) async fn find_open_item(
    connection: &mut PgConnection,
    bulk_id: i64,
) -> Result<Option<(i64, i64)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT record_id, version FROM bulk_item WHERE bulk_id = $1 AND outcome IS NULL ORDER BY record_id LIMIT 1",
    )
    .bind(bulk_id)
    .fetch_optional(connection)
    .await
}

/// Gives a record of a bulk its outcome, once. Answers whether it had none.
pub(crate) async fn mark_item_if_open(
    connection: &mut PgConnection,
    bulk_id: i64,
    record_id: i64,
    outcome: BulkOutcome,
    detail: Option<&str>,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE bulk_item SET outcome = $3, detail = $4 WHERE bulk_id = $1 AND record_id = $2 AND outcome IS NULL",
    )
    .bind(bulk_id)
    .bind(record_id)
    .bind(outcome.as_ref())
    .bind(detail)
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Ends a bulk that this process runs and that has no open record.
pub(crate) async fn mark_bulk_finished(
    connection: &mut PgConnection,
    bulk: &ClaimedBulk,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "UPDATE bulk SET finished_at = clock_timestamp(), claim_token = NULL, claimed_until = NULL
         WHERE id = $1 AND claim_token = $2 AND finished_at IS NULL
           AND NOT EXISTS (SELECT FROM bulk_item i WHERE i.bulk_id = bulk.id AND i.outcome IS NULL)",
    )
    .bind(bulk.id)
    .bind(bulk.token)
    .execute(connection)
    .await
    .map(drop)
}

#[derive(FromRow)]
struct BulkRow {
    id: i64,
    action: String,
    reason: String,
    is_finished: bool,
    total: i64,
    done: i64,
}

/// How a bulk stands.
pub(crate) async fn find_bulk(
    executor: impl PgExecutor<'_>,
    id: i64,
) -> Result<Option<BulkView>, StoreError> {
    let row: Option<BulkRow> = sqlx::query_as(
        "SELECT b.id, b.action, b.reason, b.finished_at IS NOT NULL AS is_finished, b.total::bigint,
                (SELECT count(*) FROM bulk_item i WHERE i.bulk_id = b.id AND i.outcome IS NOT NULL) AS done
         FROM bulk b WHERE b.id = $1",
    )
    .bind(id)
    .fetch_optional(executor)
    .await?;
    row.map(|row| {
        Ok(BulkView {
            action: row
                .action
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("action of bulk {}", row.id)))?,
            id: row.id.to_string(),
            reason: row.reason,
            status: if row.is_finished {
                BulkStatus::Done
            } else {
                BulkStatus::Running
            },
            total: row.total,
            done: row.done,
            results: None,
        })
    })
    .transpose()
}

/// What became of each record of a bulk so far.
pub(crate) async fn list_results(
    executor: impl PgExecutor<'_>,
    bulk_id: i64,
) -> Result<Vec<BulkResult>, StoreError> {
    let rows: Vec<(i64, String, Option<String>)> = sqlx::query_as(
        "SELECT record_id, outcome, detail FROM bulk_item WHERE bulk_id = $1 AND outcome IS NOT NULL ORDER BY record_id",
    )
    .bind(bulk_id)
    .fetch_all(executor)
    .await?;
    let result = |(record_id, outcome, detail): (i64, String, Option<String>)| {
        Ok(BulkResult {
            outcome: outcome
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("outcome in bulk {bulk_id}")))?,
            record_id: record_id.to_string(),
            detail,
        })
    };
    rows.into_iter().map(result).collect()
}
