//! The actions: each one file with its command, its policy, its effects and its evidence, and one line in [`REGISTRY`].
//!
//! They live below `store/` because effects and evidence are SQL.

use std::time::Duration;

use domain::{ActionType, compensation::Finding};
use futures::future::BoxFuture;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::StoreError;

mod task_submit;

pub(crate) use task_submit::SubmissionRow;
use task_submit::TaskSubmit;

/// Every action that exists. A new one is a new file beside this and a line here.
pub const REGISTRY: Registry = Registry(&[&TaskSubmit]);

/// How records of an action are treated.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Whether all effects are rows of this database. Then verification is always decisive, and a claim need not be
    /// flushed before the finish is.
    pub local_effects_only: bool,
    /// For how long a claim is presumed alive; `None` takes the setting.
    pub lease: Option<Duration>,
    /// Whether a second admin has to approve what the first one wants to do about a record.
    pub second_person: bool,
}

/// A claim as its effects are asked for: the guard checks all of it.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRef {
    /// The record.
    pub record_id: i64,
    /// The epoch under which it was claimed.
    pub epoch: i64,
    /// The claim's own. A Postgres that forgot an unflushed claim in a crash may issue its number again, under the same first
    /// epoch, to another key; only the token tells them apart.
    pub token: Uuid,
}

/// What the effects of one claim came to.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// The effect happened, by this claim.
    Done {
        /// The HTTP status of the answer.
        status: u16,
        /// The business row as JSON.
        body: String,
        /// Where the business row can be read.
        location: String,
    },
    /// Another key had written the same business row with the same content.
    ConflictSame {
        /// The business row as JSON.
        body: String,
        /// Where the business row can be read.
        location: String,
    },
    /// Another key had written the same business row with other content.
    ConflictOther {
        /// The problem's code.
        code: domain::ProblemCode,
        /// Where the business row can be read.
        location: String,
    },
    /// A business rule says no.
    Refused {
        /// The problem's code.
        code: domain::ProblemCode,
    },
}

/// What the business tables, or the outside, tell about a record's effect: the row of the same intent, whichever key wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// It happened, with the same content.
    Present {
        /// Whether this record's own claim wrote it.
        by_this_record: bool,
        /// The business row as JSON.
        body: String,
        /// Where the business row can be read.
        location: String,
    },
    /// Another content stands in its place.
    Other {
        /// Where the business row can be read.
        location: String,
    },
    /// It did not happen, and cannot happen any more under an epoch that is fenced.
    Absent,
    /// Nobody can tell yet.
    NotKnown,
}

impl Evidence {
    /// What it comes to.
    pub const fn finding(&self) -> Finding {
        match self {
            Self::Present { .. } => Finding::Present,
            Self::Other { .. } => Finding::Other,
            Self::Absent => Finding::Absent,
            Self::NotKnown => Finding::NotKnown,
        }
    }
}

/// A posted request, taken apart.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Who asks.
    pub client_id: String,
    /// The checked command, in the form that is fingerprinted and stored.
    pub command: Value,
}

/// Why a posted request cannot be an arrival.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A parameter of the route is no id.
    #[error("there is nothing at this address")]
    NoSuchRoute,
    /// The body is not as described.
    #[error("{0}")]
    Body(String),
}

/// A kind of business operation that must happen once.
pub trait Action: Send + Sync {
    /// Its name.
    fn action_type(&self) -> ActionType;

    /// How its records are treated.
    fn policy(&self) -> Policy;

    /// Where it is posted to, below the API's root, with named parameters.
    fn route(&self) -> &'static str;

    /// Reads a posted request: the route's parameters and the body.
    ///
    /// # Errors
    /// [`ReadError`] when nothing can be at this route, or the body is not as described.
    fn read(&self, parameters: &[(&str, &str)], body: &[u8]) -> Result<ReadRequest, ReadError>;

    /// Checks a command and brings it into the form that is fingerprinted and stored.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the command.
    fn check(&self, command: Value) -> Result<Value, String>;

    /// Runs the effects of a set of claims inside the caller's transaction and says what each came to.
    ///
    /// INVARIANT: every effect selects from the guard (state PROCESSING, the same epoch and token, row locked in the order of ids),
    /// so a claim that was taken over has no effect and no verdict. One item never aborts the others.
    fn run_effects<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        claims: &'a [ClaimRef],
    ) -> BoxFuture<'a, Result<Vec<(i64, Verdict)>, sqlx::Error>>;

    /// Looks for the effect of a record whose row is locked by the caller's transaction.
    ///
    /// INVARIANT: by a statement that begins after the lock is held; an older snapshot could miss a commit.
    fn find_evidence<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<Evidence, sqlx::Error>>;

    /// Adds what a present effect is missing, when another writer left it out. Doing it again adds nothing.
    fn complete_effects<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<(), sqlx::Error>>;
}

/// The list of actions.
#[derive(Clone, Copy)]
pub struct Registry(&'static [&'static dyn Action]);

impl Registry {
    /// The action of this name.
    pub fn find(&self, name: &str) -> Option<&'static dyn Action> {
        self.iter()
            .find(|action| action.action_type().as_str() == name)
    }

    /// The action of a stored record.
    pub(crate) fn of_stored(&self, name: &str) -> Result<&'static dyn Action, StoreError> {
        self.find(name)
            .ok_or_else(|| StoreError::Corrupt(format!("action {name:?}")))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &'static dyn Action> {
        self.0.iter().copied()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|action| action.action_type()))
            .finish()
    }
}
