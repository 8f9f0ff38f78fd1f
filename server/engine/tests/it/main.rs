//! The engine's behaviour on a real Postgres, a database per test.

mod support;

mod submit;
