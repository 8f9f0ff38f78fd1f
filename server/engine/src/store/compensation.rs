//! Compensations by people: the record behind its lock, the compensation, and the log of it.

use std::time::Duration;

use domain::{
    compensation::{CompensationAction, CompensationStatus},
    view::{CompensationEvent, CompensationView, EvidenceView},
};
use sqlx::{
    FromRow, PgConnection, PgExecutor, PgPool,
    types::{Json, time::OffsetDateTime},
};

use super::rfc3339;
use crate::StoreError;

/// A compensation that is to be written.
#[derive(Debug)]
pub(crate) struct NewCompensation<'a> {
    pub(crate) record_id: i64,
    pub(crate) action: CompensationAction,
    pub(crate) status: CompensationStatus,
    pub(crate) reason: &'a str,
    pub(crate) expected_version: i64,
    pub(crate) evidence: Option<&'a EvidenceView>,
    pub(crate) refusal: Option<&'a str>,
    pub(crate) actor_id: Option<i64>,
    pub(crate) key: Option<&'a str>,
    pub(crate) fingerprint: &'a [u8],
    pub(crate) origin: &'a str,
    pub(crate) bulk_id: Option<i64>,
    /// For how long a second person may decide.
    pub(crate) valid: Option<Duration>,
}

/// Inserts a compensation; `None` when its key has one already.
pub(crate) async fn insert_compensation(
    connection: &mut PgConnection,
    new: &NewCompensation<'_>,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO compensation (record_id, action, status, reason, expected_version, evidence, refusal, actor_id, idem_key,
                                   fingerprint, origin, bulk_id, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, clock_timestamp() + make_interval(secs => $13))
         ON CONFLICT (coalesce(actor_id, 0), idem_key) WHERE idem_key IS NOT NULL DO NOTHING
         RETURNING id",
    )
    .bind(new.record_id)
    .bind(new.action.as_ref())
    .bind(new.status.as_ref())
    .bind(new.reason)
    .bind(new.expected_version)
    .bind(new.evidence.map(Json))
    .bind(new.refusal)
    .bind(new.actor_id)
    .bind(new.key)
    .bind(new.fingerprint)
    .bind(new.origin)
    .bind(new.bulk_id)
    .bind(new.valid.map(|valid| valid.as_secs_f64()))
    .fetch_optional(connection)
    .await
}

/// A stored compensation, and what its key was used for.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) id: i64,
    pub(crate) record_id: i64,
    pub(crate) actor_id: Option<i64>,
    pub(crate) decided_by: Option<i64>,
    pub(crate) fingerprint: Vec<u8>,
    pub(crate) is_overdue: bool,
    pub(crate) view: CompensationView,
}

#[derive(FromRow)]
struct StoredRow {
    id: i64,
    record_id: i64,
    action: String,
    status: String,
    reason: String,
    expected_version: i64,
    evidence: Option<Json<EvidenceView>>,
    refusal: Option<String>,
    actor_id: Option<i64>,
    actor_name: Option<String>,
    decided_by: Option<i64>,
    fingerprint: Vec<u8>,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
    is_overdue: bool,
}

impl TryFrom<StoredRow> for Stored {
    type Error = StoreError;

    fn try_from(row: StoredRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            record_id: row.record_id,
            actor_id: row.actor_id,
            decided_by: row.decided_by,
            fingerprint: row.fingerprint,
            is_overdue: row.is_overdue,
            view: CompensationView {
                id: row.id.to_string(),
                record_id: row.record_id.to_string(),
                action: parse(&row.action, row.id)?,
                status: parse(&row.status, row.id)?,
                reason: row.reason,
                evidence: row.evidence.map(|Json(evidence)| evidence),
                refusal: row.refusal,
                expected_version: row.expected_version,
                actor: row.actor_id.map(|id| id.to_string()),
                actor_name: row.actor_name,
                created_at: rfc3339(row.created_at),
                expires_at: row.expires_at.map(rfc3339),
            },
        })
    }
}

