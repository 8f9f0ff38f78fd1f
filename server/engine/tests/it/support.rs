//! What every test here starts from: an engine on a fresh database with the demo's data.

use std::time::Duration;

use domain::{IdempotencyKey, Role, action::TASK_SUBMIT};
use engine::{Actor, Answer, Arrival, Engine, EngineConfig, Pools, SubmitError};
use serde_json::{Value, json};
use sqlx::PgPool;

/// The students that the demo's data has here.
pub(crate) const STUDENTS: u32 = 3;

/// An engine, and the same database for looking behind it.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) pool: PgPool,
}

impl World {
    /// An engine on this database, which gets the demo's data.
    pub(crate) async fn new(pool: PgPool) -> Self {
        Self::with_engine(start(&pool, EngineConfig::default()).await, pool).await
    }

    /// This engine, whose database gets the demo's data.
    pub(crate) async fn with_engine(engine: Engine, pool: PgPool) -> Self {
        engine.load_demo(STUDENTS, "no password").await.unwrap();
        Self { engine, pool }
    }

    /// One more instance on the same database.
    pub(crate) async fn another_instance(&self) -> Engine {
        start(
            &self.pool,
            EngineConfig {
                instance_name: "another".into(),
                ..EngineConfig::default()
            },
        )
        .await
    }

    pub(crate) async fn actor(&self, name: &str) -> Actor {
        self.engine
            .list_accounts(&[name.to_owned()], None)
            .await
            .unwrap()
            .pop()
            .unwrap()
    }

    /// The first assignment.
    pub(crate) async fn assignment(&self) -> String {
        self.task("assignment").await
    }

    pub(crate) async fn practice(&self) -> String {
        self.task("practice").await
    }

    async fn task(&self, kind: &str) -> String {
        let id: i64 = sqlx::query_scalar("SELECT min(id) FROM task WHERE kind = $1")
            .bind(kind)
            .fetch_one(&self.pool)
            .await
            .unwrap();
        id.to_string()
    }

    /// One number out of the database.
    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    /// Name and value of every counter that is not 0, by name.
    pub(crate) async fn counters(&self) -> Vec<(String, i64)> {
        self.engine.flush().await;
        sqlx::query_as(
            "SELECT name, sum(n)::bigint FROM outcome_counter GROUP BY name ORDER BY name",
        )
        .fetch_all(&self.pool)
        .await
        .unwrap()
    }
}

async fn start(pool: &PgPool, config: EngineConfig) -> Engine {
    let (work, reading) = (pool.clone(), pool.clone());
    start_on(Pools { work, reading }, config).await
}

/// An engine on these connections.
pub(crate) async fn start_on(pools: Pools, config: EngineConfig) -> Engine {
    Engine::start(pools, config).await.unwrap()
}

/// A submission as it comes in.
pub(crate) fn arrival(key: &str, task_id: &str, submit_version: i32, content: &str) -> Arrival {
    Arrival {
        action: TASK_SUBMIT,
        key: IdempotencyKey::from_text(key).unwrap(),
        command: json!({ "task_id": task_id, "submit_version": submit_version, "content": content }),
        client_id: "device-1".into(),
        trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
        wait: Duration::ZERO,
    }
}

pub(crate) fn body(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap()
}

pub(crate) fn code(answer: &Answer) -> String {
    body(answer)["code"].as_str().unwrap_or_default().to_owned()
}

/// Submits as the first student.
pub(crate) async fn submit(world: &World, arrival: Arrival) -> Result<Answer, SubmitError> {
    let student = world.actor("student1").await;
    assert_eq!(student.role, Role::Student);
    world.engine.submit(&student, arrival).await
}
