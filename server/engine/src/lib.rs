//! The idempotency engine: claim, execute, finish, and everything that is read back from its store.
//!
//! `store/` holds all SQL. Nothing here knows HTTP, cookies or pages. Only Postgres's clock decides about leases, stuckness
//! and expiry; this process only measures durations.
//!
//! [`Engine`] is the one way in: a cheap handle, without a trait in front of it.

mod actor;
mod answer;
mod classroom;
mod compensate;
mod config;
pub mod crash;
mod ends;
mod engine;
mod error;
mod flight;
mod front_lock;
mod outside;
mod people;
mod pipeline;
mod reading;
mod recorder;
mod records;
mod relay;
mod scanner;
mod store;
mod submit;
mod teaching;
pub mod trace;
mod verify;
pub mod watch;

pub use actor::{Actor, Origin, TraceId};
pub use answer::{Answer, Arrival};
pub use compensate::{BulkError, BulkTarget, Compensate, CompensateError, MAX_REASON, Requester};
pub use config::{EngineConfig, RemoteConfig, SecondPerson};
pub use engine::{Engine, Pools};
pub use error::{StoreError, SubmitError};
pub use front_lock::{FrontLockConfig, FrontLockOnFailure};
pub use people::{AccountPassword, AddAccountError, DemoError, NewAccount, TokenKind};
pub use relay::Replayed;
pub use store::MIGRATOR;
pub use store::actions::{
    Action, Call, CallAnswer, ClaimRef, Evidence, Outside, Policy, Probe, Question, REGISTRY,
    ReadError, ReadRequest, Registry, Verdict,
};
pub use teaching::Assigned;
