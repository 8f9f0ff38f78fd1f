//! What reached Postgres, as it counted it itself.

use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

/// How long the instances may take to write what they answered.
const PATIENCE: Duration = Duration::from_secs(30);

/// The statements of one key, on average.
#[derive(Debug, Clone, Serialize, FromRow)]
pub(super) struct Statements {
    sign_in: f64,
    claims: f64,
    looks: f64,
    others: f64,
    ms: f64,
}

type Value = fn(&Statements) -> f64;

/// What is shown of them.
pub(super) const LINES: [(&str, Value); 6] = [
    ("statements of the engine", |s| {
        s.claims + s.looks + s.others
    }),
    ("  claims", |s| s.claims),
    ("  looks at the record", |s| s.looks),
    ("  the rest: finish, arrivals, relay", |s| s.others),
    ("statements of the sign-in", |s| s.sign_in),
    ("Postgres's time in all, ms", |s| s.ms),
];

/// Lets Postgres count in this database, and only here: it costs a little.
pub(super) async fn install(connection: &mut PgConnection) -> anyhow::Result<()> {
    sqlx::raw_sql("CREATE EXTENSION pg_stat_statements")
        .execute(&mut *connection)
        .await?;
    let name: String = sqlx::query_scalar("SELECT quote_ident(current_database())")
        .fetch_one(&mut *connection)
        .await?;
    let set = format!("ALTER DATABASE {name} SET pg_stat_statements.track = 'top'");
    sqlx::raw_sql(AssertSqlSafe(set))
        .execute(connection)
        .await?;
    Ok(())
}

/// Counts from now on.
pub(super) async fn begin(connection: &mut PgConnection) -> anyhow::Result<()> {
    sqlx::query(
        "SELECT pg_stat_statements_reset(0, (SELECT oid FROM pg_database WHERE datname = current_database()), 0)",
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// What was counted, for each of the keys.
pub(super) async fn count(connection: &mut PgConnection, keys: u32) -> anyhow::Result<Statements> {
    Ok(sqlx::query_as(
        "WITH seen AS (
             SELECT calls, total_exec_time AS ms,
                    CASE WHEN query LIKE '%FROM access_token%' THEN 'sign_in'
                         WHEN query LIKE '%INSERT INTO idempotency_record%' THEN 'claims'
                         WHEN query LIKE '%SELECT%lease_is_live%FROM %idempotency_record%' AND query NOT LIKE '%UPDATE%' THEN 'looks'
                         ELSE 'others' END AS kind
             FROM pg_stat_statements
             WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%bench looks%'
         )
         SELECT coalesce(sum(calls) FILTER (WHERE kind = 'sign_in'), 0)::float8 / $1 AS sign_in,
                coalesce(sum(calls) FILTER (WHERE kind = 'claims'), 0)::float8 / $1 AS claims,
                coalesce(sum(calls) FILTER (WHERE kind = 'looks'), 0)::float8 / $1 AS looks,
                coalesce(sum(calls) FILTER (WHERE kind = 'others'), 0)::float8 / $1 AS others,
                coalesce(sum(ms), 0) / $1 AS ms
         FROM seen /* bench looks */",
    )
    .bind(f64::from(keys))
    .fetch_one(connection)
    .await?)
}

/// Waits until every arrival is decided and written, the last ones behind their answers; fails when they do not come to so many.
pub(super) async fn settle(connection: &mut PgConnection, arrivals: u64) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let decided: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM request_arrival WHERE outcome IS NOT NULL /* bench looks */",
        )
        .fetch_one(&mut *connection)
        .await?;
        if decided.unsigned_abs() == arrivals {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "{decided} arrivals were counted instead of {arrivals}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Which defence answered how many arrivals of the keys that had more than one.
pub(super) async fn defences(connection: &mut PgConnection) -> anyhow::Result<Vec<(String, i64)>> {
    Ok(sqlx::query_as(
        "SELECT defence, count(*) FROM request_arrival
         WHERE record_id IN (SELECT record_id FROM request_arrival GROUP BY 1 HAVING count(*) > 1)
         GROUP BY 1 /* bench looks */",
    )
    .fetch_all(connection)
    .await?)
}
