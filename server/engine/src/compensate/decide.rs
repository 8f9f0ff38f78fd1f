//! What waits for a second person: approved or rejected by another admin than the one who asked.

use domain::{
    ProblemCode,
    compensation::{CompensationStatus, Decision},
    view::{CompensationAnswer, EvidenceView},
};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    Step,
    ask::{By, CompensateError, Requester, check_reason},
    judge,
};
use crate::{
    Engine, StoreError,
    store::{
        compensation::{
            NewEvent, Stored, find_compensation, insert_event, lock_compensation,
            update_compensation_if_awaiting,
        },
        recovery::lock_record,
        transaction::{begin_finish, commit},
    },
    submit::finish::FinishJob,
};

impl Engine {
    /// Approves or rejects what another admin asked for. Approval checks state, version and evidence again.
    ///
    /// # Errors
    /// [`CompensateError`]; nothing was changed then.
    pub async fn decide(
        &self,
        requester: &Requester,
        compensation_id: &str,
        decision: Decision,
        reason: &str,
    ) -> Result<CompensationAnswer, CompensateError> {
        let by = By::new(requester)?;
        check_reason(reason)?;
        let id = compensation_id
            .parse()
            .map_err(|_| CompensateError::NotFound)?;
        let (engine, reason) = (self.clone(), reason.to_owned());
        self.detach_compensation(
            async move { engine.decide_once(&by, id, decision, &reason).await },
        )
        .await
    }

    async fn decide_once(
        &self,
        by: &By,
        id: i64,
        decision: Decision,
        reason: &str,
    ) -> Result<CompensationAnswer, CompensateError> {
        if decision == Decision::Approve
            && let Some(stored) = find_compensation(&self.0.pools.work, id).await?
        {
            self.refresh_evidence(stored.record_id).await?;
        }
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        let stored = lock_compensation(&mut transaction, id).await?;
        let stored = stored.ok_or(CompensateError::NotFound)?;
        let status = stored.view.status;
        if status != CompensationStatus::AwaitingApproval || stored.is_overdue {
            let wanted = match decision {
                Decision::Approve => CompensationStatus::Applied,
                Decision::Reject => CompensationStatus::Rejected,
            };
            // Two clicks of one person are one decision.
            if status == wanted && by.actor_id.is_some() && stored.decided_by == by.actor_id {
                // What is answered is read on a connection of its own; this one is not held meanwhile.
                transaction.rollback().await?;
                return self.compensation_answer(id).await;
            }
            return Err(CompensateError::AlreadyDecided(if stored.is_overdue {
                CompensationStatus::Expired
            } else {
                status
            }));
        }
        let decider = match by.actor_id {
            Some(decider) if stored.actor_id != Some(decider) => decider,
            _ => {
                let detail = json!({ "compensation_id": id.to_string(), "outcome": "refused",
                    "refusal": ProblemCode::SecondPersonNeeded, "reason": reason });
                self.insert_audit(
                    &mut transaction,
                    by,
                    decision.as_ref(),
                    stored.record_id,
                    detail,
                )
                .await?;
                commit(transaction).await?;
                return Err(CompensateError::SecondPersonNeeded);
            }
        };
        let job = match decision {
            Decision::Reject => {
                self.reject(&mut transaction, by, &stored, decider, reason)
                    .await?;
                None
            }
            Decision::Approve => {
                self.approve(&mut transaction, by, &stored, decider, reason)
                    .await?
            }
        };
        commit(transaction).await?;
        self.run_job(job).await;
        self.compensation_answer(id).await
    }

    async fn reject(
        &self,
        connection: &mut PgConnection,
        by: &By,
        stored: &Stored,
        decider: i64,
        reason: &str,
    ) -> Result<(), CompensateError> {
        let status = CompensationStatus::Rejected;
        end_awaiting(connection, stored, status, None, None, decider).await?;
        let event = NewEvent {
            compensation_id: Some(stored.id),
            record_id: stored.record_id,
            event: "rejected",
            action: stored.view.action,
            actor_id: by.actor_id,
            reason,
            evidence: None,
        };
        insert_event(connection, &event).await?;
        let detail = json!({ "compensation_id": stored.id.to_string(), "outcome": status,
            "requested": stored.view.action, "reason": reason });
        Ok(self
            .insert_audit(connection, by, "reject", stored.record_id, detail)
            .await?)
    }

    async fn approve(
        &self,
        connection: &mut PgConnection,
        by: &By,
        stored: &Stored,
        decider: i64,
        reason: &str,
    ) -> Result<Option<FinishJob>, CompensateError> {
        let locked = lock_record(connection, stored.record_id).await?;
        let locked = locked.ok_or(CompensateError::NotFound)?;
        let view = &stored.view;
        let judged = judge::judge(connection, &locked, view.action, view.expected_version).await?;
        let approved = NewEvent {
            compensation_id: Some(stored.id),
            record_id: stored.record_id,
            event: "approved",
            action: view.action,
            actor_id: by.actor_id,
            reason,
            evidence: judged.view.as_ref(),
        };
        insert_event(connection, &approved).await?;
        let (status, event) = match judged.refusal {
            Some(_) => (CompensationStatus::Refused, "refused"),
            None => (CompensationStatus::Applied, "applied"),
        };
        let refusal = judged.refusal.map(Into::into);
        end_awaiting(
            connection,
            stored,
            status,
            judged.view.as_ref(),
            refusal,
            decider,
        )
        .await?;
        let step = Step {
            id: stored.id,
            action: view.action,
            event,
            reason,
        };
        Ok(self
            .end_step(connection, by, &locked, judged, step, status)
            .await?)
    }
}

async fn end_awaiting(
    connection: &mut PgConnection,
    stored: &Stored,
    status: CompensationStatus,
    evidence: Option<&EvidenceView>,
    refusal: Option<&str>,
    decider: i64,
) -> Result<(), StoreError> {
    let ended =
        update_compensation_if_awaiting(connection, stored.id, status, evidence, refusal, decider)
            .await?;
    // INVARIANT: it was seen waiting behind its lock.
    ended.then_some(()).ok_or_else(|| {
        StoreError::Corrupt(format!("compensation {} moved under its lock", stored.id))
    })
}
