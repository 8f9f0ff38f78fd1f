//! The audit: who tried what. Only ever added to; the database itself refuses anything else.

use domain::view::{AuditEntry, AuditFilter};
use serde_json::Value;
use sqlx::{FromRow, PgExecutor, PgPool, types::time::OffsetDateTime};

use super::rfc3339;

/// Adds an entry.
pub(crate) async fn insert_entry(
    executor: impl PgExecutor<'_>,
    actor_id: Option<i64>,
    action: &str,
    object: &str,
    detail: &Value,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO audit_entry (actor_id, action, object, detail) VALUES ($1, $2, $3, $4)",
    )
    .bind(actor_id)
    .bind(action)
    .bind(object)
    .bind(detail)
    .execute(executor)
    .await
    .map(drop)
}

#[derive(FromRow)]
struct EntryRow {
    id: i64,
    at: OffsetDateTime,
    actor_id: Option<i64>,
    actor_name: Option<String>,
    action: String,
    object: String,
    detail: Value,
}

/// Entries with an id below the cursor, newest first.
pub(crate) async fn list_entries(
    pool: &PgPool,
    filter: &AuditFilter,
    after: Option<i64>,
    limit: i64,
) -> Result<Vec<AuditEntry>, sqlx::Error> {
    let rows: Vec<EntryRow> = sqlx::query_as(
        "SELECT e.id, e.at, e.actor_id, a.name AS actor_name, e.action, e.object, e.detail
         FROM audit_entry e LEFT JOIN account a ON a.id = e.actor_id
         WHERE ($1::text IS NULL OR a.name = $1 OR e.actor_id::text = $1)
           AND ($2::text IS NULL OR starts_with(e.action, $2))
           AND ($3::text IS NULL OR e.object = $3)
           AND ($4::bigint IS NULL OR e.id < $4)
         ORDER BY e.id DESC LIMIT $5",
    )
    .bind(filter.actor.as_deref())
    .bind(filter.action.as_deref())
    .bind(filter.object.as_deref())
    .bind(after)
    .bind(limit)
    .persistent(false)
    .fetch_all(pool)
    .await?;
    let entry = |row: EntryRow| AuditEntry {
        id: row.id.to_string(),
        at: rfc3339(row.at),
        actor: row.actor_id.map(|id| id.to_string()),
        actor_name: row.actor_name,
        action: row.action,
        object: row.object,
        detail: row.detail,
    };
    Ok(rows.into_iter().map(entry).collect())
}
