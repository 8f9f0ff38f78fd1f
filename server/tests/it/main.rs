//! The server's integration tests, one binary.

#![expect(
    clippy::unwrap_used,
    reason = "clippy's exception for tests does not reach the helpers of an integration test"
)]

mod private_postgres;
mod roles;
mod sessions;
mod submissions;
#[expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod support;