macro_rules! stored_sql {
    ($rest:literal) => {
        concat!(
            "SELECT c.id, c.record_id, c.action, c.status, c.reason, c.expected_version, c.evidence, c.refusal, c.actor_id,
                    a.name AS actor_name, c.decided_by, c.fingerprint, c.created_at, c.expires_at,
                    coalesce(c.expires_at <= clock_timestamp(), false) AS is_overdue
             FROM compensation c LEFT JOIN account a ON a.id = c.actor_id ",
            $rest
        )
    };
}

/// The compensation of a key, in the scope of whoever asks.
pub(crate) async fn find_by_key(
    executor: impl PgExecutor<'_>,
    actor_id: Option<i64>,
    key: &str,
) -> Result<Option<Stored>, StoreError> {
    let row: Option<StoredRow> = sqlx::query_as(stored_sql!(
        "WHERE coalesce(c.actor_id, 0) = coalesce($1, 0) AND c.idem_key = $2 AND c.idem_key IS NOT NULL"
    ))
    .bind(actor_id)
    .bind(key)
    .fetch_optional(executor)
    .await?;
    row.map(TryInto::try_into).transpose()
}

/// A compensation by its id.
pub(crate) async fn find_compensation(
    executor: impl PgExecutor<'_>,
    id: i64,
) -> Result<Option<Stored>, StoreError> {
    let row: Option<StoredRow> = sqlx::query_as(stored_sql!("WHERE c.id = $1"))
        .bind(id)
        .fetch_optional(executor)
        .await?;
    row.map(TryInto::try_into).transpose()
}

/// A compensation by its id, locked: two people who decide at the same moment decide one after the other.
pub(crate) async fn lock_compensation(
    connection: &mut PgConnection,
    id: i64,
) -> Result<Option<Stored>, StoreError> {
    let row: Option<StoredRow> = sqlx::query_as(stored_sql!("WHERE c.id = $1 FOR UPDATE OF c"))
        .bind(id)
        .fetch_optional(connection)
        .await?;
    row.map(TryInto::try_into).transpose()
}

/// Compensations with a status, or all, and an id below the cursor (newest first), or above it for those that wait for a
/// second person (oldest first).
pub(crate) async fn list_compensations(
    pool: &PgPool,
    status: Option<CompensationStatus>,
    after: Option<i64>,
    limit: i64,
) -> Result<Vec<CompensationView>, StoreError> {
    let statement = if status == Some(CompensationStatus::AwaitingApproval) {
        stored_sql!(
            "WHERE c.status = $1 AND ($2::bigint IS NULL OR c.id > $2) ORDER BY c.id LIMIT $3"
        )
    } else {
        stored_sql!(
            "WHERE ($1::text IS NULL OR c.status = $1) AND ($2::bigint IS NULL OR c.id < $2) ORDER BY c.id DESC LIMIT $3"
        )
    };
    let rows: Vec<StoredRow> = sqlx::query_as(statement)
        .bind(status.map(|s| s.to_string()))
        .bind(after)
        .bind(limit)
        .persistent(false)
        .fetch_all(pool)
        .await?;
    let views = rows
        .into_iter()
        .map(|row| Stored::try_from(row).map(|stored| stored.view));
    views.collect()
}

