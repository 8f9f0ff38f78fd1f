//! The panel over many records: what it costs those who look, and those who hand in meanwhile.

mod looks;
mod watchers;

use sqlx::PgConnection;

use crate::{
    arguments::{Arguments, Part},
    progress::Progress,
    report::Section,
    scratch::Cluster,
    wire::Server,
};

pub(crate) async fn measure(
    cluster: &Cluster,
    asked: &Arguments,
    progress: &Progress,
) -> anyhow::Result<Vec<Section>> {
    progress.say(format!("panel: loading {} records", asked.records));
    let records = asked.records.to_string();
    let scratch = cluster
        .make("panel", async |connection| load(connection, &records).await)
        .await?;
    let server = Server::start(&scratch.url, &[]).await?;
    let mut sections = Vec::new();
    if asked.wants(Part::Panel) {
        sections.push(looks::measure(&scratch, &server.wire, asked, progress).await?);
    }
    if asked.wants(Part::Watchers) {
        sections.push(watchers::measure(&scratch, &server.wire, asked, progress).await?);
    }
    server.stop().await?;
    let pool = &scratch.database.pools.work;
    scratch.school.check(pool, "submission").await?;
    cluster.drop(scratch).await?;
    Ok(sections)
}

async fn load(connection: &mut PgConnection, records: &str) -> anyhow::Result<()> {
    sqlx::query("SELECT set_config('bench.records', $1, false)")
        .bind(records)
        .execute(&mut *connection)
        .await?;
    sqlx::raw_sql(include_str!("../load.sql"))
        .execute(&mut *connection)
        .await?;
    // What autovacuum does to a table that has grown over a day, and would do now in the middle of a measurement.
    sqlx::raw_sql("VACUUM (ANALYZE)")
        .execute(&mut *connection)
        .await?;
    sqlx::raw_sql("CHECKPOINT").execute(connection).await?;
    Ok(())
}
