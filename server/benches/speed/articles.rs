//! What this product is measured against: the articles' statements, one after the other, as they print them.
//!
//! Seven round trips, two of them commits: insert the key (a commit of its own, or nobody would see `processing`), begin, look for the
//! row, insert it, insert the points, update the key, commit. They keep no arrivals, counters, messages or balance, and there is
//! no HTTP, no sign-in and no pool around them: each worker has a connection of its own.

use std::sync::Arc;

use anyhow::ensure;
use sqlx::{Connection, PgConnection};

use crate::{
    crowd::Worker,
    school::{School, Which},
    scratch::Scratch,
};

/// One student after the other, by the articles' statements.
pub(crate) struct Articles {
    connection: PgConnection,
    school: Arc<School>,
}

impl Articles {
    /// So many of them.
    pub(crate) async fn crowd(at_once: usize, scratch: &Scratch) -> anyhow::Result<Vec<Self>> {
        let mut crowd = Vec::with_capacity(at_once);
        for _ in 0..at_once {
            crowd.push(Self {
                connection: scratch.connect().await?,
                school: scratch.school.clone(),
            });
        }
        Ok(crowd)
    }
}

impl Worker for Articles {
    async fn once(&mut self) -> anyhow::Result<()> {
        let intent = self.school.pick(Which::New)?;
        sqlx::query(
            "INSERT INTO article_idempotency_key (idem_key, biz_type, biz_id, status, result_json, created_at, updated_at, expires_at)
             VALUES ($1, 'task_submit', $2, 'processing', NULL, now(), now(), now() + interval '24 hours')",
        )
        .bind(&intent.key)
        .bind(intent.task.to_string())
        .execute(&mut self.connection)
        .await?;
        let mut transaction = self.connection.begin().await?;
        let found: Option<i64> = sqlx::query_scalar(
            "SELECT id FROM article_submission WHERE task_id = $1 AND student_id = $2 AND submit_version = $3",
        )
        .bind(intent.task)
        .bind(intent.actor.id)
        .bind(1)
        .fetch_optional(&mut *transaction)
        .await?;
        ensure!(found.is_none(), "{} was handed in before", intent.key);
        let id: i64 = sqlx::query_scalar(
            "INSERT INTO article_submission (task_id, student_id, submit_version, content, created_at)
             VALUES ($1, $2, $3, $4, now()) RETURNING id",
        )
        .bind(intent.task)
        .bind(intent.actor.id)
        .bind(1)
        .bind(intent.work())
        .fetch_one(&mut *transaction)
        .await?;
        sqlx::query(
            "INSERT INTO article_points (submission_id, student_id, amount) VALUES ($1, $2, 10)",
        )
        .bind(id)
        .bind(intent.actor.id)
        .execute(&mut *transaction)
        .await?;
        let result = format!(r#"{{"id":"{id}","content":"{}"}}"#, intent.work());
        let updated = sqlx::query(
            "UPDATE article_idempotency_key SET status = 'success', result_json = $2, updated_at = now()
             WHERE idem_key = $1 AND status = 'processing'",
        )
        .bind(&intent.key)
        .bind(result)
        .execute(&mut *transaction)
        .await?;
        ensure!(updated.rows_affected() == 1, "{} is gone", intent.key);
        Ok(transaction.commit().await?)
    }
}
