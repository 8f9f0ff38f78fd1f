//! What every request to the outside has in common.

use std::time::Duration;

use reqwest::{Client, redirect::Policy};

/// A client that sends each request once: one that follows a redirect or repeats by itself could have an effect twice.
///
/// # Errors
/// When it cannot be set up.
pub(super) fn client(timeout: Duration) -> Result<Client, reqwest::Error> {
    Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .timeout(timeout)
        .build()
}

/// The chain of an error without the address, which may hold a secret.
pub(super) fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
