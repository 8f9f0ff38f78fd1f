//! Processes that claim and count.

use sqlx::PgPool;

/// Registers this start of this process.
pub(crate) async fn insert_instance(pool: &PgPool, name: &str) -> Result<i32, sqlx::Error> {
    sqlx::query_scalar("INSERT INTO instance (name) VALUES ($1) RETURNING id")
        .bind(name)
        .fetch_one(pool)
        .await
}
