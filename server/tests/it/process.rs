//! The real binary as a child process, on the test's own database, and a client for it.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;
use sqlx::{ConnectOptions, PgPool};

use crate::child::{PATIENCE, Spawned};

/// What recovers soon, tells little, and loads in no time.
const QUICK: [(&str, &str); 4] = [
    ("YICI_LEASE_SECONDS", "2"),
    ("YICI_SCAN_INTERVAL_SECONDS", "1"),
    ("YICI_DEMO_STUDENTS", "2"),
    ("RUST_LOG", "error"),
];

/// A running server; it is killed when this is dropped.
pub(crate) struct Server {
    spawned: Spawned,
    client: reqwest::Client,
}

/// An answer over the wire.
#[derive(Debug)]
pub(crate) struct WireAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl WireAnswer {
    pub(crate) fn bucket(&self) -> &str {
        self.headers
            .get("idempotency-status")
            .map_or("", |value| value.to_str().unwrap())
    }
}

impl Server {
    /// Starts a server with a lease of 2 s and a scan every second; `crash_at` names the point at which it is to die.
    pub(crate) async fn start(pool: &PgPool, crash_at: Option<&str>) -> Self {
        let crash_at = crash_at.map(|point| ("YICI_CRASH_AT", point));
        Self::start_with(pool, crash_at.as_slice()).await
    }

    /// The same, with variables of its environment.
    pub(crate) async fn start_with(pool: &PgPool, variables: &[(&str, &str)]) -> Self {
        Self::launch(pool, variables, false).await
    }

    /// The same, with its log kept for [`Server::log`].
    pub(crate) async fn start_logged(pool: &PgPool, variables: &[(&str, &str)]) -> Self {
        Self::launch(pool, variables, true).await
    }

    async fn launch(pool: &PgPool, variables: &[(&str, &str)], logged: bool) -> Self {
        let mut all = QUICK.to_vec();
        all.extend(variables);
        let url = pool.connect_options().to_url_lossy();
        let spawned = Spawned::start(url.as_str(), &["--demo"], &all, logged)
            .await
            .unwrap();
        Self {
            spawned,
            client: reqwest::Client::new(),
        }
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        self.spawned.log().unwrap()
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.spawned.process.id().unwrap()
    }

    /// Where it serves.
    pub(crate) fn base(&self) -> &str {
        &self.spawned.base
    }

    /// Tells it to stop and waits until it has, well.
    pub(crate) async fn stop(&mut self) {
        self.signal("TERM").await;
        self.ended_well().await;
    }

    /// Waits until the process, which was told to stop, has ended well.
    pub(crate) async fn ended_well(&mut self) {
        self.spawned.ended_well().await.unwrap();
    }

    /// A token for an account of the demo.
    pub(crate) async fn sign_in(&self, name: &str) -> String {
        let body = serde_json::json!({ "username": name, "password": "demo" });
        let answer: Value = self
            .client
            .post(format!("{}/api/v1/session", self.base()))
            .json(&body)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        answer["token"].as_str().unwrap().to_owned()
    }

    /// Submits the first task under a key, waiting for the result; `None` when the connection broke.
    pub(crate) async fn submit(&self, token: &str, key: &str, content: &str) -> Option<WireAnswer> {
        let body =
            serde_json::json!({ "submit_version": 1, "client_id": "wire", "content": content });
        self.post(token, "/api/v1/tasks/1/submissions", key, &body)
            .await
    }

    /// Posts JSON under a key, waiting for the result; `None` when the connection broke.
    pub(crate) async fn post(
        &self,
        token: &str,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Option<WireAnswer> {
        self.post_with(token, path, key, body, &[]).await
    }

    /// The same, with headers.
    pub(crate) async fn post_with(
        &self,
        token: &str,
        path: &str,
        key: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Option<WireAnswer> {
        let mut request = self
            .client
            .post(format!("{}{path}", self.base()))
            .bearer_auth(token)
            .header("Idempotency-Key", key)
            .header("Prefer", "wait=20")
            .json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = request.send().await.ok()?;
        let (status, headers) = (sent.status().as_u16(), sent.headers().clone());
        Some(WireAnswer {
            status,
            headers,
            body: sent.json().await.ok()?,
        })
    }

    /// Waits until the process has ended by itself.
    pub(crate) async fn ended(&mut self) {
        let status = tokio::time::timeout(PATIENCE, self.spawned.process.wait())
            .await
            .unwrap()
            .unwrap();
        assert!(!status.success(), "it was to die, and ended well");
    }

    /// Kills the process at once, as `kill -9` does.
    pub(crate) async fn kill(&mut self) {
        self.spawned.process.kill().await.unwrap();
    }

    /// Sends a signal such as `STOP` or `CONT`.
    pub(crate) async fn signal(&self, name: &str) {
        self.spawned.signal(name).await.unwrap();
    }
}

/// Waits until a query that counts gives what is expected.
pub(crate) async fn until(pool: &PgPool, sql: &'static str, expected: i64) {
    let reached = async {
        while count(pool, sql).await != expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, reached).await.is_err() {
        panic!("{sql}: {} instead of {expected}", count(pool, sql).await);
    }
}

/// What must happen soon.
pub(crate) async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}

/// One number out of the database.
pub(crate) async fn count(pool: &PgPool, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}
