//! The external provider, over HTTP: one call, and one question about it.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::wire::{client, describe};
use crate::{store::actions::CallAnswer, trace::traceparent};

/// What the status endpoint said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Happened,
    NotFound,
    Unclear,
}

impl Status {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Happened => "happened",
            Self::NotFound => "not_found",
            Self::Unclear => "unclear",
        }
    }
}

/// The provider of rewards.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    client: Client,
    base: SecretString,
    pub(crate) timeout: Duration,
}

impl Provider {
    /// Where it is, and how long it may take.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up.
    pub(crate) fn new(base: SecretString, timeout: Duration) -> Result<Self, reqwest::Error> {
        Ok(Self {
            client: client(timeout)?,
            base,
            timeout,
        })
    }

    /// Calls it once. Whatever is no clear answer may have happened.
    pub(crate) async fn call(&self, key: &str, body: &Value, trace_id: &str) -> CallAnswer {
        let url = format!("{}/redemptions", self.base.expose_secret());
        let sent = self
            .client
            .post(url)
            .header("Idempotency-Key", key)
            .header("traceparent", traceparent(trace_id))
            .json(body)
            .send()
            .await;
        match sent {
            Err(error) => CallAnswer::Unclear(describe(error)),
            Ok(answer) => classify(answer.status()),
        }
    }

    /// Asks whether a call happened.
    pub(crate) async fn ask(&self, key: &str, trace_id: &str) -> Status {
        let segment = utf8_percent_encode(key, NON_ALPHANUMERIC);
        let url = format!("{}/redemptions/{segment}", self.base.expose_secret());
        let sent = self
            .client
            .get(url)
            .header("traceparent", traceparent(trace_id))
            .send()
            .await;
        match sent.map(|answer| answer.status()) {
            Ok(StatusCode::OK) => Status::Happened,
            Ok(StatusCode::NOT_FOUND) => Status::NotFound,
            Ok(status) => {
                tracing::warn!(%status, "the provider's status endpoint gave no clear answer");
                Status::Unclear
            }
            Err(error) => {
                tracing::warn!(error = describe(error), "the provider cannot be asked");
                Status::Unclear
            }
        }
    }
}

/// The contract's table: 2xx done; 4xx refused for good, but for those that mean "not now"; everything else is not known.
fn classify(status: StatusCode) -> CallAnswer {
    let passing = [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::CONFLICT,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    if status.is_success() {
        CallAnswer::Done
    } else if status.is_client_error() && !passing.contains(&status) {
        CallAnswer::Refused(status.to_string())
    } else {
        CallAnswer::Unclear(status.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_answer_decides() {
        let of = |code: u16| classify(StatusCode::from_u16(code).unwrap());
        for code in [200, 201, 202, 204] {
            assert_eq!(of(code), CallAnswer::Done, "{code}");
        }
        for code in [400, 401, 403, 404, 410, 422] {
            assert!(matches!(of(code), CallAnswer::Refused(_)), "{code}");
        }
        for code in [301, 302, 408, 409, 429, 500, 502, 503, 504] {
            assert!(matches!(of(code), CallAnswer::Unclear(_)), "{code}");
        }
    }
}
