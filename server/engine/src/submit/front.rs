//! Before the claim: the front lock, where there is one. Whoever loses it looks before it inserts.

use std::time::{Duration, Instant};

use domain::{Defence, EndEvent};

use super::{Intent, Step};
use crate::{
    Answer, Engine, StoreError, SubmitError,
    flight::{FlightKey, Lead, Stage},
    front_lock::{Asked, FrontLock, Held},
    store::record::{FoundRecord, find_record_of_key},
    watch::{self, FrontLockResult},
};

/// How long a loser waits for the winner's record, look by look, before it claims without the lock: its holder may have died.
const WAITS: [Duration; 3] = [
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
];

/// How an arrival comes past the front lock.
pub(super) enum Passed<'a> {
    /// Answered by the record of its key.
    Answered(Answer),
    /// With the lock, which is to be kept and released.
    With(&'a FrontLock, Held),
    /// Without it.
    Without,
}

impl Engine {
    /// Asks for the front lock of a key, and answers by the record when somebody else has it.
    pub(super) async fn pass_front_lock(
        &self,
        flight: &mut Option<Lead>,
        intent: &Intent,
    ) -> Result<Passed<'_>, SubmitError> {
        let Some(lock) = &self.0.front_lock else {
            return Ok(Passed::Without);
        };
        let begun = Instant::now();
        let asked = lock.ask(&intent.flight_key()).await;
        let result = match &asked {
            Asked::Held(_) => FrontLockResult::Taken,
            Asked::Lost => FrontLockResult::Held,
            Asked::Away => FrontLockResult::Unavailable,
        };
        watch::note_front_lock(intent.action_type(), result, begun);
        match asked {
            Asked::Held(held) => Ok(Passed::With(lock, held)),
            Asked::Lost => Ok(self.look_for_winner(flight, intent).await?),
            // A key that has a record is never refused its answer.
            Asked::Away if lock.refuses() && self.find_own(intent).await?.is_none() => {
                Err(SubmitError::FrontLockUnavailable)
            }
            Asked::Away => Ok(Passed::Without),
        }
    }

    async fn look_for_winner(
        &self,
        flight: &mut Option<Lead>,
        intent: &Intent,
    ) -> Result<Passed<'_>, StoreError> {
        let mut found = self.find_own(intent).await?;
        for wait in WAITS {
            if found.is_some() {
                break;
            }
            tokio::time::sleep(wait).await;
            found = self.find_own(intent).await?;
        }
        // What was left unfinished is taken over whoever holds the lock.
        let Some(record) = found.filter(|record| record.is_answer_to(&intent.fingerprint)) else {
            return Ok(Passed::Without);
        };
        if let Some(lead) = flight.take() {
            lead.tell(Stage::Ended(record.clone()));
        }
        match self.answer_from(record, intent, Defence::FrontLock).await? {
            Step::Answered(answer, _) => Ok(Passed::Answered(answer)),
            Step::Again => Ok(Passed::Without),
        }
    }

    /// Releases a front lock, and counts what that tells.
    pub(super) async fn leave_front_lock(&self, lock: &FrontLock, held: Held, intent: &Intent) {
        let released = lock.release(held).await;
        for (happened, event) in [
            (
                released.expired_suspected,
                EndEvent::FrontLockExpiredSuspected,
            ),
            (released.mismatch, EndEvent::FrontLockReleaseMismatch),
        ] {
            if happened {
                tracing::warn!(
                    trace_id = intent.trace_id,
                    %event,
                    "a front lock did not last as long as its work"
                );
                self.0
                    .recorder
                    .note_event(intent.action_type(), event)
                    .await;
            }
        }
    }

    async fn find_own(&self, intent: &Intent) -> Result<Option<FoundRecord>, StoreError> {
        find_record_of_key(
            &self.0.pools.work,
            intent.subject_id,
            intent.action_type().as_str(),
            intent.key.as_str(),
        )
        .await
    }
}

impl Intent {
    /// What flights and front locks are for.
    pub(super) fn flight_key(&self) -> FlightKey {
        FlightKey {
            subject_id: self.subject_id,
            action: self.action_type(),
            key: self.key.clone(),
        }
    }
}
