//! Arrivals one by one: what the counters count, found through the counters.
//!
//! An index on the outcome would make every decision of an arrival rewrite all its index entries. The counters already tell in
//! which steps of time there is anything to find, so only those are searched.

use domain::{
    Bucket,
    view::{ArrivalFilter, ArrivalView, Window},
};
use sqlx::{
    FromRow, PgConnection, PgExecutor, Postgres, QueryBuilder, types::time::OffsetDateTime,
};
use strum::VariantArray;
use uuid::Uuid;

use super::{record_list::push_from, rfc3339};
use crate::StoreError;

/// As far back as arrivals are shown.
pub(crate) const LONGEST: Window = Window::OneWeek;

#[derive(FromRow)]
struct ArrivalRow {
    id: Uuid,
    record_id: i64,
    action_type: String,
    idem_key: Option<String>,
    subject_name: Option<String>,
    arrived_at: OffsetDateTime,
    micros: i64,
    outcome: Option<String>,
    defence: Option<String>,
    client_id: String,
    trace_id: String,
    same_content: bool,
    duration_ms: Option<f64>,
}

/// An arrival, and where it stands in the list.
pub(crate) struct Line {
    pub(crate) arrival: ArrivalView,
    pub(crate) cursor: Cursor,
}

/// A place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    micros: i64,
    id: Uuid,
}

impl Cursor {
    /// Its text.
    pub(crate) fn text(self) -> String {
        format!("{}-{}", self.micros, self.id)
    }

    /// Reads a text; `None` when it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (micros, id) = text.split_once('-')?;
        Some(Self {
            micros: micros.parse().ok()?,
            id: id.parse().ok()?,
        })
    }
}

impl TryFrom<ArrivalRow> for Line {
    type Error = StoreError;

    fn try_from(row: ArrivalRow) -> Result<Self, StoreError> {
        let corrupt = |what: &str| StoreError::Corrupt(format!("{what} of arrival {}", row.id));
        let outcome = row.outcome.map(|text| text.parse()).transpose();
        let defence = row.defence.map(|text| text.parse()).transpose();
        let arrival = ArrivalView {
            id: row.id.to_string(),
            record_id: row.record_id.to_string(),
            action: row.action_type,
            key: row.idem_key,
            subject_name: row.subject_name,
            arrived_at: rfc3339(row.arrived_at),
            outcome: outcome.map_err(|_| corrupt("outcome"))?,
            defence: defence.map_err(|_| corrupt("defence"))?,
            client_id: row.client_id,
            trace_id: row.trace_id,
            same_content: row.same_content,
            duration_ms: row.duration_ms,
        };
        Ok(Self {
            arrival,
            cursor: Cursor {
                micros: row.micros,
                id: row.id,
            },
        })
    }
}

