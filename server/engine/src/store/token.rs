//! Tokens of sessions and of machine clients; only their hashes are here.

use std::time::Duration;

use sqlx::PgPool;

use super::account::ActorRow;
use crate::{Actor, StoreError, TokenKind};

pub(crate) async fn insert_tokens(
    pool: &PgPool,
    tokens: &[(i64, Vec<u8>)],
    kind: TokenKind,
    lifetime: Option<Duration>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO access_token (account_id, token_hash, kind, expires_at)
         SELECT account_id, token_hash, $3, now() + make_interval(secs => $4)
         FROM unnest($1::bigint[], $2::bytea[]) AS input (account_id, token_hash)",
    )
    .bind(tokens.iter().map(|t| t.0).collect::<Vec<_>>())
    .bind(tokens.iter().map(|t| t.1.as_slice()).collect::<Vec<_>>())
    .bind(kind.as_ref())
    .bind(lifetime.map(|l| l.as_secs_f64()))
    .execute(pool)
    .await
    .map(drop)
}

pub(crate) async fn find_actor(
    pool: &PgPool,
    token_hash: &[u8; 32],
) -> Result<Option<Actor>, StoreError> {
    let row: Option<ActorRow> = sqlx::query_as(
        "SELECT a.id, a.name, a.role FROM access_token t JOIN account a ON a.id = t.account_id
         WHERE t.token_hash = $1 AND (t.expires_at IS NULL OR t.expires_at > now())",
    )
    .bind(token_hash.as_slice())
    .fetch_optional(pool)
    .await?;
    row.map(TryInto::try_into).transpose()
}

pub(crate) async fn delete_token(pool: &PgPool, token_hash: &[u8; 32]) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM access_token WHERE token_hash = $1")
        .bind(token_hash.as_slice())
        .execute(pool)
        .await
        .map(drop)
}
