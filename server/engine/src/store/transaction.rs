//! Transactions with the settings that the engine relies on, whatever the database's defaults are.

use sqlx::{PgPool, Postgres, Transaction};

use super::notice;

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

/// Commits what was begun for effects. A warning counts as a lost connection: whoever cancels the wait for a standby gets no
/// error, but a commit that is here alone.
pub(crate) async fn commit(transaction: Transaction<'_, Postgres>) -> Result<(), sqlx::Error> {
    let (committed, warning) = notice::listen(transaction.commit()).await;
    committed?;
    let Some(warning) = warning else {
        return Ok(());
    };
    tracing::warn!(warning, "Postgres warned at a commit, which counts as lost");
    Err(sqlx::Error::Protocol("a warning at a commit".into()))
}

/// Begins a transaction for reading: one snapshot for all its statements, or numbers would not add up. Compiling a statement of a
/// screen takes Postgres longer than running it; and a screen that takes so long is better told so than waited for.
pub(crate) async fn begin_reading(
    pool: &PgPool,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    pool.begin_with(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; SET LOCAL statement_timeout = '10s'",
    )
    .await
}

/// Begins a transaction for what is watched: one snapshot for all its statements, and each of them ends soon.
pub(crate) async fn begin_watching(
    pool: &PgPool,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    pool.begin_with(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; SET LOCAL statement_timeout = '1s'",
    )
    .await
}

/// Whether commits wait for the disk: a finish is answered on the strength of it.
pub(crate) async fn find_durability(pool: &PgPool) -> Result<(String, String), sqlx::Error> {
    sqlx::query_as("SELECT current_setting('fsync'), current_setting('full_page_writes')")
        .fetch_one(pool)
        .await
}

/// How many of these migrations were applied.
pub(crate) async fn count_migrations(pool: &PgPool, versions: &[i64]) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM _sqlx_migrations WHERE success AND version = ANY($1)")
        .bind(versions)
        .fetch_one(pool)
        .await
}
