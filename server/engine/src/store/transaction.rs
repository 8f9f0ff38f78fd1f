//! Transactions with the settings that the engine relies on, whatever the database's defaults are.

use sqlx::{PgPool, Postgres, Transaction};

/// Begins a transaction for effects: its commit waits for the disk, and it gives up on a lock soon, so that one slow row
/// does not hold up a whole set.
pub(crate) async fn begin_finish(
    pool: &PgPool,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    pool.begin_with("BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '1s'")
        .await
}

/// Whether commits wait for the disk: a finish is answered on the strength of it.
pub(crate) async fn find_durability(pool: &PgPool) -> Result<(String, String), sqlx::Error> {
    sqlx::query_as("SELECT current_setting('fsync'), current_setting('full_page_writes')")
        .fetch_one(pool)
        .await
}

/// Asks for nothing.
pub(crate) async fn ping(pool: &PgPool) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT").execute(pool).await.map(drop)
}
