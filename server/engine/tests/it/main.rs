//! The engine's behaviour on a real Postgres, a database per test.

#![expect(
    clippy::unwrap_used,
    reason = "clippy's exception for tests does not reach the helpers of an integration test"
)]

mod bulk;
mod compensate;
mod defences;
mod ends;
mod front_lock;
mod interleavings;
mod lost_connections;
mod panel;
mod recovery;
mod redis_server;
mod retention;
mod rules;
mod scanner;
mod scenarios;
mod sets;
mod statements;
mod submit;
mod support;
mod watch;
mod wire;
