//! What every test here starts from: an engine on a fresh database with the demo's data, and a deadline.

use std::{
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::Duration,
};

use domain::{Fingerprint, IdempotencyKey, Role, action::TASK_SUBMIT};
use engine::{Actor, Answer, Arrival, Engine, EngineConfig, NewAccount, Pools, SubmitError};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};

/// The students that the demo's data has here.
pub(crate) const STUDENTS: u32 = 3;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a test may take, whatever it waits for.
const DEADLINE: Duration = Duration::from_secs(240);

/// An engine, and the same database for looking behind it.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) pool: PgPool,
    /// Disarms the deadline when it is dropped.
    _deadline: Sender<()>,
}

/// Ends the run, with the test's name, when a test hangs: its thread can be told by nobody.
fn set_deadline() -> Sender<()> {
    let (alive, watched) = mpsc::channel();
    let test = thread::current().name().unwrap_or_default().to_owned();
    thread::spawn(move || {
        if watched.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{test} hangs");
            std::process::exit(1);
        }
    });
    alive
}

/// What must happen soon.
pub(crate) async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}

impl World {
    /// An engine on this database, which gets the demo's data.
    pub(crate) async fn new(pool: PgPool) -> Self {
        Self::with_engine(start(&pool, EngineConfig::default()).await, pool).await
    }

    /// This engine, whose database gets the demo's data.
    pub(crate) async fn with_engine(engine: Engine, pool: PgPool) -> Self {
        let deadline = set_deadline();
        engine.load_demo(STUDENTS, "no password").await.unwrap();
        Self {
            engine,
            pool,
            _deadline: deadline,
        }
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

    /// Changes something behind the engine's back.
    pub(crate) async fn execute(&self, sql: &'static str) {
        sqlx::raw_sql(sql).execute(&self.pool).await.unwrap();
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

    /// Waits until a query that counts gives what is expected.
    pub(crate) async fn until(&self, sql: &'static str, expected: i64) {
        let reached = async {
            while self.count(sql).await != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, reached).await.is_err() {
            panic!("{sql}: {} instead of {expected}", self.count(sql).await);
        }
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

    /// Leaves a record as a process does that died right after its claim: PROCESSING for ten minutes, and its lease over.
    pub(crate) async fn leave_dead_claim(&self, key: &str, task: &str, content: &str) {
        let mut connection = self.pool.acquire().await.unwrap();
        insert_claim(&mut connection, key, task, content, 10).await;
        sqlx::query(
            "INSERT INTO request_arrival (id, record_id, action_type, arrived_at, client_id, trace_id, same_content)
             SELECT gen_random_uuid(), id, action_type, claimed_at, 'dead', 'trace', true
             FROM idempotency_record WHERE idem_key = $1",
        )
        .bind(key)
        .execute(&mut *connection)
        .await
        .unwrap();
    }

    /// Puts a row where another writer would: plain SQL, without points and message.
    pub(crate) async fn write_behind(&self, task: &str, submit_version: i32, content: &str) {
        sqlx::query(
            "INSERT INTO submission (task_id, student_id, submit_version, content)
             SELECT $1::bigint, id, $2, $3 FROM account WHERE name = 'student1'
             ON CONFLICT ON CONSTRAINT uk_task_student_version DO NOTHING",
        )
        .bind(task)
        .bind(submit_version)
        .bind(content)
        .execute(&self.pool)
        .await
        .unwrap();
    }
}

/// Claims a key for the first student as another process would, some minutes ago and for one.
pub(crate) async fn insert_claim(
    connection: &mut PgConnection,
    key: &str,
    task: &str,
    content: &str,
    minutes_ago: i32,
) {
    let command = json!({ "task_id": task, "submit_version": 1, "content": content });
    let fingerprint = Fingerprint::of(TASK_SUBMIT, &command).unwrap();
    sqlx::query(
        "INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id, claim_token,
                                         owner_instance, claimed_at, lease_until)
         SELECT id, 'task_submit', $1, 'PROCESSING', $2, $3, 'trace', gen_random_uuid(), 0,
                now() - make_interval(mins => $4), now() - make_interval(mins => $4 - 1)
         FROM account WHERE name = 'student1'",
    )
    .bind(key)
    .bind(fingerprint.as_bytes().as_slice())
    .bind(command)
    .bind(minutes_ago)
    .execute(connection)
    .await
    .unwrap();
}

/// An engine on this database.
pub(crate) async fn start(pool: &PgPool, config: EngineConfig) -> Engine {
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

/// One more admin.
pub(crate) fn admin(name: &str) -> NewAccount {
    NewAccount {
        name: name.into(),
        role: Role::Admin,
        password_hash: "no password".into(),
        class: None,
        children: Vec::new(),
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
