//! The panel's numbers: sums of durable counters and counts of unfinished records.

use std::time::Duration;

use domain::view::{Gauges, Latency};
use sqlx::{FromRow, PgConnection, types::time::OffsetDateTime};

/// The most arrivals of a window whose latencies are looked at: enough for a 99th percentile, and no more as a week grows.
const LATENCY_SAMPLE: i64 = 10_000;

/// A counter of one action in one step of time; `step` counts from the beginning of the window.
#[derive(FromRow)]
pub(crate) struct CounterRow {
    pub(crate) step: i32,
    pub(crate) action_type: String,
    pub(crate) name: String,
    pub(crate) n: i64,
}

/// The beginning of each step of a window, oldest first, and the time now.
#[derive(FromRow)]
pub(crate) struct StepRow {
    pub(crate) at: OffsetDateTime,
    pub(crate) now: OffsetDateTime,
}

pub(crate) async fn list_steps(
    connection: &mut PgConnection,
    window_minutes: i32,
    step_minutes: i32,
) -> Result<Vec<StepRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT date_trunc('minute', now()) - make_interval(mins => $1 - 1 - n * $2) AS at, now() AS now
         FROM generate_series(0, $1 / $2 - 1) n ORDER BY n",
    )
    .bind(window_minutes)
    .bind(step_minutes)
    .fetch_all(connection)
    .await
}

pub(crate) async fn list_window_counters(
    connection: &mut PgConnection,
    from: OffsetDateTime,
    step_minutes: i32,
) -> Result<Vec<CounterRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT (extract(epoch FROM minute - $1) / 60)::integer / $2 AS step, action_type, name, sum(n)::bigint AS n
         FROM outcome_counter WHERE minute >= $1 GROUP BY 1, 2, 3",
    )
    .bind(from)
    .bind(step_minutes)
    .fetch_all(connection)
    .await
}

pub(crate) async fn list_total_counters(
    connection: &mut PgConnection,
) -> Result<Vec<CounterRow>, sqlx::Error> {
    sqlx::query_as("SELECT 0 AS step, action_type, name, sum(n)::bigint AS n FROM outcome_counter GROUP BY 2, 3")
        .fetch_all(connection)
        .await
}

#[derive(FromRow)]
struct GaugesRow {
    processing: i64,
    unknown: i64,
    stuck: i64,
    oldest_processing_seconds: i64,
    oldest_stuck_seconds: i64,
    awaiting_approval: i64,
}

pub(crate) async fn find_gauges(
    connection: &mut PgConnection,
    stuck_after: Duration,
) -> Result<Gauges, sqlx::Error> {
    let row: GaugesRow = sqlx::query_as(
        "SELECT count(*) FILTER (WHERE state = 'PROCESSING') AS processing,
                count(*) FILTER (WHERE state = 'UNKNOWN') AS unknown,
                count(*) FILTER (WHERE age >= make_interval(secs => $1)) AS stuck,
                coalesce(floor(extract(epoch FROM max(age) FILTER (WHERE state = 'PROCESSING'))), 0)::bigint
                    AS oldest_processing_seconds,
                coalesce(floor(extract(epoch FROM max(age) FILTER (WHERE age >= make_interval(secs => $1)))), 0)::bigint
                    AS oldest_stuck_seconds,
                (SELECT count(*) FROM compensation WHERE status = 'awaiting_approval') AS awaiting_approval
         FROM (
             SELECT state, now() - claimed_at AS age FROM idempotency_record WHERE state IN ('PROCESSING', 'UNKNOWN')
         ) unfinished",
    )
    .bind(stuck_after.as_secs_f64())
    .fetch_one(connection)
    .await?;
    Ok(Gauges {
        processing: row.processing,
        unknown: row.unknown,
        stuck: row.stuck,
        awaiting_approval: row.awaiting_approval,
        oldest_processing_seconds: row.oldest_processing_seconds,
        oldest_stuck_seconds: row.oldest_stuck_seconds,
    })
}

#[derive(FromRow)]
struct LatencyRow {
    percentiles: Option<Vec<f64>>,
}

/// Percentiles over the newest arrivals since a time.
pub(crate) async fn find_latency(
    connection: &mut PgConnection,
    from: OffsetDateTime,
) -> Result<Latency, sqlx::Error> {
    let row: LatencyRow = sqlx::query_as(
        "SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY duration_ms) AS percentiles
         FROM (
             -- Ids are made in the order of time, so the newest are at the end of the primary key.
             SELECT duration_ms, arrived_at FROM request_arrival ORDER BY id DESC LIMIT $2
         ) newest
         WHERE arrived_at >= $1 AND duration_ms IS NOT NULL",
    )
    .bind(from)
    .bind(LATENCY_SAMPLE)
    .fetch_one(connection)
    .await?;
    let percentile = |n: usize| row.percentiles.as_ref().and_then(|p| p.get(n)).copied();
    Ok(Latency {
        p50: percentile(0),
        p95: percentile(1),
        p99: percentile(2),
    })
}
