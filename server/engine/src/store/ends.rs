//! The rows behind two of the panel's counters: executions that failed for now, and compensations that were done.

use domain::view::{AppliedView, FailureView, Window};
use sqlx::{FromRow, PgPool, QueryBuilder, types::time::OffsetDateTime};

use super::{record_list::push_from, rfc3339};
use crate::StoreError;

#[derive(FromRow)]
struct FailureRow {
    record_id: i64,
    attempt: i32,
    at: OffsetDateTime,
    micros: i64,
    idem_key: String,
    subject_name: String,
    action_type: String,
    state: String,
}

/// Executions that ended FAILED_RETRYABLE within a window, newest first, from a place on: each that was tried again since, and those
/// that still stand so. With each comes its place.
pub(crate) async fn list_failures(
    pool: &PgPool,
    window: Window,
    after: Option<(i64, i64)>,
    limit: i64,
) -> Result<Vec<(FailureView, (i64, i64))>, StoreError> {
    let mut sql = QueryBuilder::new(
        "SELECT e.record_id, e.attempt, e.at, (extract(epoch FROM e.at) * 1000000)::bigint AS micros, r.idem_key,
                a.name AS subject_name, r.action_type, r.state
         FROM (
             SELECT record_id, attempt, ended_at AS at FROM past_claim
             UNION ALL
             SELECT r.id, r.attempt, r.updated_at FROM idempotency_record r
             WHERE r.state = 'FAILED_RETRYABLE'
               AND NOT EXISTS (SELECT FROM past_claim p WHERE p.record_id = r.id AND p.attempt = r.attempt)
         ) e
         JOIN idempotency_record r ON r.id = e.record_id JOIN account a ON a.id = r.subject_id
         WHERE e.at >= ",
    );
    push_from(&mut sql, window);
    if let Some((micros, id)) = after {
        // Exact: a double has room for the microseconds of some centuries.
        sql.push(" AND (e.at, e.record_id) < (TIMESTAMPTZ 'epoch' + make_interval(secs => ")
            .push_bind(micros)
            .push("::bigint / 1000000.0), ")
            .push_bind(id)
            .push(")");
    }
    sql.push(" ORDER BY e.at DESC, e.record_id DESC LIMIT ")
        .push_bind(limit);
    let rows: Vec<FailureRow> = sql
        .build_query_as()
        .persistent(false)
        .fetch_all(pool)
        .await?;
    let view = |row: FailureRow| {
        let state = row.state.parse();
        let state =
            state.map_err(|_| StoreError::Corrupt(format!("state of record {}", row.record_id)))?;
        let view = FailureView {
            record_id: row.record_id.to_string(),
            attempt: row.attempt,
            at: rfc3339(row.at),
            key: row.idem_key,
            subject_name: row.subject_name,
            action: row.action_type,
            state,
        };
        Ok((view, (row.micros, row.record_id)))
    };
    rows.into_iter().map(view).collect()
}

#[derive(FromRow)]
struct AppliedRow {
    id: i64,
    record_id: i64,
    action: String,
    actor_name: Option<String>,
    reason: String,
    at: OffsetDateTime,
}

/// What was done to records within a window, by people and by the scanner, newest first, below the cursor.
pub(crate) async fn list_applied(
    pool: &PgPool,
    window: Window,
    after: Option<i64>,
    limit: i64,
) -> Result<Vec<AppliedView>, StoreError> {
    let mut sql = QueryBuilder::new(
        "SELECT l.id, l.record_id, l.action, a.name AS actor_name, l.reason, l.at
         FROM compensation_log l LEFT JOIN account a ON a.id = l.actor_id
         WHERE l.event = 'applied' AND l.at >= ",
    );
    push_from(&mut sql, window);
    if let Some(after) = after {
        sql.push(" AND l.id < ").push_bind(after);
    }
    sql.push(" ORDER BY l.id DESC LIMIT ").push_bind(limit);
    let rows: Vec<AppliedRow> = sql
        .build_query_as()
        .persistent(false)
        .fetch_all(pool)
        .await?;
    let view = |row: AppliedRow| {
        let action = row.action.parse();
        Ok(AppliedView {
            action: action
                .map_err(|_| StoreError::Corrupt(format!("action of log line {}", row.id)))?,
            id: row.id.to_string(),
            record_id: row.record_id.to_string(),
            actor_name: row.actor_name,
            reason: row.reason,
            at: rfc3339(row.at),
        })
    };
    rows.into_iter().map(view).collect()
}