/// At most `limit` decided arrivals after a place, newest first.
pub(crate) async fn list_arrivals(
    connection: &mut PgConnection,
    filter: &ArrivalFilter,
    after: Option<Cursor>,
    limit: i64,
) -> Result<Vec<Line>, StoreError> {
    let window = filter.window.unwrap_or(LONGEST);
    let one = filter.outcome.map(|outcome| [outcome]);
    let outcomes = one.as_ref().map_or(Bucket::VARIANTS, |one| one.as_slice());
    let names: Vec<String> = outcomes.iter().map(ToString::to_string).collect();
    let mut sql = QueryBuilder::new("SELECT ");
    sql.push(COLUMNS).push(" FROM ");
    push_busy_steps(&mut sql, window, outcomes, filter.action.as_deref());
    sql.push(
        " CROSS JOIN LATERAL (
             SELECT v.* FROM request_arrival v
             WHERE v.arrived_at >= busy.begins AND v.arrived_at < busy.ends AND v.outcome = ANY (",
    )
    .push_bind(names)
    .push(")");
    if let Some(defence) = filter.defence {
        sql.push(" AND v.defence = ").push_bind(defence.to_string());
    }
    if let Some(action) = &filter.action {
        sql.push(" AND v.action_type = ").push_bind(action.clone());
    }
    if let Some(cursor) = after {
        sql.push(" AND (v.arrived_at, v.id) < (");
        push_time(&mut sql, cursor.micros);
        sql.push(", ").push_bind(cursor.id).push(")");
    }
    sql.push(" ORDER BY v.arrived_at DESC, v.id DESC LIMIT ")
        .push_bind(limit)
        .push(") v LEFT JOIN idempotency_record r ON r.id = v.record_id LEFT JOIN account a ON a.id = r.subject_id");
    if let Some(cursor) = after {
        sql.push(" WHERE busy.begins <= ");
        push_time(&mut sql, cursor.micros);
    }
    // In the order of the steps, so that the search ends with the page and does not visit all of them.
    sql.push(" ORDER BY busy.begins DESC, v.arrived_at DESC, v.id DESC LIMIT ")
        .push_bind(limit);
    let rows: Vec<ArrivalRow> = sql
        .build_query_as()
        .persistent(false)
        .fetch_all(connection)
        .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// The arrivals of one record, oldest first, at most the newest `limit`.
pub(crate) async fn list_record_arrivals(
    executor: impl PgExecutor<'_>,
    record_id: i64,
    limit: i64,
) -> Result<Vec<ArrivalView>, StoreError> {
    let mut sql = QueryBuilder::new("SELECT * FROM (SELECT ");
    sql.push(COLUMNS)
        .push(
            " FROM request_arrival v LEFT JOIN idempotency_record r ON r.id = v.record_id
              LEFT JOIN account a ON a.id = r.subject_id WHERE v.record_id = ",
        )
        .push_bind(record_id)
        .push(" ORDER BY v.arrived_at DESC, v.id DESC LIMIT ")
        .push_bind(limit)
        .push(") newest ORDER BY arrived_at, id");
    let rows: Vec<ArrivalRow> = sql.build_query_as().fetch_all(executor).await?;
    let views = rows
        .into_iter()
        .map(|row| Line::try_from(row).map(|line| line.arrival));
    views.collect()
}

const COLUMNS: &str = "v.id, v.record_id, v.action_type, r.idem_key, a.name AS subject_name, v.arrived_at,
    (extract(epoch FROM v.arrived_at) * 1000000)::bigint AS micros, v.outcome, v.defence, v.client_id, v.trace_id,
    v.same_content, v.duration_ms";

/// The steps of time in which the counters have something of these outcomes, newest first: `busy (begins, ends)`.
pub(super) fn push_busy_steps(
    sql: &mut QueryBuilder<Postgres>,
    window: Window,
    outcomes: &[Bucket],
    action: Option<&str>,
) {
    // Minutes are kept for every window that is shown in them; see `panel::roll_counters`.
    let step = window.step_minutes().min(30);
    let names: Vec<String> = outcomes.iter().map(ToString::to_string).collect();
    sql.push("(SELECT DISTINCT date_bin(make_interval(mins => ")
        .push_bind(step)
        .push("), at, TIMESTAMPTZ '2000-01-01 00:00Z') AS begins, date_bin(make_interval(mins => ")
        .push_bind(step)
        .push("), at, TIMESTAMPTZ '2000-01-01 00:00Z') + make_interval(mins => ")
        .push_bind(step)
        .push(
            ") AS ends FROM (
                SELECT minute AS at, name, action_type FROM outcome_counter
                UNION ALL
                SELECT slot, name, action_type FROM outcome_slot
             ) parts WHERE at >= ",
        );
    push_from(sql, window);
    sql.push(" AND name = ANY (").push_bind(names).push(")");
    if let Some(action) = action {
        sql.push(" AND action_type = ").push_bind(action.to_owned());
    }
    sql.push(" ORDER BY begins DESC) busy");
}

fn push_time(sql: &mut QueryBuilder<Postgres>, micros: i64) {
    // Exact: a double has room for the microseconds of some centuries.
    sql.push("(TIMESTAMPTZ 'epoch' + make_interval(secs => ")
        .push_bind(micros)
        .push("::bigint / 1000000.0))");
}
