//! The list of records, by keyset.

use std::time::Duration;

use domain::view::{RecordFilter, RecordSummary};
use sqlx::{FromRow, PgExecutor, PgPool, types::time::OffsetDateTime};

use super::rfc3339;
use crate::StoreError;

#[derive(FromRow)]
struct SummaryRow {
    id: i64,
    idem_key: String,
    action_type: String,
    subject_id: i64,
    subject_name: String,
    state: String,
    version: i64,
    attempt: i32,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    stuck_seconds: Option<i64>,
    arrivals: i64,
    error_code: Option<String>,
}

impl TryFrom<SummaryRow> for RecordSummary {
    type Error = StoreError;

    fn try_from(row: SummaryRow) -> Result<Self, StoreError> {
        Ok(Self {
            state: row
                .state
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("state of record {}", row.id)))?,
            id: row.id.to_string(),
            key: row.idem_key,
            action: row.action_type,
            subject: row.subject_id.to_string(),
            subject_name: row.subject_name,
            version: row.version,
            attempt: row.attempt,
            created_at: rfc3339(row.created_at),
            updated_at: rfc3339(row.updated_at),
            stuck_seconds: row.stuck_seconds,
            arrivals: row.arrivals,
            error_code: row.error_code,
        })
    }
}

/// At most `limit` records with an id below (newest first) or, when only stuck ones are asked for, above (oldest first) the
/// cursor.
pub(crate) async fn list_records(
    pool: &PgPool,
    filter: &RecordFilter,
    after: Option<i64>,
    limit: i64,
    stuck_after: Duration,
) -> Result<Vec<RecordSummary>, StoreError> {
    let statement = if filter.stuck == Some(true) {
        LIST_STUCK
    } else {
        LIST
    };
    let rows: Vec<SummaryRow> = sqlx::query_as(statement)
        .bind(filter.state.map(|s| s.to_string()))
        .bind(filter.stuck)
        .bind(filter.action.as_deref())
        .bind(filter.subject.as_deref())
        .bind(filter.q.as_deref().map(starts_with))
        .bind(filter.q.as_deref())
        .bind(after)
        .bind(limit)
        .bind(stuck_after.as_secs_f64())
        // Planned for the values at hand: a plan for all filters would fit none.
        .persistent(false)
        .fetch_all(pool)
        .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// One record as the list shows it.
pub(crate) async fn find_summary(
    executor: impl PgExecutor<'_>,
    record_id: i64,
    stuck_after: Duration,
) -> Result<Option<RecordSummary>, StoreError> {
    let row: Option<SummaryRow> = sqlx::query_as(FIND)
        .bind(None::<&str>)
        .bind(None::<bool>)
        .bind(None::<&str>)
        .bind(None::<&str>)
        .bind(None::<&str>)
        .bind(None::<&str>)
        .bind(record_id)
        .bind(1_i64)
        .bind(stuck_after.as_secs_f64())
        .fetch_optional(executor)
        .await?;
    row.map(TryInto::try_into).transpose()
}

/// A LIKE pattern for texts that begin with this one.
fn starts_with(text: &str) -> String {
    let mut pattern = text
        .replace('\\', "\\\\")
        .replace('%', "\\%")
        .replace('_', "\\_");
    pattern.push('%');
    pattern
}

macro_rules! list_sql {
    ($which:literal, $order:literal) => {
        concat!(
            "SELECT r.id, r.idem_key, r.action_type, r.subject_id, a.name AS subject_name, r.state, r.version, r.attempt,
                    r.created_at, r.updated_at,
                    CASE WHEN r.state IN ('PROCESSING', 'UNKNOWN') AND r.claimed_at <= now() - make_interval(secs => $9)
                         THEN floor(extract(epoch FROM now() - r.claimed_at))::bigint END AS stuck_seconds,
                    (SELECT count(*) FROM request_arrival v WHERE v.record_id = r.id) AS arrivals,
                    r.error_code
             FROM idempotency_record r
             JOIN account a ON a.id = r.subject_id
             WHERE ($1::text IS NULL OR r.state = $1)
               AND ($2::boolean IS NULL OR $2 = (r.state IN ('PROCESSING', 'UNKNOWN')
                                                 AND r.claimed_at <= now() - make_interval(secs => $9)))
               AND ($3::text IS NULL OR r.action_type = $3)
               AND ($4::text IS NULL OR a.name = $4 OR a.id::text = $4)
               AND ($5::text IS NULL OR r.idem_key LIKE $5
                    OR r.id IN (SELECT v.record_id FROM request_arrival v WHERE v.trace_id = $6))
               AND ",
            $which,
            " ORDER BY ",
            $order,
            " LIMIT $8"
        )
    };
}

const FIND: &str = list_sql!("r.id = $7", "r.id");
const LIST: &str = list_sql!("($7::bigint IS NULL OR r.id < $7)", "r.id DESC");
/// Restricted by the state as well, so that the partial index of unfinished records answers it.
const LIST_STUCK: &str = list_sql!(
    "r.state IN ('PROCESSING', 'UNKNOWN')
     AND ($7::bigint IS NULL OR (r.claimed_at, r.id) > (SELECT c.claimed_at, c.id FROM idempotency_record c WHERE c.id = $7))",
    "r.claimed_at, r.id"
);
