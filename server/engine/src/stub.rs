//! Signatures only, so that the pages can be built against them; replaced by the real modules.
use std::time::Duration;

use domain::{Bucket, IdempotencyKey, view::*};

use crate::Actor;

/// The store could not answer.
#[derive(Debug, thiserror::Error)]
#[error("store")]
pub struct StoreError;

/// A cheap handle.
#[derive(Debug, Clone)]
pub struct Engine;

/// The answer to one arrival.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The arrival's bucket.
    pub bucket: Bucket,
    /// HTTP status.
    pub status: u16,
    /// JSON: the submission, a problem, or the request's state.
    pub body: String,
    /// `Location`.
    pub location: Option<String>,
    /// `Retry-After`, seconds.
    pub retry_after: Option<u32>,
    /// Whether it is the stored answer of an earlier execution.
    pub replayed: bool,
}

/// One arrival for an action.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// The registered action, e.g. `domain::action::TASK_SUBMIT`.
    pub action: domain::ActionType,
    /// The key.
    pub key: IdempotencyKey,
    /// The command: route parameters and body without `client_id`.
    pub command: serde_json::Value,
    /// Who asks.
    pub client_id: String,
    /// The trace.
    pub trace_id: String,
    /// `Prefer: wait`.
    pub wait: Duration,
}

#[allow(clippy::unused_async, missing_docs)]
impl Engine {
    pub async fn submit(&self, _actor: &Actor, _arrival: Arrival) -> Result<Answer, StoreError> {
        Err(StoreError)
    }
    pub async fn list_tasks(&self, _actor: &Actor) -> Result<Vec<TaskView>, StoreError> {
        Err(StoreError)
    }
    pub async fn find_task(
        &self,
        _actor: &Actor,
        _task_id: &str,
    ) -> Result<Option<TaskView>, StoreError> {
        Err(StoreError)
    }
    pub async fn find_submission(
        &self,
        _actor: &Actor,
        _id: &str,
    ) -> Result<Option<SubmissionView>, StoreError> {
        Err(StoreError)
    }
    pub async fn find_request(
        &self,
        _actor: &Actor,
        _action: &str,
        _key: &IdempotencyKey,
    ) -> Result<Option<RequestView>, StoreError> {
        Err(StoreError)
    }
    pub async fn points_balance(&self, _actor: &Actor) -> Result<i64, StoreError> {
        Err(StoreError)
    }
    pub async fn list_classes(&self, _actor: &Actor) -> Result<Vec<ClassView>, StoreError> {
        Err(StoreError)
    }
    pub async fn class_progress(
        &self,
        _actor: &Actor,
        _class_id: &str,
    ) -> Result<Option<ClassProgress>, StoreError> {
        Err(StoreError)
    }
    pub async fn list_children(&self, _actor: &Actor) -> Result<Vec<StudentView>, StoreError> {
        Err(StoreError)
    }
    pub async fn child_report(
        &self,
        _actor: &Actor,
        _child_id: &str,
    ) -> Result<Option<ChildReport>, StoreError> {
        Err(StoreError)
    }
    pub async fn panel(&self, _window: Window) -> Result<PanelView, StoreError> {
        Err(StoreError)
    }
    pub async fn list_records(&self, _filter: &RecordFilter) -> Result<RecordPage, StoreError> {
        Err(StoreError)
    }
}
