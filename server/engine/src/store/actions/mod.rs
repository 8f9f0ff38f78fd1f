//! The actions: each one file with its command, its policy, its effects and its evidence, and one line in [`REGISTRY`].
//!
//! They live below `store/` because effects and evidence are SQL.

use std::time::Duration;

use domain::{ActionType, compensation::Finding};
use futures::future::BoxFuture;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::StoreError;

mod points_redeem;
mod task_submit;

use points_redeem::PointsRedeem;
pub(crate) use task_submit::SubmissionRow;
use task_submit::TaskSubmit;

/// Every action that exists. A new one is a new file beside this and a line here.
pub const REGISTRY: Registry = Registry(&[&TaskSubmit, &PointsRedeem]);

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
        /// Where the business row can be read, when it is written already.
        location: Option<String>,
    },
    /// It could not be done now; nothing happened.
    Passing,
    /// Nobody knows yet whether the outside did it.
    NotKnown,
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
    /// The outside says that it happened; the business row is still to be written.
    Happened,
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
            Self::Present { .. } | Self::Happened => Finding::Present,
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
    ) -> BoxFuture<'a, Result<Vec<(i64, Verdict)>, StoreError>>;

    /// Looks for the effect of a record whose row is locked by the caller's transaction.
    ///
    /// INVARIANT: by a statement that begins after the lock is held; an older snapshot could miss a commit.
    fn find_evidence<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<Evidence, StoreError>>;

    /// Adds what a present effect is missing, when another writer left it out. Doing it again adds nothing.
    fn complete_effects<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Takes back what was prepared for an effect that did not happen, such as held points. Doing it again changes nothing.
    fn abandon_effects<'a>(
        &'a self,
        _connection: &'a mut PgConnection,
        _record_id: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The part of the effect that lies outside this database, if there is one.
    fn outside(&self) -> Option<&'static dyn Outside> {
        None
    }
}

/// What is to be sent outside.
#[derive(Debug, Clone)]
pub struct Call {
    /// By which the outside knows this record; the same for every call.
    pub key: String,
    /// The body.
    pub body: Value,
}

/// What the outside answered to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAnswer {
    /// It is done.
    Done,
    /// It is refused for good.
    Refused(String),
    /// A time-out, a cut, or an answer that tells nothing: it may have happened.
    Unclear(String),
    /// It was not sent, because that was no longer safe.
    NotSent,
}

/// What the outside is to be asked about.
#[derive(Debug, Clone)]
pub struct Question {
    /// By which the outside knows the record.
    pub key: String,
    /// Which call it is about.
    pub epoch: i64,
    /// The trace of the record.
    pub trace_id: String,
}

/// What the outside said when it was asked about a call.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The record.
    pub record_id: i64,
    /// Which call.
    pub epoch: i64,
    /// When it was asked, by the asker's monotonic clock: milliseconds since the process began.
    pub asked_ms: i64,
    /// When the answer was there, by the same clock.
    pub answered_ms: i64,
    /// `happened`, `not_found` or `unclear`.
    pub finding: &'static str,
}

/// The store of an effect outside: held before the call, marked, called, and its answer kept as evidence.
pub trait Outside: Send + Sync {
    /// Holds what the effect costs, in the transaction of the claim. Without a hold nothing is called.
    fn take_hold<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        claim: ClaimRef,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Writes down, guarded by the claim, that the outside is about to be called; `None` when it must not be.
    fn mark_call<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        claim: ClaimRef,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Option<Call>, StoreError>>;

    /// Keeps the answer to a call, also when the claim was taken over meanwhile.
    fn store_answer<'a>(
        &'a self,
        pool: &'a PgPool,
        claim: ClaimRef,
        answer: &'a CallAnswer,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Lets one asker of all instances ask what became of a call; `None` when there is nothing to ask or somebody asks.
    fn claim_question<'a>(
        &'a self,
        pool: &'a PgPool,
        record_id: i64,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Option<Question>, StoreError>>;

    /// Keeps what the outside said.
    fn store_probe<'a>(
        &'a self,
        pool: &'a PgPool,
        instance_id: i32,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Whether a text is the one spelling of an id; another spelling would give one intent several fingerprints.
fn is_id(text: &str) -> bool {
    text.parse::<i64>().is_ok_and(|id| id.to_string() == text)
}

/// An id out of a route.
fn parameter(parameters: &[(&str, &str)], name: &str) -> Result<String, ReadError> {
    parameters
        .iter()
        .find(|(found, id)| *found == name && is_id(id))
        .map(|(_, id)| (*id).to_owned())
        .ok_or(ReadError::NoSuchRoute)
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
