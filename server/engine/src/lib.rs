//! The idempotency engine: claim, execute, finish, and everything that is read back from its store.
//!
//! `store/` holds all SQL. Nothing here knows HTTP or pages.

mod actor;
mod stub;

pub use actor::{Actor, TraceId};
pub use stub::*;
