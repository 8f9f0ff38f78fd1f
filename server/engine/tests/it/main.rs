//! The engine's behaviour on a real Postgres, a database per test.

#[expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod support;

mod submit;
