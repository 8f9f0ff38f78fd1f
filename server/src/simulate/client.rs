//! The API as a client sees it.

use std::time::Duration;

use anyhow::{Context, bail};
use domain::view::{ArrivalPage, Counters, PanelView};
use serde_json::{Value, json};

/// How long a client that is not in a hurry waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The server.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
}

/// One request for an intent.
#[derive(Debug, Clone)]
pub(super) struct Press {
    /// Below the API's root.
    pub(super) path: String,
    pub(super) key: String,
    pub(super) body: Value,
    /// After this the client hangs up.
    pub(super) patience: Option<Duration>,
}

/// The head of an answer, or that there was none.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Answer {
        status: u16,
        /// `Idempotency-Status`; empty when the request counted as no arrival.
        bucket: String,
    },
    Lost,
}

impl Client {
    pub(super) fn new(url: &str) -> anyhow::Result<Self> {
        Ok(Self {
            http: reqwest::Client::builder().timeout(PATIENCE).build()?,
            base: format!("{}/api/v1", url.trim_end_matches('/')),
        })
    }

    /// A token.
    pub(super) async fn sign_in(&self, name: &str, password: &str) -> anyhow::Result<String> {
        let body = json!({ "username": name, "password": password });
        let answer = self
            .http
            .post(format!("{}/session", self.base))
            .json(&body)
            .send()
            .await
            .context("the server cannot be reached")?;
        if !answer.status().is_success() {
            bail!("{name} cannot sign in: {}", answer.status());
        }
        let answer: Value = answer.json().await?;
        let token = answer["token"].as_str().context("no token in the answer")?;
        Ok(token.to_owned())
    }

    /// What is at this address; `None` when it did not come.
    pub(super) async fn get(&self, token: &str, path: &str) -> Option<Value> {
        let asked = self
            .http
            .get(format!("{}{path}", self.base))
            .bearer_auth(token);
        let answer = asked.send().await.ok()?;
        answer.error_for_status().ok()?.json().await.ok()
    }

    /// Sends an intent once, in a trace of its own, which is answered too.
    pub(super) async fn press(&self, token: &str, press: &Press) -> (String, Reply) {
        // Not by the seed: the same seed twice would find the arrivals of the run before.
        let trace = format!("{:032x}", rand::random::<u128>() | 1);
        let parent = format!("00-{trace}-{:016x}-01", rand::random::<u64>() | 1);
        let request = self
            .http
            .post(format!("{}{}", self.base, press.path))
            .bearer_auth(token)
            .header("Idempotency-Key", &press.key)
            .header("traceparent", parent)
            .json(&press.body)
            .send();
        let answer = match press.patience {
            // Dropping the request closes its connection.
            Some(patience) => tokio::time::timeout(patience, request).await.ok(),
            None => Some(request.await),
        };
        let reply = match answer {
            Some(Ok(answer)) => Reply::Answer {
                status: answer.status().as_u16(),
                bucket: answer
                    .headers()
                    .get("idempotency-status")
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default()
                    .to_owned(),
            },
            Some(Err(_)) | None => Reply::Lost,
        };
        (trace, reply)
    }

    /// The panel's counters of all time.
    pub(super) async fn totals(&self, ops: &str) -> anyhow::Result<Counters> {
        Ok(self.panel(ops).await?.totals)
    }

    pub(super) async fn panel(&self, ops: &str) -> anyhow::Result<PanelView> {
        let panel = self
            .get(ops, "/panel")
            .await
            .context("the panel cannot be read")?;
        serde_json::from_value(panel).context("the panel is not as described")
    }

    /// A page of the arrivals of the last hour, newest first.
    pub(super) async fn arrivals(
        &self,
        ops: &str,
        after: Option<&str>,
    ) -> anyhow::Result<ArrivalPage> {
        let mut path = "/arrivals?window=1h&limit=200".to_owned();
        if let Some(after) = after {
            let after =
                percent_encoding::utf8_percent_encode(after, percent_encoding::NON_ALPHANUMERIC);
            path += &format!("&after={after}");
        }
        let page = self
            .get(ops, &path)
            .await
            .context("the arrivals cannot be read")?;
        serde_json::from_value(page).context("the arrivals are not as described")
    }
}
