//! What state, version and evidence permit, and the transition itself.

use domain::{
    Bucket, Defence, ProblemCode, RecordState, compensation::CompensationAction,
    state::RecordEvent, view::EvidenceView,
};
use sqlx::{PgConnection, types::time::OffsetDateTime};
use uuid::Uuid;

use super::Applied;
use crate::{
    Engine, StoreError,
    store::{
        actions::{ClaimRef, Evidence, REGISTRY},
        record::Executor,
        recovery::{Locked, Moved, reclaim},
        rfc3339,
    },
    submit::{answers::refusal, finish::FinishJob},
    verify::{completed, conclude, fenced, step},
};

/// What was found, and whether the action may be done.
pub(super) struct Judged {
    /// `None` when it was refused before anything was looked at.
    pub(super) evidence: Option<Evidence>,
    pub(super) view: Option<EvidenceView>,
    pub(super) refusal: Option<ProblemCode>,
}

/// Checks in the contract's order: finished, moved on or alive, forbidden by the evidence. The record's lock is held, so what is
/// found stays true until the transaction ends.
pub(super) async fn judge(
    connection: &mut PgConnection,
    locked: &Locked,
    action: CompensationAction,
    expected_version: i64,
) -> Result<Judged, StoreError> {
    let refused = |code| Judged {
        evidence: None,
        view: None,
        refusal: Some(code),
    };
    if locked.state.is_terminal() {
        return Ok(refused(ProblemCode::AlreadyTerminal));
    }
    if locked.version != expected_version || locked.lease_is_live {
        return Ok(refused(ProblemCode::Stale));
    }
    let evidence = REGISTRY
        .of_stored(&locked.action_type)?
        .find_evidence(connection, locked.id)
        .await?;
    let permitted = action.permitted_by(evidence.finding());
    Ok(Judged {
        view: Some(evidence_view(&evidence, locked.now)?),
        evidence: Some(evidence),
        refusal: (!permitted).then_some(ProblemCode::EvidenceForbids),
    })
}

/// Evidence as people see it, and as it is kept.
pub(crate) fn evidence_view(
    evidence: &Evidence,
    at: OffsetDateTime,
) -> Result<EvidenceView, StoreError> {
    let finding = evidence.finding();
    let mut view = EvidenceView {
        at: rfc3339(at),
        finding,
        permitted: finding.permits(),
        proposed: finding.proposal(),
        by_this_record: None,
        row: None,
        location: None,
    };
    match evidence {
        Evidence::Present {
            by_this_record,
            body,
            location,
        } => {
            let row = serde_json::from_str(body);
            view.row =
                Some(row.map_err(|_| StoreError::Corrupt("a business row is no JSON".into()))?);
            view.by_this_record = Some(*by_this_record);
            view.location = Some(location.clone());
        }
        Evidence::Other { location } => view.location = Some(location.clone()),
        Evidence::Happened | Evidence::Absent | Evidence::NotKnown => {}
    }
    Ok(view)
}

impl Engine {
    /// Moves a locked record as its evidence permits. Whoever executed it before is fenced in any case.
    pub(super) async fn apply(
        &self,
        connection: &mut PgConnection,
        locked: &Locked,
        judged: Judged,
        action: CompensationAction,
    ) -> Result<Applied, StoreError> {
        let evidence = judged
            .evidence
            .ok_or_else(|| StoreError::Corrupt("a compensation without evidence".into()))?;
        let business = REGISTRY.of_stored(&locked.action_type)?;
        let moved = match action {
            CompensationAction::Verify => {
                return Err(StoreError::Corrupt("verify changes nothing".into()));
            }
            CompensationAction::Complete => conclude(
                locked,
                completed(connection, business, locked.id, evidence).await?,
            )?,
            CompensationAction::Release | CompensationAction::ReExecute => {
                business.abandon_effects(connection, locked.id).await?;
                released(locked)?
            }
            CompensationAction::Fail => {
                business.abandon_effects(connection, locked.id).await?;
                failed(locked, evidence)?
            }
        };
        let moved = Moved {
            fence: true,
            compensated: true,
            ..moved
        };
        self.move_locked(connection, locked, &moved).await?;
        let mut applied = Applied {
            state: moved.state,
            version: locked.version + 1,
            epoch: locked.epoch + 1,
            job: None,
        };
        if action == CompensationAction::ReExecute {
            self.claim_again(connection, locked, &mut applied).await?;
        }
        Ok(applied)
    }

    /// Claims a record that was just released, in the same transaction.
    async fn claim_again(
        &self,
        connection: &mut PgConnection,
        locked: &Locked,
        applied: &mut Applied,
    ) -> Result<(), StoreError> {
        let action = REGISTRY.of_stored(&locked.action_type)?;
        let lease = self.lease_of(action);
        let token = Uuid::new_v4();
        let epoch = reclaim(
            &mut *connection,
            self.0.instance_id,
            locked.id,
            applied.epoch,
            token,
            lease,
            None,
        )
        .await?;
        let epoch = epoch.ok_or_else(|| {
            StoreError::Corrupt(format!("record {} moved under its lock", locked.id))
        })?;
        let claim = ClaimRef {
            record_id: locked.id,
            epoch,
            token,
        };
        if let Some(outside) = action.outside() {
            outside.take_hold(connection, claim).await?;
        }
        *applied = Applied {
            state: step(applied.state, RecordEvent::Reclaim)?,
            version: applied.version + 1,
            epoch,
            job: Some(FinishJob {
                claim,
                action,
                trace_id: locked.trace_id.clone(),
                executor: Executor::Person,
            }),
        };
        Ok(())
    }
}

/// Free to run again.
fn released(locked: &Locked) -> Result<Moved, StoreError> {
    if locked.state != RecordState::FailedRetryable {
        return conclude(locked, Evidence::Absent);
    }
    Ok(Moved {
        state: locked.state,
        response: None,
        error_code: Some(ProblemCode::TemporaryFailure.into()),
        bucket: Bucket::New,
        defence: Defence::None,
        fence: true,
        compensated: true,
    })
}

/// Ended for good, with an answer that says why.
fn failed(locked: &Locked, evidence: Evidence) -> Result<Moved, StoreError> {
    let (code, location) = match evidence {
        Evidence::Other { location } => (ProblemCode::AlreadySubmitted, Some(location)),
        _ => (ProblemCode::ClosedByAdmin, None),
    };
    let (bucket, defence) = if location.is_some() {
        (Bucket::ConstraintConflict, Defence::Constraint)
    } else {
        (Bucket::New, Defence::None)
    };
    Ok(Moved {
        state: step(fenced(locked)?, RecordEvent::FailByHand)?,
        response: Some(refusal(code, location, &locked.trace_id)),
        error_code: Some(code.into()),
        bucket,
        defence,
        fence: true,
        compensated: true,
    })
}
