//! The panel's numbers: sums of durable counters and counts of unfinished records.

use std::time::Duration;

use domain::view::{Gauges, Latency, Window};
use sqlx::{FromRow, PgConnection, PgExecutor, PgPool, types::time::OffsetDateTime};

/// The most arrivals of a window whose latencies are looked at: enough for a 99th percentile, and no more as a week grows.
const LATENCY_SAMPLE: i64 = 5_000;

/// A counter of one action in one step of time; `step` counts from the beginning of the window.
#[derive(FromRow)]
pub(crate) struct CounterRow {
    pub(crate) step: i32,
    pub(crate) action_type: String,
    pub(crate) name: String,
    pub(crate) n: i64,
}

/// Where a window begins, and the time now.
#[derive(FromRow)]
pub(crate) struct Span {
    pub(crate) from: OffsetDateTime,
    pub(crate) now: OffsetDateTime,
}

/// A window begins on a whole step of its series, so that counters and lists can begin at the very same moment.
pub(crate) async fn find_span(
    executor: impl PgExecutor<'_>,
    window: Window,
) -> Result<Span, sqlx::Error> {
    sqlx::query_as(
        "SELECT date_bin(make_interval(mins => $2), now(), TIMESTAMPTZ '2000-01-01 00:00Z')
                    - make_interval(mins => $1 - $2) AS from,
                now() AS now",
    )
    .bind(window.minutes())
    .bind(window.step_minutes())
    .fetch_one(executor)
    .await
}

pub(crate) async fn list_window_counters(
    connection: &mut PgConnection,
    from: OffsetDateTime,
    step_minutes: i32,
) -> Result<Vec<CounterRow>, sqlx::Error> {
    sqlx::query_as(
        "SELECT (extract(epoch FROM at - $1) / 60)::integer / $2 AS step, action_type, name, sum(n)::bigint AS n
         FROM (
             SELECT minute AS at, action_type, name, n FROM outcome_counter WHERE minute >= $1
             UNION ALL
             SELECT slot, action_type, name, n FROM outcome_slot WHERE slot >= $1
         ) parts
         GROUP BY 1, 2, 3",
    )
    .bind(from)
    .bind(step_minutes)
    .fetch_all(connection)
    .await
}

pub(crate) async fn list_total_counters(
    connection: &mut PgConnection,
) -> Result<Vec<CounterRow>, sqlx::Error> {
    sqlx::query_as("SELECT 0 AS step, action_type, name, n FROM counter_total")
        .fetch_all(connection)
        .await
}

/// Moves counters of minutes that no window shows one by one any more into half hours and into the total, at most `limit`. A
/// minute that is counted into later comes back as a new row and is moved by a later turn. Answers how many rows it moved.
pub(crate) async fn roll_counters(pool: &PgPool, limit: i64) -> Result<u64, sqlx::Error> {
    let moved: i64 = sqlx::query_scalar(
        "WITH old AS (
             SELECT minute, action_type, name, instance_id FROM outcome_counter
             -- An hour is shown in minutes; the half hour that it begins in is left whole.
             WHERE minute < date_bin('30 minutes', statement_timestamp() - interval '1 hour', TIMESTAMPTZ '2000-01-01 00:00Z')
             ORDER BY minute, action_type, name, instance_id LIMIT $1
             -- A late arrival that is just being counted is not waited for, nor does another instance move it twice.
             FOR UPDATE SKIP LOCKED
         ), gone AS (
             DELETE FROM outcome_counter c USING old o
             WHERE c.minute = o.minute AND c.action_type = o.action_type AND c.name = o.name
               AND c.instance_id = o.instance_id
             RETURNING c.minute, c.action_type, c.name, c.n
         ), slots AS (
             INSERT INTO outcome_slot AS s (slot, action_type, name, n)
             SELECT date_bin('30 minutes', minute, TIMESTAMPTZ '2000-01-01 00:00Z'), action_type, name, sum(n)
             FROM gone GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
             ON CONFLICT ON CONSTRAINT pk_outcome_slot DO UPDATE SET n = s.n + EXCLUDED.n
         ), total AS (
             INSERT INTO outcome_total AS t (action_type, name, n)
             SELECT action_type, name, sum(n) FROM gone GROUP BY 1, 2 ORDER BY 1, 2
             ON CONFLICT ON CONSTRAINT pk_outcome_total DO UPDATE SET n = t.n + EXCLUDED.n
         )
         SELECT count(*) FROM gone",
    )
    .bind(limit)
    .fetch_one(pool)
    .await?;
    Ok(moved.unsigned_abs())
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
    action_type: Option<String>,
    percentiles: Option<Vec<f64>>,
}

/// How long things took.
pub(crate) struct Latencies {
    /// All arrivals.
    pub(crate) all: Latency,
    /// The executions of each action.
    pub(crate) flows: Vec<(String, Latency)>,
}

/// Percentiles over the newest arrivals since a time.
pub(crate) async fn find_latencies(
    connection: &mut PgConnection,
    from: OffsetDateTime,
) -> Result<Latencies, sqlx::Error> {
    let rows: Vec<LatencyRow> = sqlx::query_as(
        "WITH newest AS MATERIALIZED (
             -- Ids are made in the order of time, so the newest are at the end of the primary key.
             SELECT action_type, outcome, duration_ms, arrived_at FROM request_arrival ORDER BY id DESC LIMIT $2
         ), sample AS (
             SELECT * FROM newest WHERE arrived_at >= $1 AND duration_ms IS NOT NULL
         )
         SELECT NULL AS action_type,
                percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY duration_ms) AS percentiles
         FROM sample
         UNION ALL
         SELECT action_type, percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY duration_ms)
         FROM sample WHERE outcome = 'new' GROUP BY action_type",
    )
    .bind(from)
    .bind(LATENCY_SAMPLE)
    .fetch_all(connection)
    .await?;
    let mut latencies = Latencies {
        all: Latency::default(),
        flows: Vec::new(),
    };
    for row in rows {
        let percentile = |n: usize| row.percentiles.as_ref().and_then(|p| p.get(n)).copied();
        let latency = Latency {
            p50: percentile(0),
            p95: percentile(1),
            p99: percentile(2),
        };
        match row.action_type {
            None => latencies.all = latency,
            Some(action) => latencies.flows.push((action, latency)),
        }
    }
    Ok(latencies)
}
