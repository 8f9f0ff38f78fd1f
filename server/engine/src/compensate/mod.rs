//! What people do about records that did not end: one engine function for the API, the pages, the command line and bulks.
//!
//! In one transaction: the record's lock, its state and version checked, the evidence read anew, the transition, the log, the
//! audit. A late owner cannot win over a compensation, nor the other way round: both need the record's lock and its epoch.

use std::future::Future;

use domain::{
    ProblemCode, RecordState,
    compensation::{CompensationAction, CompensationStatus},
    view::{AuditFilter, AuditPage, CompensationAnswer, CompensationPage, RecordSummary},
};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tracing::Instrument;

use crate::{
    Engine, SecondPerson, StoreError,
    reading::{cursor, page},
    store::{
        actions::REGISTRY,
        audit,
        compensation::{
            NewCompensation, NewEvent, Stored, find_by_key, find_compensation, insert_compensation,
            insert_event, list_compensations,
        },
        record_list::find_summary,
        recovery::{Locked, lock_record},
        transaction::{begin_finish, commit},
    },
    submit::finish::{self, FinishJob},
};

mod ask;
mod bulk;
mod decide;
mod judge;

use ask::{Ask, check, fingerprint};
pub(crate) use ask::{By, check_reason};
pub use ask::{Compensate, CompensateError, MAX_REASON, Requester};
pub use bulk::{BulkError, BulkTarget};
use judge::Judged;
pub(crate) use judge::evidence_view;

/// A compensation that is written and not committed yet.
pub(super) struct Written {
    pub(super) id: i64,
    pub(super) status: CompensationStatus,
    pub(super) refusal: Option<ProblemCode>,
    /// What is to be executed after the commit.
    pub(super) job: Option<FinishJob>,
}

/// How an attempt to write a compensation came out.
pub(super) enum Attempt {
    Written(Written),
    /// There is no such record.
    Missing,
    /// Its key has a compensation already: two clicks at the same moment.
    Repeated,
    /// It needs a second person, and nobody knows who the first one is.
    Nameless,
}

impl Engine {
    /// Does what a person wants done about a record, if state, version and evidence permit it; or asks a second person, where
    /// the action needs one. A refusal is an answer too, and is kept.
    ///
    /// # Errors
    /// [`CompensateError`]; nothing was changed then.
    pub async fn compensate(
        &self,
        requester: &Requester,
        compensate: Compensate,
    ) -> Result<CompensationAnswer, CompensateError> {
        let by = By::new(requester)?;
        let ask = check(compensate)?;
        let engine = self.clone();
        self.detach_compensation(async move { engine.compensate_once(&by, &ask).await })
            .await
    }

    /// Compensations with this status, or all of them; `None` when the cursor is none of ours.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_compensations(
        &self,
        status: Option<CompensationStatus>,
        after: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Option<CompensationPage>, StoreError> {
        let Some((after, limit)) = cursor(after, limit) else {
            return Ok(None);
        };
        let found = list_compensations(&self.0.pools.reading, status, after, limit + 1).await?;
        let (compensations, next) = page(found, limit, |view| view.id.clone());
        Ok(Some(CompensationPage {
            compensations,
            next,
        }))
    }

