//! Verification: what became of an execution that did not end, by evidence and never by guessing.

use std::time::Instant;

use domain::{
    Bucket, Defence, RecordState,
    compensation::{CompensationAction, Finding},
    state::RecordEvent,
};
use sqlx::PgConnection;

use crate::{
    Engine, StoreError,
    compensate::evidence_view,
    store::{
        actions::{Action, Evidence, REGISTRY},
        compensation::{NewEvent, insert_event},
        record::StoredAnswer,
        recovery::{Locked, Moved, lock_suspect, update_locked},
        transaction::{begin_finish, commit},
    },
    watch,
};

impl Engine {
    /// Fences a record whose lease ran out, looks for evidence and writes what is true, in one transaction. `None` when the
    /// record has moved on; otherwise its state now. `compensating` is for the scanner and for people: it is counted.
    ///
    /// # Errors
    /// When the store fails; nothing was changed then.
    pub(crate) async fn verify(
        &self,
        record_id: i64,
        compensating: bool,
    ) -> Result<Option<RecordState>, StoreError> {
        let begun = Instant::now();
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        let Some(suspect) = lock_suspect(&mut transaction, record_id).await? else {
            return Ok(None);
        };
        let action = REGISTRY.of_stored(&suspect.action_type)?;
        // Begun after the lock is held: what an owner committed before is seen, and after it cannot commit any more.
        let mut evidence = action.find_evidence(&mut transaction, record_id).await?;
        match evidence.finding() {
            Finding::Present => {
                evidence = completed(&mut transaction, action, record_id, evidence).await?;
            }
            // It waits to be run again, and nothing has changed about that.
            _ if suspect.state == RecordState::FailedRetryable => return Ok(Some(suspect.state)),
            Finding::Absent | Finding::Other => {
                action.abandon_effects(&mut transaction, record_id).await?;
            }
            Finding::NotKnown => {}
        }
        let seen = evidence_view(&evidence, suspect.now)?;
        let mut moved = conclude(&suspect, evidence)?;
        moved.compensated = compensating && moved.state == RecordState::Succeeded;
        self.move_locked(&mut transaction, &suspect, &moved).await?;
        if moved.compensated {
            let event = NewEvent {
                compensation_id: None,
                record_id,
                event: "applied",
                action: CompensationAction::Complete,
                actor_id: None,
                reason: "its lease ran out, and the business row is there",
                evidence: Some(&seen),
            };
            insert_event(&mut transaction, &event).await?;
        }
        commit(transaction).await?;
        watch::note_verification(action.action_type(), begun);
        tracing::info!(
            record_id,
            trace_id = suspect.trace_id,
            from = %suspect.state,
            to = %moved.state,
            outcome = moved.state.is_terminal().then(|| moved.bucket.as_ref()),
            "verified an execution that did not end"
        );
        Ok(Some(moved.state))
    }

    /// Moves a record that the transaction holds locked.
    pub(crate) async fn move_locked(
        &self,
        connection: &mut PgConnection,
        locked: &Locked,
        moved: &Moved,
    ) -> Result<(), StoreError> {
        let retention = self.0.config.retention;
        let updated =
            update_locked(connection, self.0.instance_id, retention, locked, moved).await?;
        // INVARIANT: nobody else moves a record whose lock is held.
        updated.then_some(()).ok_or_else(|| {
            StoreError::Corrupt(format!("record {} moved under its lock", locked.id))
        })
    }
}

/// Adds what a present effect is missing; what only the outside knew of is read anew, now that its row is written.
pub(crate) async fn completed(
    connection: &mut PgConnection,
    action: &dyn Action,
    record_id: i64,
    evidence: Evidence,
) -> Result<Evidence, StoreError> {
    action.complete_effects(connection, record_id).await?;
    match evidence {
        Evidence::Present { .. } => Ok(evidence),
        _ => action.find_evidence(connection, record_id).await,
    }
}

/// Where evidence leads, by the state machine.
pub(crate) fn conclude(locked: &Locked, evidence: Evidence) -> Result<Moved, StoreError> {
    let unknown = fenced(locked)?;
    let still = |state| Moved {
        state,
        response: None,
        error_code: None,
        bucket: Bucket::Unknown,
        defence: Defence::Record,
        fence: locked.state == RecordState::Processing,
        compensated: false,
    };
    Ok(match evidence {
        Evidence::Present {
            by_this_record,
            body,
            location,
        } => {
            let (status, bucket, defence) = if by_this_record {
                (201, Bucket::New, Defence::Record)
            } else {
                (200, Bucket::ConstraintConflict, Defence::Constraint)
            };
            Moved {
                response: Some(StoredAnswer {
                    status,
                    body,
                    location: Some(location),
                }),
                bucket,
                defence,
                ..still(step(unknown, RecordEvent::VerifiedPresent)?)
            }
        }
        // Another content in its place: this one did not happen. Running again finds the constraint and says so.
        Evidence::Absent | Evidence::Other { .. } => Moved {
            error_code: Some(domain::ProblemCode::TemporaryFailure.into()),
            bucket: Bucket::New,
            defence: Defence::None,
            ..still(step(unknown, RecordEvent::VerifiedAbsent)?)
        },
        Evidence::NotKnown => still(unknown),
        Evidence::Happened => {
            return Err(StoreError::Corrupt(format!(
                "record {} was completed and has no business row",
                locked.id
            )));
        }
    })
}

/// The state of a locked record once its owner is fenced.
pub(crate) fn fenced(locked: &Locked) -> Result<RecordState, StoreError> {
    match locked.state {
        RecordState::Processing => step(locked.state, RecordEvent::LeaseRanOut),
        other => Ok(other),
    }
}

/// The next state, or the report of a fault of ours.
pub(crate) fn step(state: RecordState, event: RecordEvent) -> Result<RecordState, StoreError> {
    state
        .apply(event)
        .map_err(|invalid| StoreError::Corrupt(invalid.to_string()))
}
