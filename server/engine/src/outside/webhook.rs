//! The webhook that messages are delivered to.

use std::time::Duration;

use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::wire::{client, describe};
use crate::trace::traceparent;

/// Where messages go.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    client: Client,
    url: SecretString,
    pub(crate) timeout: Duration,
}

impl Webhook {
    /// Where it is, and how long it may take.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub(crate) fn new(url: SecretString, timeout: Duration) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: client(timeout)?,
            url,
            timeout,
        })
    }

    /// Delivers one message; anything but 2xx is a failure.
    pub(crate) async fn deliver(
        &self,
        key: &str,
        body: &Value,
        trace_id: &str,
    ) -> Result<(), String> {
        let sent = self
            .client
            .post(self.url.expose_secret())
            .header("Idempotency-Key", key)
            .header("traceparent", traceparent(trace_id))
            .json(body)
            .send()
            .await;
        match sent {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(answer.status().to_string()),
            Err(error) => Err(describe(error)),
        }
    }
}
