//! Transactions with the settings that the engine relies on, whatever the database's defaults are.

use sqlx::{PgPool, Postgres, Transaction};

/// Begins a transaction for effects. Its commit waits for the disk. It gives up on a lock soon, so that one slow row does not
/// hold up a whole set. And Postgres ends it when its process stands still in the middle: a paused owner must not keep the
/// records of its set locked against those who take over.
pub(crate) async fn begin_finish(
    pool: &PgPool,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    pool.begin_with(
        "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '1s'; \
         SET LOCAL idle_in_transaction_session_timeout = '2s'",
    )
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
