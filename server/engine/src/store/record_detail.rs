//! One record: its row, its claims, its messages.

use domain::view::{AnswerView, ClaimView};
use sqlx::{FromRow, PgConnection, types::time::OffsetDateTime};

use super::rfc3339;

/// What the list does not show of a record.
#[derive(FromRow)]
pub(crate) struct DetailRow {
    pub(crate) epoch: i64,
    pub(crate) claimed_at: OffsetDateTime,
    pub(crate) lease_until: Option<OffsetDateTime>,
    pub(crate) lease_is_live: bool,
    pub(crate) expires_at: Option<OffsetDateTime>,
    pub(crate) trace_id: String,
    pub(crate) fingerprint: String,
    pub(crate) instance: String,
    pub(crate) scan_attempts: i32,
    pub(crate) scanned_at: Option<OffsetDateTime>,
    pub(crate) scan_note: Option<String>,
    response_status: Option<i16>,
    response_body: Option<String>,
    response_location: Option<String>,
    pub(crate) now: OffsetDateTime,
}

impl DetailRow {
    /// The stored answer.
    pub(crate) fn answer(&mut self) -> Option<AnswerView> {
        Some(AnswerView {
            status: u16::try_from(self.response_status?).ok()?,
            body: self.response_body.take()?,
            location: self.response_location.take(),
        })
    }
}

/// The rest of a record's row; `None` when there is none.
pub(crate) async fn find_detail(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<Option<DetailRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT r.epoch, r.claimed_at, r.lease_until, coalesce(r.lease_until > clock_timestamp(), false) AS lease_is_live,
                r.expires_at, r.trace_id, encode(r.fingerprint, 'hex') AS fingerprint,
                coalesce(i.name, '') || ' #' || r.owner_instance AS instance, r.scan_attempts, r.scanned_at, r.scan_note,
                r.response_status, r.response_body, r.response_location, clock_timestamp() AS now
         FROM idempotency_record r LEFT JOIN instance i ON i.id = r.owner_instance
         WHERE r.id = $1",
    )
    .bind(record_id)
    .fetch_optional(connection)
    .await
}

#[derive(FromRow)]
struct PastClaimRow {
    attempt: i32,
    epoch: i64,
    instance: String,
    claimed_at: OffsetDateTime,
    ended_at: OffsetDateTime,
}

/// The claims that somebody took over, oldest first.
pub(crate) async fn list_past_claims(
    connection: &mut PgConnection,
    record_id: i64,
) -> Result<Vec<ClaimView>, sqlx::Error> {
    let rows: Vec<PastClaimRow> = sqlx::query_as(
        "SELECT c.attempt, c.epoch, coalesce(i.name, '') || ' #' || c.instance_id AS instance, c.claimed_at, c.ended_at
         FROM past_claim c LEFT JOIN instance i ON i.id = c.instance_id
         WHERE c.record_id = $1 ORDER BY c.attempt",
    )
    .bind(record_id)
    .fetch_all(connection)
    .await?;
    let claim = |row: PastClaimRow| ClaimView {
        attempt: row.attempt,
        epoch: row.epoch,
        instance: row.instance,
        claimed_at: rfc3339(row.claimed_at),
        ended_at: Some(rfc3339(row.ended_at)),
    };
    Ok(rows.into_iter().map(claim).collect())
}
