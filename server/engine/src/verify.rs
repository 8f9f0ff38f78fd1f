//! Verification: what became of an execution that did not end, by evidence and never by guessing.

use domain::{Bucket, Defence, RecordState, state::RecordEvent};

use crate::{
    Engine, StoreError,
    store::{
        actions::{Evidence, REGISTRY},
        record::StoredAnswer,
        recovery::{Suspect, Verified, lock_suspect, update_verified},
        transaction::begin_finish,
    },
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
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        let Some(suspect) = lock_suspect(&mut transaction, record_id).await? else {
            return Ok(None);
        };
        let action = REGISTRY
            .find(&suspect.action_type)
            .ok_or_else(|| StoreError::Corrupt(format!("action {:?}", suspect.action_type)))?;
        // Begun after the lock is held: what an owner committed before is seen, and after it cannot commit any more.
        let evidence = action.find_evidence(&mut transaction, record_id).await?;
        if matches!(evidence, Evidence::Present { .. }) {
            action.complete_effects(&mut transaction, record_id).await?;
        }
        let verified = conclude(&suspect, evidence)?;
        let retention = self.0.config.retention;
        let moved = update_verified(
            &mut transaction,
            self.0.instance_id,
            retention,
            &suspect,
            &verified,
            compensating,
        )
        .await?;
        if !moved {
            return Err(StoreError::Corrupt(format!(
                "record {record_id} moved under its lock"
            )));
        }
        transaction.commit().await?;
        tracing::info!(
            record_id,
            trace_id = suspect.trace_id,
            from = %suspect.state,
            to = %verified.state,
            "verified an execution that did not end"
        );
        Ok(Some(verified.state))
    }
}

/// Where evidence leads, by the state machine.
fn conclude(suspect: &Suspect, evidence: Evidence) -> Result<Verified, StoreError> {
    let unknown = match suspect.state {
        RecordState::Processing => step(suspect.state, RecordEvent::LeaseRanOut)?,
        other => other,
    };
    Ok(match evidence {
        Evidence::Present {
            by_this_record,
            body,
            location,
        } => Verified {
            state: step(unknown, RecordEvent::VerifiedPresent)?,
            response: Some(StoredAnswer {
                status: if by_this_record { 201 } else { 200 },
                body,
                location: Some(location),
            }),
            error_code: None,
            bucket: if by_this_record {
                Bucket::New
            } else {
                Bucket::ConstraintConflict
            },
            defence: if by_this_record {
                Defence::Record
            } else {
                Defence::Constraint
            },
        },
        // Another content in its place: this one did not happen. Running again finds the constraint and says so.
        Evidence::Absent | Evidence::Other { .. } => Verified {
            state: step(unknown, RecordEvent::VerifiedAbsent)?,
            response: None,
            error_code: Some(domain::ProblemCode::TemporaryFailure.into()),
            bucket: Bucket::New,
            defence: Defence::None,
        },
        Evidence::NotKnown => Verified {
            state: unknown,
            response: None,
            error_code: None,
            bucket: Bucket::Unknown,
            defence: Defence::Record,
        },
    })
}

fn step(state: RecordState, event: RecordEvent) -> Result<RecordState, StoreError> {
    state
        .apply(event)
        .map_err(|invalid| StoreError::Corrupt(invalid.to_string()))
}
