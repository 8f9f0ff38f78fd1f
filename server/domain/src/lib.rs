//! The rules of Yici without any I/O: the key grammar, the fingerprint, the states of a record, the phases of a client,
//! the words of the API. Browser and server compile this same crate, so they cannot disagree.
//!
//! It must not know databases, HTTP servers, clocks or random numbers.

pub mod action;
pub mod command;
pub mod compensation;
pub mod fingerprint;
pub mod key;
pub mod outcome;
pub mod phase;
pub mod problem;
pub mod role;
pub mod state;
pub mod symptom;
pub mod teaching;
pub mod view;

pub use action::ActionType;
pub use fingerprint::Fingerprint;
pub use key::IdempotencyKey;
pub use outcome::{Bucket, Defence, EndEvent};
pub use problem::ProblemCode;
pub use role::Role;
pub use state::RecordState;
