//! What is asked for, checked before anything is looked at.

use domain::{
    Fingerprint, IdempotencyKey, Role,
    compensation::{CompensationAction, CompensationStatus},
};

use crate::{Actor, StoreError};

/// The longest reason, in characters.
pub const MAX_REASON: usize = 1000;

/// Who asks for a compensation, and from where.
#[derive(Debug, Clone)]
pub struct Requester {
    /// The account; `None` for the command line without a name.
    pub actor: Option<Actor>,
    /// The peer's address, or which command line.
    pub origin: String,
    /// The trace of the request.
    pub trace_id: String,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Compensate {
    /// The record's id.
    pub record_id: String,
    /// What is to be done.
    pub action: CompensationAction,
    /// Why.
    pub reason: String,
    /// The version that was looked at; `None` takes whatever the record has.
    pub expected_version: Option<i64>,
    /// Names this one intent: two clicks are one.
    pub key: IdempotencyKey,
}

/// Why a compensation or a decision was not taken up. A refusal by state, version or evidence is none of these: it is an answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CompensateError {
    /// See [`StoreError`].
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Only admins act.
    #[error("this needs an admin")]
    Forbidden,
    /// There is no such record, or no such compensation.
    #[error("there is nothing of this id")]
    NotFound,
    /// The key was used for something else.
    #[error("the key was used for another compensation")]
    KeyReused,
    /// No reason, or one that cannot be stored.
    #[error("the reason must have 1 to {MAX_REASON} characters and no NUL")]
    InvalidReason,
    /// The one who asked, or nobody, wants to decide.
    #[error("another admin has to decide")]
    SecondPersonNeeded,
    /// It needs a second person, and nobody knows who the first one is.
    #[error("this needs a second admin, so the first one has to be named")]
    Nameless,
    /// It does not wait for a decision any more.
    #[error("it is {0} already")]
    AlreadyDecided(CompensationStatus),
    /// The process is stopping and takes no more work.
    #[error("the process is stopping")]
    Stopping,
}

impl From<sqlx::Error> for CompensateError {
    fn from(error: sqlx::Error) -> Self {
        StoreError::from(error).into()
    }
}

/// Who asks, as the store needs it.
#[derive(Debug, Clone)]
pub(crate) struct By {
    pub(crate) actor_id: Option<i64>,
    pub(crate) origin: String,
    pub(crate) trace_id: String,
}

impl By {
    pub(crate) fn new(requester: &Requester) -> Result<Self, CompensateError> {
        let is_admin = |actor: &Actor| actor.role == Role::Admin;
        if !requester.actor.as_ref().is_none_or(is_admin) {
            return Err(CompensateError::Forbidden);
        }
        Ok(Self {
            actor_id: requester.actor.as_ref().map(|actor| actor.id),
            origin: requester.origin.clone(),
            trace_id: requester.trace_id.clone(),
        })
    }
}

/// One compensation, checked.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) record_id: i64,
    pub(crate) action: CompensationAction,
    pub(crate) reason: String,
    pub(crate) expected_version: Option<i64>,
    pub(crate) key: Option<String>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) bulk_id: Option<i64>,
}

pub(super) fn check(compensate: Compensate) -> Result<Ask, CompensateError> {
    check_reason(&compensate.reason)?;
    let record_id = compensate
        .record_id
        .parse()
        .map_err(|_| CompensateError::NotFound)?;
    let fingerprint = fingerprint(&(
        record_id,
        compensate.action,
        &compensate.reason,
        compensate.expected_version,
    ))?;
    Ok(Ask {
        record_id,
        action: compensate.action,
        expected_version: compensate.expected_version,
        key: Some(compensate.key.as_str().to_owned()),
        fingerprint,
        reason: compensate.reason,
        bulk_id: None,
    })
}

pub(crate) fn check_reason(reason: &str) -> Result<(), CompensateError> {
    let length = reason.chars().count();
    let is_valid = !reason.trim().is_empty() && length <= MAX_REASON && !reason.contains('\0');
    is_valid.then_some(()).ok_or(CompensateError::InvalidReason)
}

pub(super) fn fingerprint(value: &impl serde::Serialize) -> Result<Fingerprint, StoreError> {
    Fingerprint::of_canonical(value).map_err(|error| StoreError::Corrupt(error.to_string()))
}
