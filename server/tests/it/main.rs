//! The server's integration tests, one binary.

#![expect(
    clippy::unwrap_used,
    reason = "clippy's exception for tests does not reach the helpers of an integration test"
)]

mod child;
mod compensations;
mod crash;
mod front_lock;
mod graceful;
mod import;
mod metrics;
mod observability;
mod openapi;
mod private_postgres;
mod process;
mod redemptions;
mod relay;
mod roles;
mod sessions;
mod simulate;
mod submissions;
mod support;
mod teaching;
mod telemetry;
