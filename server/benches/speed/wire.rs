//! The server as a process, and a client of its API.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use domain::Bucket;
use serde_json::Value;

use crate::{
    child::Spawned,
    crowd::Worker,
    school::{Intent, School, Which},
};

/// After this a request is given up, and the measurement with it.
const PATIENCE: Duration = Duration::from_secs(30);
/// As in production, but for the limits: one account sends here what thousands send there.
const SETTINGS: [(&str, &str); 3] = [
    ("YICI_RATE_LIMIT_PER_ACCOUNT", "0"),
    ("YICI_RATE_LIMIT_PER_ADDRESS", "0"),
    ("RUST_LOG", "info"),
];

/// A server, and a client for it.
pub(crate) struct Server {
    spawned: Spawned,
    pub(crate) wire: Wire,
}

impl Server {
    /// Starts it on a database.
    pub(crate) async fn start(
        database_url: &str,
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let mut all = SETTINGS.to_vec();
        all.extend(variables);
        let spawned = Spawned::start(database_url, &[], &all, true).await?;
        let wire = Wire {
            http: reqwest::Client::builder().timeout(PATIENCE).build()?,
            base: spawned.base.clone(),
        };
        Ok(Self { spawned, wire })
    }

    /// Stops it where it stands.
    pub(crate) async fn pause(&self) -> anyhow::Result<()> {
        self.spawned.signal("STOP").await
    }

    /// Lets it go on.
    pub(crate) async fn wake(&self) -> anyhow::Result<()> {
        self.spawned.signal("CONT").await
    }

    /// Lets it end well, and fails when it had anything to complain about.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.spawned.signal("TERM").await?;
        self.spawned.ended_well().await?;
        let log = self.spawned.log()?;
        match log.lines().find(|line| line.contains(" ERROR ")) {
            None => Ok(()),
            Some(line) => anyhow::bail!("the server logged: {line}"),
        }
    }
}

/// A client.
#[derive(Clone)]
pub(crate) struct Wire {
    http: reqwest::Client,
    base: String,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) bucket: String,
    pub(crate) body: Vec<u8>,
}

impl Wire {
    /// Submits, and waits for the result as long as the server does.
    pub(crate) async fn submit(&self, intent: &Intent<'_>) -> anyhow::Result<Reply> {
        let sent = self
            .http
            .post(format!(
                "{}/api/v1/tasks/{}/submissions",
                self.base, intent.task
            ))
            .bearer_auth(intent.token)
            .header("Idempotency-Key", &intent.key)
            .header("Prefer", "wait=20")
            .json(&intent.body())
            .send()
            .await?;
        let status = sent.status().as_u16();
        let bucket = sent.headers().get("idempotency-status");
        let bucket = bucket.map_or(Ok(""), |value| value.to_str())?.to_owned();
        let body = sent.bytes().await?.to_vec();
        Ok(Reply {
            status,
            bucket,
            body,
        })
    }

    /// What is at this path, and an error unless it is there.
    pub(crate) async fn get(&self, token: &str, path: &str) -> anyhow::Result<Vec<u8>> {
        let sent = self.open(token, path).await?;
        Ok(sent.bytes().await?.to_vec())
    }

    /// The same, as JSON.
    pub(crate) async fn json(&self, token: &str, path: &str) -> anyhow::Result<Value> {
        let body = self.get(token, path).await?;
        serde_json::from_slice(&body).with_context(|| path.to_owned())
    }

    /// The same, read by the caller.
    pub(crate) async fn open(&self, token: &str, path: &str) -> anyhow::Result<reqwest::Response> {
        let asked = self
            .http
            .get(format!("{}{path}", self.base))
            .bearer_auth(token);
        let sent = asked.send().await?;
        ensure!(sent.status() == 200, "{path}: {}", sent.status());
        Ok(sent)
    }
}

/// One student after the other, over HTTP.
pub(crate) struct OverHttp {
    wire: Wire,
    school: Arc<School>,
    which: Which,
}

impl OverHttp {
    /// So many of them.
    pub(crate) fn crowd(
        at_once: usize,
        wire: &Wire,
        school: &Arc<School>,
        which: Which,
    ) -> Vec<Self> {
        (0..at_once)
            .map(|_| Self {
                wire: wire.clone(),
                school: school.clone(),
                which,
            })
            .collect()
    }
}

impl Worker for OverHttp {
    async fn once(&mut self) -> anyhow::Result<()> {
        let intent = self.school.pick(self.which)?;
        let reply = self.wire.submit(&intent).await?;
        let expected = expected(self.which).header_value();
        ensure!(
            reply.status == 201 && reply.bucket == expected,
            "{}: {} {} instead of 201 {expected}",
            intent.key,
            reply.status,
            reply.bucket
        );
        Ok(())
    }
}

/// What an arrival has to be.
pub(crate) fn expected(which: Which) -> Bucket {
    match which {
        Which::New => Bucket::New,
        Which::Again(_) => Bucket::Reused,
    }
}
