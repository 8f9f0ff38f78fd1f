//! Arrivals that were answered without an execution, and events beside them: written in sets, behind the answer.

use std::time::Duration;

use domain::{Bucket, Defence};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::StoreError;

/// One decided arrival.
#[derive(Debug, Clone)]
pub(crate) struct ArrivalRow {
    /// Made by the server, so that a repeated set does not count twice.
    pub(crate) id: Uuid,
    pub(crate) record_id: i64,
    pub(crate) action_type: &'static str,
    pub(crate) bucket: Bucket,
    pub(crate) defence: Defence,
    pub(crate) client_id: String,
    pub(crate) trace_id: String,
    pub(crate) same_content: bool,
    /// From arrival to answer.
    pub(crate) duration: Duration,
    /// How long ago it arrived.
    pub(crate) age: Duration,
}

/// Inserts arrivals and counts those that were really inserted.
pub(crate) async fn insert_arrivals(
    pool: &PgPool,
    instance_id: i32,
    rows: &[ArrivalRow],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH inserted AS (
             INSERT INTO request_arrival (id, record_id, action_type, arrived_at, outcome, defence, client_id, trace_id,
                                          same_content, duration_ms)
             SELECT id, record_id, action_type, statement_timestamp() - make_interval(secs => age_seconds), outcome, defence,
                    client_id, trace_id, same_content, duration_ms
             FROM unnest(
                 $1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[],
                 $9::double precision[], $10::double precision[]
             ) AS input (id, record_id, action_type, outcome, defence, client_id, trace_id, same_content, duration_ms,
                         age_seconds)
             ORDER BY id
             ON CONFLICT ON CONSTRAINT pk_request_arrival DO NOTHING
             RETURNING arrived_at, action_type, outcome
         )
         INSERT INTO outcome_counter AS c (minute, action_type, name, instance_id, n)
         SELECT date_trunc('minute', arrived_at), action_type, outcome, $11, count(*)
         FROM inserted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
         ON CONFLICT ON CONSTRAINT pk_outcome_counter DO UPDATE SET n = c.n + EXCLUDED.n",
    )
    .bind(rows.iter().map(|r| r.id).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.record_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.action_type).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.bucket.to_string()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.defence.to_string()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.client_id.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.trace_id.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.same_content).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.duration.as_secs_f64() * 1000.0).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.age.as_secs_f64()).collect::<Vec<_>>())
    .bind(instance_id)
    .execute(pool)
    .await?;
    Ok(())
}

/// Counts events that are no arrivals.
pub(crate) async fn count_events(
    pool: &PgPool,
    instance_id: i32,
    events: &[(&'static str, domain::EndEvent)],
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO outcome_counter AS c (minute, action_type, name, instance_id, n)
         SELECT date_trunc('minute', clock_timestamp()), action_type, name, $3, count(*)
         FROM unnest($1::text[], $2::text[]) AS input (action_type, name)
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
         ON CONFLICT ON CONSTRAINT pk_outcome_counter DO UPDATE SET n = c.n + EXCLUDED.n",
    )
    .bind(events.iter().map(|e| e.0).collect::<Vec<_>>())
    .bind(events.iter().map(|e| e.1.to_string()).collect::<Vec<_>>())
    .bind(instance_id)
    .execute(pool)
    .await?;
    Ok(())
}

/// An arrival of this record: into which bucket it was decided, or that it is undecided; `None` when there is none.
pub(crate) async fn find_arrival(
    connection: &mut PgConnection,
    arrival_id: Uuid,
    record_id: i64,
) -> Result<Option<Option<Bucket>>, StoreError> {
    let outcome: Option<Option<String>> =
        sqlx::query_scalar("SELECT outcome FROM request_arrival WHERE id = $1 AND record_id = $2")
            .bind(arrival_id)
            .bind(record_id)
            .fetch_optional(connection)
            .await?;
    let parse = |text: String| {
        text.parse()
            .map_err(|_| StoreError::Corrupt(format!("outcome of arrival {arrival_id}")))
    };
    outcome
        .map(|outcome| outcome.map(parse).transpose())
        .transpose()
}

/// Decides and counts one arrival, if nobody has.
pub(crate) async fn decide_arrival(
    pool: &PgPool,
    instance_id: i32,
    arrival_id: Uuid,
    bucket: Bucket,
    defence: Defence,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH decided AS (
             UPDATE request_arrival
             SET outcome = $2, defence = $3, duration_ms = extract(epoch FROM clock_timestamp() - arrived_at) * 1000
             WHERE id = $1 AND outcome IS NULL
             RETURNING arrived_at, action_type, outcome
         )
         INSERT INTO outcome_counter AS c (minute, action_type, name, instance_id, n)
         SELECT date_trunc('minute', arrived_at), action_type, outcome, $4, 1 FROM decided
         ON CONFLICT ON CONSTRAINT pk_outcome_counter DO UPDATE SET n = c.n + EXCLUDED.n",
    )
    .bind(arrival_id)
    .bind(bucket.as_ref())
    .bind(defence.as_ref())
    .bind(instance_id)
    .execute(pool)
    .await
    .map(drop)
}
