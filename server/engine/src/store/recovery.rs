//! Records whose execution did not end: fenced, verified, and taken over to run again.

use std::time::Duration;

use domain::RecordState;
use sqlx::{FromRow, PgConnection, PgExecutor, types::time::OffsetDateTime};
use uuid::Uuid;

use super::record::StoredAnswer;
use crate::StoreError;

/// A record, locked until the transaction ends: neither an owner nor the scanner nor a person moves it meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Locked {
    pub(crate) id: i64,
    pub(crate) state: RecordState,
    pub(crate) epoch: i64,
    pub(crate) version: i64,
    pub(crate) action_type: String,
    pub(crate) trace_id: String,
    pub(crate) lease_is_live: bool,
    /// Postgres's clock.
    pub(crate) now: OffsetDateTime,
}

#[derive(FromRow)]
struct LockedRow {
    id: i64,
    state: String,
    epoch: i64,
    version: i64,
    action_type: String,
    trace_id: String,
    lease_is_live: bool,
    now: OffsetDateTime,
}

impl TryFrom<LockedRow> for Locked {
    type Error = StoreError;

    fn try_from(row: LockedRow) -> Result<Self, StoreError> {
        Ok(Self {
            state: row
                .state
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("state of record {}", row.id)))?,
            id: row.id,
            epoch: row.epoch,
            version: row.version,
            action_type: row.action_type,
            trace_id: row.trace_id,
            lease_is_live: row.lease_is_live,
            now: row.now,
        })
    }
}

macro_rules! lock_sql {
    ($which:literal) => {
        concat!(
            "SELECT id, state, epoch, version, action_type, trace_id,
                    coalesce(lease_until > clock_timestamp(), false) AS lease_is_live, clock_timestamp() AS now
             FROM idempotency_record WHERE id = $1",
            $which,
            // Waits for an owner that is just committing, and is waited for by one that wakes up late.
            " FOR UPDATE"
        )
    };
}