    /// A page of the audit, newest first; `None` when the cursor is none of ours.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_audit(&self, filter: &AuditFilter) -> Result<Option<AuditPage>, StoreError> {
        let Some((after, limit)) = cursor(filter.after.as_deref(), filter.limit) else {
            return Ok(None);
        };
        let found = audit::list_entries(&self.0.pools.reading, filter, after, limit + 1).await?;
        let (entries, next) = page(found, limit, |entry| entry.id.clone());
        Ok(Some(AuditPage { entries, next }))
    }

    /// Runs in a task of its own: a caller who goes away in the middle of a commit leaves nothing half done.
    async fn detach_compensation<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, CompensateError>> + Send + 'static,
    ) -> Result<T, CompensateError> {
        if self.0.stopping.is_cancelled() {
            return Err(CompensateError::Stopping);
        }
        let task = work.instrument(tracing::Span::current());
        let done = self.0.executions.spawn(task).await;
        done.map_err(|_| CompensateError::Stopping)?
    }

    async fn compensate_once(
        &self,
        by: &By,
        ask: &Ask,
    ) -> Result<CompensationAnswer, CompensateError> {
        if let Some(key) = &ask.key
            && let Some(stored) = find_by_key(&self.0.pools.work, by.actor_id, key).await?
        {
            return self.replay(stored, ask).await;
        }
        self.refresh_evidence(ask.record_id).await?;
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        match self.write_compensation(&mut transaction, by, ask).await? {
            Attempt::Missing => Err(CompensateError::NotFound),
            Attempt::Nameless => Err(CompensateError::Nameless),
            Attempt::Repeated => {
                transaction.rollback().await?;
                let key = ask.key.as_deref().unwrap_or_default();
                let stored = find_by_key(&self.0.pools.work, by.actor_id, key).await?;
                self.replay(stored.ok_or(CompensateError::NotFound)?, ask)
                    .await
            }
            Attempt::Written(written) => {
                crate::crash::point("inside_compensation");
                commit(transaction).await?;
                crate::crash::point("after_compensation");
                self.run_job(written.job).await;
                self.compensation_answer(written.id).await
            }
        }
    }

    /// Judges one compensation, does it if it may be done, and writes it with its log and audit, all in the caller's transaction.
    pub(super) async fn write_compensation(
        &self,
        connection: &mut PgConnection,
        by: &By,
        ask: &Ask,
    ) -> Result<Attempt, StoreError> {
        let Some(locked) = lock_record(connection, ask.record_id).await? else {
            return Ok(Attempt::Missing);
        };
        let expected_version = ask.expected_version.unwrap_or(locked.version);
        let judged = judge::judge(connection, &locked, ask.action, expected_version).await?;
        let waits = self.needs_second_person(&locked, ask.action)?;
        if waits && by.actor_id.is_none() {
            return Ok(Attempt::Nameless);
        }
        let (status, event) = match (judged.refusal, ask.action) {
            (Some(_), _) => (CompensationStatus::Refused, "refused"),
            (None, CompensationAction::Verify) => (CompensationStatus::Proposed, "proposed"),
            (None, _) if waits => (CompensationStatus::AwaitingApproval, "requested"),
            (None, _) => (CompensationStatus::Applied, "applied"),
        };
        let new = NewCompensation {
            record_id: locked.id,
            action: ask.action,
            status,
            reason: &ask.reason,
            expected_version,
            evidence: judged.view.as_ref(),
            refusal: judged.refusal.map(Into::into),
            actor_id: by.actor_id,
            key: ask.key.as_deref(),
            fingerprint: ask.fingerprint.as_bytes(),
            origin: &by.origin,
            bulk_id: ask.bulk_id,
            valid: (status == CompensationStatus::AwaitingApproval)
                .then_some(self.0.config.approval_valid),
        };
        let Some(id) = insert_compensation(connection, &new).await? else {
            return Ok(Attempt::Repeated);
        };
        let refusal = judged.refusal;
        let step = Step {
            id,
            action: ask.action,
            event,
            reason: &ask.reason,
        };
        let job = self
            .end_step(connection, by, &locked, judged, step, status)
            .await?;
        Ok(Attempt::Written(Written {
            id,
            status,
            refusal,
            job,
        }))
    }

    /// Applies what is to be applied, and writes log and audit.
    async fn end_step(
        &self,
        connection: &mut PgConnection,
        by: &By,
        locked: &Locked,
        judged: Judged,
        step: Step<'_>,
        status: CompensationStatus,
    ) -> Result<Option<FinishJob>, StoreError> {
        let mut after =
            json!({ "state": locked.state, "version": locked.version, "epoch": locked.epoch });
        let before = after.clone();
        let (view, refusal) = (judged.view.clone(), judged.refusal);
        let mut job = None;
        if status == CompensationStatus::Applied {
            let applied = self.apply(connection, locked, judged, step.action).await?;
            after = json!({ "state": applied.state, "version": applied.version, "epoch": applied.epoch });
            job = applied.job;
        }
        let event = NewEvent {
            compensation_id: Some(step.id),
            record_id: locked.id,
            event: step.event,
            action: step.action,
            actor_id: by.actor_id,
            reason: step.reason,
            evidence: view.as_ref(),
        };
        insert_event(connection, &event).await?;
        let detail = json!({
            "compensation_id": step.id.to_string(),
            "outcome": status,
            "refusal": refusal,
            "reason": step.reason,
            "before": before,
            "after": after,
            "evidence": view,
        });
        self.insert_audit(connection, by, step.action.as_ref(), locked.id, detail)
            .await?;
        Ok(job)
    }

    async fn insert_audit(
        &self,
        connection: &mut PgConnection,
        by: &By,
        what: &str,
        record_id: i64,
        mut detail: Value,
    ) -> Result<(), StoreError> {
        if let Some(members) = detail.as_object_mut() {
            members.insert("from".into(), by.origin.as_str().into());
            members.insert("trace_id".into(), by.trace_id.as_str().into());
        }
        let (action, object) = (
            format!("compensation.{what}"),
            format!("record/{record_id}"),
        );
        Ok(audit::insert_entry(connection, by.actor_id, &action, &object, &detail).await?)
    }

    fn needs_second_person(
        &self,
        locked: &Locked,
        action: CompensationAction,
    ) -> Result<bool, StoreError> {
        let policy = REGISTRY.of_stored(&locked.action_type)?.policy();
        let always = self.0.config.second_person == SecondPerson::Always;
        Ok(action != CompensationAction::Verify && (policy.second_person || always))
    }

    /// Asks the outside anew before a record is judged, outside any transaction.
    pub(super) async fn refresh_evidence(&self, record_id: i64) -> Result<(), StoreError> {
        // Actions with local effects have nothing to ask for.
        for outside in REGISTRY.iter().filter_map(|action| action.outside()) {
            self.ask_outside(outside, record_id).await?;
        }
        Ok(())
    }

    /// Executes what a compensation claimed. When this process ends first, the lease ends and the scanner goes on.
    pub(super) async fn run_job(&self, job: Option<FinishJob>) {
        if let Some(job) = job {
            // Whatever becomes of it is in the record, and that is what is answered.
            finish::execute(self, job).await;
        }
    }

    async fn replay(
        &self,
        stored: Stored,
        ask: &Ask,
    ) -> Result<CompensationAnswer, CompensateError> {
        if stored.fingerprint != ask.fingerprint.as_bytes() {
            return Err(CompensateError::KeyReused);
        }
        self.compensation_answer(stored.id).await
    }

    async fn compensation_answer(&self, id: i64) -> Result<CompensationAnswer, CompensateError> {
        let pool = &self.0.pools.work;
        let stored = find_compensation(pool, id).await?;
        let stored = stored.ok_or(CompensateError::NotFound)?;
        Ok(CompensationAnswer {
            record: self.summary(stored.record_id).await?,
            compensation: stored.view,
        })
    }

    async fn summary(&self, record_id: i64) -> Result<Option<RecordSummary>, StoreError> {
        find_summary(&self.0.pools.work, record_id, self.0.config.stuck_after).await
    }
}

/// What one step writes into log and audit.
struct Step<'a> {
    id: i64,
    action: CompensationAction,
    event: &'static str,
    reason: &'a str,
}

/// Where a compensation left its record.
struct Applied {
    state: RecordState,
    version: i64,
    epoch: i64,
    job: Option<FinishJob>,
}