/// Ends a compensation that waits for a second person. Answers whether it still waited.
pub(crate) async fn update_compensation_if_awaiting(
    connection: &mut PgConnection,
    id: i64,
    status: CompensationStatus,
    evidence: Option<&EvidenceView>,
    refusal: Option<&str>,
    decided_by: i64,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(
        "UPDATE compensation SET status = $2, evidence = coalesce($3, evidence), refusal = $4, decided_by = $5
         WHERE id = $1 AND status = 'awaiting_approval'",
    )
    .bind(id)
    .bind(status.as_ref())
    .bind(evidence.map(Json))
    .bind(refusal)
    .bind(decided_by)
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Ends the compensations that nobody decided in time, at most `limit`, each with its line in log and audit. Answers how many.
pub(crate) async fn expire_compensations(pool: &PgPool, limit: i64) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(
        "WITH overdue AS (
             SELECT id FROM compensation
             WHERE status = 'awaiting_approval' AND expires_at <= clock_timestamp()
             -- One that is being decided is left to whoever decides.
             ORDER BY expires_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
         ), expired AS (
             UPDATE compensation c SET status = 'expired' FROM overdue o
             WHERE c.id = o.id AND c.status = 'awaiting_approval'
             RETURNING c.id, c.record_id, c.action
         ), logged AS (
             INSERT INTO compensation_log (compensation_id, record_id, event, action, reason)
             SELECT id, record_id, 'expired', action, 'nobody decided in time' FROM expired ORDER BY id
         )
         INSERT INTO audit_entry (action, object, detail)
         SELECT 'compensation.expire', 'record/' || record_id,
                jsonb_build_object('compensation_id', id::text, 'outcome', 'expired', 'requested', action)
         FROM expired ORDER BY id",
    )
    .bind(limit)
    .execute(pool)
    .await?;
    Ok(done.rows_affected())
}

/// A line of the log.
#[derive(Debug)]
pub(crate) struct NewEvent<'a> {
    /// `None` for the scanner's.
    pub(crate) compensation_id: Option<i64>,
    pub(crate) record_id: i64,
    pub(crate) event: &'static str,
    pub(crate) action: CompensationAction,
    pub(crate) actor_id: Option<i64>,
    pub(crate) reason: &'a str,
    pub(crate) evidence: Option<&'a EvidenceView>,
}

/// Adds a line to the log.
pub(crate) async fn insert_event(
    connection: &mut PgConnection,
    event: &NewEvent<'_>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO compensation_log (compensation_id, record_id, event, action, actor_id, reason, evidence)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(event.compensation_id)
    .bind(event.record_id)
    .bind(event.event)
    .bind(event.action.as_ref())
    .bind(event.actor_id)
    .bind(event.reason)
    .bind(event.evidence.map(Json))
    .execute(connection)
    .await
    .map(drop)
}

#[derive(FromRow)]
struct EventRow {
    id: i64,
    compensation_id: Option<i64>,
    event: String,
    action: String,
    actor_name: Option<String>,
    reason: String,
    evidence: Option<Json<EvidenceView>>,
    at: OffsetDateTime,
}

/// The log of one record, oldest first, at most the newest `limit`.
pub(crate) async fn list_events(
    executor: impl PgExecutor<'_>,
    record_id: i64,
    limit: i64,
) -> Result<Vec<CompensationEvent>, StoreError> {
    let rows: Vec<EventRow> = sqlx::query_as(
        "SELECT * FROM (
             SELECT l.id, l.compensation_id, l.event, l.action, a.name AS actor_name, l.reason, l.evidence, l.at
             FROM compensation_log l LEFT JOIN account a ON a.id = l.actor_id
             WHERE l.record_id = $1 ORDER BY l.id DESC LIMIT $2
         ) newest ORDER BY id",
    )
    .bind(record_id)
    .bind(limit)
    .fetch_all(executor)
    .await?;
    let event = |row: EventRow| {
        Ok(CompensationEvent {
            id: row.id.to_string(),
            compensation_id: row.compensation_id.map(|id| id.to_string()),
            event: row.event,
            action: parse(&row.action, row.id)?,
            actor_name: row.actor_name,
            reason: row.reason,
            evidence: row.evidence.map(|Json(evidence)| evidence),
            at: rfc3339(row.at),
        })
    };
    rows.into_iter().map(event).collect()
}

fn parse<T: std::str::FromStr>(text: &str, id: i64) -> Result<T, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Corrupt(format!("{text:?} of row {id}")))
}