/// Locks a record if its lease ran out, by Postgres's clock, or if it waits to be decided or run again; `None` when it has
/// moved on.
pub(crate) async fn lock_suspect(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<Option<Locked>, StoreError> {
    let row: Option<LockedRow> = sqlx::query_as(lock_sql!(
        " AND (state IN ('UNKNOWN', 'FAILED_RETRYABLE') OR state = 'PROCESSING' AND lease_until <= clock_timestamp())"
    ))
    .bind(record_id)
    .fetch_optional(connection)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// Locks a record, whatever its state; `None` when there is none.
pub(crate) async fn lock_record(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<Option<Locked>, StoreError> {
    let row: Option<LockedRow> = sqlx::query_as(lock_sql!(""))
        .bind(record_id)
        .fetch_optional(connection)
        .await?;
    row.map(TryInto::try_into).transpose()
}

/// How a locked record goes on.
#[derive(Debug, Clone)]
pub(crate) struct Moved {
    pub(crate) state: RecordState,
    /// For a terminal state.
    pub(crate) response: Option<StoredAnswer>,
    pub(crate) error_code: Option<&'static str>,
    /// Into which bucket its undecided arrivals fall, when it is terminal.
    pub(crate) bucket: domain::Bucket,
    pub(crate) defence: domain::Defence,
    /// Whether nobody may finish under the old epoch any more. A claim that is only verified again keeps its epoch and version:
    /// nobody's page becomes stale.
    pub(crate) fence: bool,
    /// Whether it is counted as a compensation.
    pub(crate) compensated: bool,
}

/// Moves a locked record, as its only update; decides and counts its undecided arrivals when it is terminal, and the
/// compensation if it is one. Answers whether the record was still as it was locked.
pub(crate) async fn update_locked(
    connection: &mut PgConnection,
    instance_id: i32,
    retention: Duration,
    locked: &Locked,
    moved: &Moved,
) -> Result<bool, sqlx::Error> {
    let response = moved.response.as_ref();
    let updated: Vec<i64> = sqlx::query_scalar(
        "WITH moved AS (
             UPDATE idempotency_record r
             SET state = $4,
                 epoch = epoch + CASE WHEN $14 THEN 1 ELSE 0 END,
                 version = version + CASE WHEN $14 OR state <> $4 THEN 1 ELSE 0 END,
                 error_code = $5, lease_until = NULL, response_status = $6, response_body = $7, response_location = $8,
                 updated_at = CASE WHEN $14 OR state <> $4 THEN clock_timestamp() ELSE updated_at END,
                 expires_at = CASE WHEN $4 <> 'UNKNOWN' THEN clock_timestamp() + make_interval(secs => $9) END
             WHERE id = $1 AND epoch = $2 AND state = $3
             RETURNING id, action_type, state
         ), kept AS (
             -- The execution that failed was counted: it stays to be found when the record does not show it any more. Read as it
             -- was: a statement sees no row that it changes itself.
             INSERT INTO past_claim (record_id, attempt, instance_id, claimed_at, ended_at, epoch)
             SELECT r.id, r.attempt, r.owner_instance, r.claimed_at, r.updated_at, r.epoch
             FROM idempotency_record r JOIN moved m ON m.id = r.id
             WHERE $3 = 'FAILED_RETRYABLE'
             ON CONFLICT ON CONSTRAINT pk_past_claim DO NOTHING
         ), decided AS (
             -- As in a finish: the oldest has the bucket, the others met a finished record.
             UPDATE request_arrival a
             SET outcome = CASE WHEN a.id = o.id THEN $10 ELSE 'reused' END,
                 defence = CASE WHEN a.id = o.id THEN $11 ELSE 'record' END,
                 duration_ms = extract(epoch FROM clock_timestamp() - a.arrived_at) * 1000
             FROM moved m
             CROSS JOIN LATERAL (
                 SELECT u.id FROM request_arrival u WHERE u.record_id = m.id AND u.outcome IS NULL
                 ORDER BY u.arrived_at, u.id LIMIT 1
             ) o
             WHERE a.record_id = m.id AND a.outcome IS NULL AND m.state IN ('SUCCEEDED', 'FAILED_FINAL')
             RETURNING a.action_type, a.outcome, a.arrived_at
         ), counted AS (
             INSERT INTO outcome_counter AS c (minute, action_type, name, instance_id, n)
             SELECT date_trunc('minute', at), action_type, name, $12, count(*)
             FROM (
                 SELECT arrived_at AS at, action_type, outcome AS name FROM decided
                 UNION ALL
                 SELECT clock_timestamp(), action_type, lower(state) FROM moved
                 WHERE state IN ('FAILED_FINAL', 'FAILED_RETRYABLE') AND state <> $3
                 UNION ALL
                 SELECT clock_timestamp(), action_type, 'compensated' FROM moved WHERE $13
             ) events
             GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
             ON CONFLICT ON CONSTRAINT pk_outcome_counter DO UPDATE SET n = c.n + EXCLUDED.n
         )
         SELECT id FROM moved",
    )
    .bind(locked.id)
    .bind(locked.epoch)
    .bind(locked.state.as_ref())
    .bind(moved.state.as_ref())
    .bind(moved.error_code)
    .bind(response.and_then(|r| i16::try_from(r.status).ok()))
    .bind(response.map(|r| r.body.as_str()))
    .bind(response.and_then(|r| r.location.as_deref()))
    .bind(retention.as_secs_f64())
    .bind(moved.bucket.as_ref())
    .bind(moved.defence.as_ref())
    .bind(instance_id)
    .bind(moved.compensated)
    .bind(moved.fence)
    .fetch_all(connection)
    .await?;
    Ok(!updated.is_empty())
}

/// An arrival that takes a record over.
#[derive(Debug, Clone)]
pub(crate) struct TakingArrival<'a> {
    pub(crate) id: Uuid,
    pub(crate) client_id: &'a str,
    pub(crate) trace_id: &'a str,
    pub(crate) age: Duration,
}

/// Takes a FAILED_RETRYABLE record over under a new epoch; `None` when it has moved on. The arrival that does it is written
/// undecided, as with a first claim.
pub(crate) async fn reclaim(
    executor: impl PgExecutor<'_>,
    instance_id: i32,
    record_id: i64,
    epoch: i64,
    token: Uuid,
    lease: Duration,
    arrival: Option<TakingArrival<'_>>,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(
        "WITH ended AS MATERIALIZED (
             SELECT id, attempt, owner_instance, claimed_at, updated_at, epoch FROM idempotency_record
             WHERE id = $1 AND epoch = $2 AND state = 'FAILED_RETRYABLE' FOR UPDATE
         ), taken AS (
             UPDATE idempotency_record r
             SET state = 'PROCESSING', attempt = r.attempt + 1, epoch = r.epoch + 1, version = r.version + 1, error_code = NULL,
                 claim_token = $3, owner_instance = $4, claimed_at = clock_timestamp(), updated_at = clock_timestamp(),
                 lease_until = clock_timestamp() + make_interval(secs => $5), expires_at = NULL
             -- Fed from the locked row: it is read before it is changed.
             FROM ended e
             WHERE r.id = e.id AND r.epoch = $2 AND r.state = 'FAILED_RETRYABLE'
             RETURNING r.id, r.epoch, r.action_type
         ), kept AS (
             -- The record has room for one claim: the one that ended is kept for whoever asks what happened.
             INSERT INTO past_claim (record_id, attempt, instance_id, claimed_at, ended_at, epoch)
             SELECT e.id, e.attempt, e.owner_instance, e.claimed_at, e.updated_at, e.epoch
             FROM ended e JOIN taken t ON t.id = e.id
             ON CONFLICT ON CONSTRAINT pk_past_claim DO NOTHING
         ), arrived AS (
             INSERT INTO request_arrival (id, record_id, action_type, arrived_at, client_id, trace_id, same_content)
             SELECT $6, id, action_type, statement_timestamp() - make_interval(secs => $9), $7, $8, true
             FROM taken WHERE $6::uuid IS NOT NULL
             ON CONFLICT ON CONSTRAINT pk_request_arrival DO NOTHING
         )
         SELECT epoch FROM taken",
    )
    .bind(record_id)
    .bind(epoch)
    .bind(token)
    .bind(instance_id)
    .bind(lease.as_secs_f64())
    .bind(arrival.as_ref().map(|a| a.id))
    .bind(arrival.as_ref().map(|a| a.client_id))
    .bind(arrival.as_ref().map(|a| a.trace_id))
    .bind(arrival.as_ref().map(|a| a.age.as_secs_f64()))
    .fetch_optional(executor)
    .await
}
