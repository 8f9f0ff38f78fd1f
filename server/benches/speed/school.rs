//! Who hands in and what: intents, each to be had once, and the proof that each was written once.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, ensure};
use domain::{IdempotencyKey, Role, action::TASK_SUBMIT, key::task_submit_key};
use engine::{Actor, Arrival, Engine};
use rand::Rng;
use secrecy::ExposeSecret;
use serde_json::json;
use server::auth::token;
use sqlx::{AssertSqlSafe, PgPool};

/// How many assignments each student has.
const TASKS: u64 = 1000;
/// What is handed in: a paragraph.
const WORK: &str = "The sea is calm tonight, the tide is full, the moon lies fair upon the straits; I like this line best because it \
    is quiet and one hears the water in it. I learnt the poem by heart, and said it to my grandmother, who knew it too.";
const CLIENT: &str = "bench";

/// The school of `school.sql`.
pub(crate) struct School {
    students: Vec<Student>,
    ops_token: String,
    first_task: i64,
    taken: AtomicU64,
}

struct Student {
    actor: Actor,
    token: String,
}

/// One student's one task.
pub(crate) struct Intent<'a> {
    pub(crate) actor: &'a Actor,
    pub(crate) token: &'a str,
    pub(crate) task: i64,
    pub(crate) key: String,
}

/// Which intents are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// One that nobody had.
    New,
    /// Any of the first so many.
    Again(u64),
}

impl School {
    /// Opens it in an empty database or beside what is there.
    pub(crate) async fn open(engine: &Engine, pool: &PgPool) -> anyhow::Result<Self> {
        sqlx::raw_sql(include_str!("school.sql"))
            .execute(pool)
            .await?;
        let mut students = Vec::new();
        let mut kept = Vec::new();
        let mut accounts = engine.list_accounts(&[], Some(Role::Student)).await?;
        accounts.retain(|account| account.name.starts_with("crowd"));
        let mut ops = engine
            .list_accounts(&["crowd-ops".to_owned()], None)
            .await?;
        let ops = ops.pop().context("nobody of the ops")?;
        for actor in accounts {
            let (token, hash) = token::make()?;
            kept.push((actor.id, hash.to_vec()));
            let token = token.expose_secret().to_owned();
            students.push(Student { actor, token });
        }
        let (ops_token, hash) = token::make()?;
        kept.push((ops.id, hash.to_vec()));
        engine.add_machine_tokens(&kept).await?;
        let first_task = sqlx::query_scalar("SELECT min(id) FROM task WHERE title LIKE 'Crowd %'")
            .fetch_one(pool)
            .await?;
        Ok(Self {
            students,
            ops_token: ops_token.expose_secret().to_owned(),
            first_task,
            taken: AtomicU64::new(0),
        })
    }

    /// The token of somebody who sees the panel.
    pub(crate) fn ops_token(&self) -> &str {
        &self.ops_token
    }

    /// How many intents were had so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The number of an intent that nobody had.
    pub(crate) fn take(&self) -> u64 {
        self.taken.fetch_add(1, Ordering::Relaxed)
    }

    /// An intent of these.
    pub(crate) fn pick(&self, which: Which) -> anyhow::Result<Intent<'_>> {
        self.nth(match which {
            Which::New => self.take(),
            Which::Again(first) => rand::rng().random_range(0..first),
        })
    }

    /// The intent of this number.
    pub(crate) fn nth(&self, n: u64) -> anyhow::Result<Intent<'_>> {
        let students = self.students.len() as u64;
        ensure!(
            n < students * TASKS,
            "everything is handed in; ask for fewer rounds or seconds"
        );
        let student = &self.students[(n % students) as usize];
        let task = self.first_task + (n / students) as i64;
        let id = student.actor.id.to_string();
        Ok(Intent {
            actor: &student.actor,
            token: &student.token,
            task,
            key: task_submit_key(&task.to_string(), &id, 1, CLIENT, 1),
        })
    }

    /// Fails unless the table has one row for each intent that was had, and no other.
    pub(crate) async fn check(&self, pool: &PgPool, table: &str) -> anyhow::Result<()> {
        let ids: Vec<i64> = self.students.iter().map(|s| s.actor.id).collect();
        let sql = format!(
            "WITH expected AS (
                 SELECT $1 + n / cardinality($2) AS task_id, ($2::bigint[])[n % cardinality($2) + 1] AS student_id
                 FROM generate_series(0, $3 - 1) n
             ), found AS (
                 SELECT task_id, student_id, count(*) AS rows FROM {table} WHERE task_id >= $1 GROUP BY 1, 2
             )
             SELECT count(*) FROM expected e FULL JOIN found f USING (task_id, student_id)
             WHERE e.task_id IS NULL OR f.rows IS DISTINCT FROM 1"
        );
        let taken = i64::try_from(self.taken())?;
        let wrong: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(self.first_task)
            .bind(ids)
            .bind(taken)
            .fetch_one(pool)
            .await?;
        ensure!(
            wrong == 0,
            "{table}: {wrong} of {taken} intents have not exactly one row"
        );
        Ok(())
    }
}

impl Intent<'_> {
    /// As the engine takes it.
    pub(crate) fn arrival(&self) -> anyhow::Result<Arrival> {
        Ok(Arrival {
            action: TASK_SUBMIT,
            key: IdempotencyKey::from_text(&self.key)?,
            command: json!({ "task_id": self.task.to_string(), "submit_version": 1, "content": WORK }),
            client_id: CLIENT.to_owned(),
            trace_id: format!("{:032x}", rand::rng().random::<u128>() | 1),
            wait: std::time::Duration::ZERO,
        })
    }

    /// As the API takes it.
    pub(crate) fn body(&self) -> serde_json::Value {
        json!({ "submit_version": 1, "client_id": CLIENT, "content": WORK })
    }

    /// What is handed in.
    pub(crate) fn work(&self) -> &'static str {
        WORK
    }
}
