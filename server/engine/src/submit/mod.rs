//! One intent, one effect, one answer: the path of an arrival.
//!
//! The caller only waits. The execution runs in a task of its own, so a caller that goes away never stops it.

use std::time::{Duration, Instant};

use domain::{ActionType, Bucket, Defence, EndEvent, Fingerprint, IdempotencyKey, RecordState};
use tokio::sync::{oneshot, watch};
use tracing::Instrument;
use uuid::Uuid;

use crate::{
    Actor, Answer, Arrival, Engine, SubmitError,
    flight::{FlightKey, Lead, Seat, Stage},
    store::{
        actions::{Action, ClaimRef, REGISTRY},
        arrival::ArrivalRow,
        record::{ClaimRow, Claimed, FoundRecord, find_record},
    },
};

mod answers;
pub(crate) mod finish;

use finish::{Executed, FinishJob};

/// How often a claim that vanished is made again: it vanishes only when Postgres crashes or a purge runs in between.
const CLAIMS: u32 = 3;
/// How often a caller who waits for another instance's execution looks, at first and at most.
const LOOK_EVERY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
/// How much earlier than its lease a claim is no longer joined: clocks may run at slightly different speeds.
const LEASE_MARGIN: f64 = 0.9;

/// One arrival, checked: what every step of its path needs to know.
#[derive(Clone)]
pub(crate) struct Intent {
    action: &'static dyn Action,
    subject_id: i64,
    key: IdempotencyKey,
    command: serde_json::Value,
    fingerprint: Fingerprint,
    client_id: String,
    trace_id: String,
    wait: Duration,
    arrived: Instant,
    lease: Duration,
}

impl Intent {
    fn action_type(&self) -> ActionType {
        self.action.action_type()
    }
}

impl Engine {
    /// Answers one arrival: executes it when it is the first of its key, and otherwise says what became of the first.
    ///
    /// # Errors
    /// Nothing was accepted: the store cannot be reached, the command is not valid, or the process is stopping.
    pub async fn submit(&self, actor: &Actor, arrival: Arrival) -> Result<Answer, SubmitError> {
        let intent = self.check(actor, arrival)?;
        let key = FlightKey {
            subject_id: intent.subject_id,
            action: intent.action_type(),
            key: intent.key.clone(),
        };
        let trusted_until = intent.arrived + intent.lease.mul_f64(LEASE_MARGIN);
        match self.0.flights.board(key, intent.arrived, trusted_until) {
            Seat::Lead(lead) => {
                let (reply, answer) = oneshot::channel();
                let task = self
                    .clone()
                    .lead(lead, intent, reply)
                    .instrument(tracing::Span::current());
                self.0.executions.spawn(task);
                answer.await.unwrap_or(Err(SubmitError::Stopping))
            }
            Seat::Join(stage) => self.join(stage, &intent).await,
        }
    }

    fn check(&self, actor: &Actor, arrival: Arrival) -> Result<Intent, SubmitError> {
        let arrived = Instant::now();
        if self.0.stopping.is_cancelled() {
            return Err(SubmitError::Stopping);
        }
        let action = REGISTRY
            .find(arrival.action.as_str())
            .ok_or(SubmitError::UnknownAction)?;
        let command = action
            .check(arrival.command)
            .map_err(SubmitError::InvalidCommand)?;
        let fingerprint = Fingerprint::of(action.action_type(), &command)
            .map_err(|error| SubmitError::InvalidCommand(error.to_string()))?;
        Ok(Intent {
            lease: action.policy().lease.unwrap_or(self.0.config.lease),
            action,
            subject_id: actor.id,
            key: arrival.key,
            command,
            fingerprint,
            client_id: arrival.client_id,
            trace_id: arrival.trace_id,
            wait: arrival.wait,
            arrived,
        })
    }

    /// Claims and executes on behalf of every arrival of this key at this process.
    async fn lead(
        self,
        lead: Lead,
        intent: Intent,
        reply: oneshot::Sender<Result<Answer, SubmitError>>,
    ) {
        let answer = self.claim_and_execute(lead, &intent).await;
        let succeeded =
            matches!(&answer, Ok(answer) if answer.bucket == Bucket::New && answer.status < 300);
        if reply.send(answer).is_err() && succeeded {
            self.0
                .recorder
                .note_event(intent.action_type(), EndEvent::TimeoutAfterSuccess)
                .await;
        }
    }

    async fn claim_and_execute(&self, lead: Lead, intent: &Intent) -> Result<Answer, SubmitError> {
        let arrival_id = Uuid::now_v7();
        for _ in 0..CLAIMS {
            let claimed = match self.0.claims.run(self.claim_row(intent, arrival_id)).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    lead.tell(Stage::Failed(error.clone().into()));
                    return Err(error.into());
                }
            };
            let claim = match claimed {
                Claimed::Won { record_id, epoch } => ClaimRef { record_id, epoch },
                Claimed::Found(record) => {
                    // The flight ends here, so that its joiners are answered by the record as well.
                    lead.tell(Stage::Ended(record.clone()));
                    drop(lead);
                    return self.answer_from(record, intent, Defence::Record).await;
                }
            };
            lead.tell(Stage::Executing {
                record_id: claim.record_id,
                fingerprint: intent.fingerprint,
            });
            let job = FinishJob {
                claim,
                action: intent.action,
                trace_id: intent.trace_id.clone(),
                arrival_id,
            };
            match finish::execute(self, job).await {
                Executed::Ended(row) => {
                    let answer = answers::of_execution(row.response.as_ref(), row.bucket, intent);
                    lead.tell(Stage::Ended(FoundRecord::finished(
                        row,
                        &intent.fingerprint,
                    )));
                    return Ok(answer);
                }
                Executed::Overtaken { record, bucket } => {
                    lead.tell(Stage::Ended(record.clone()));
                    return Ok(match bucket {
                        Some(bucket) => {
                            answers::of_execution(record.response.as_ref(), bucket, intent)
                        }
                        None => answers::of_record(&record, intent).1,
                    });
                }
                Executed::Undecided => {
                    lead.tell(Stage::Failed(SubmitError::Stopping));
                    return Ok(answers::temporary_failure(intent));
                }
                // Postgres crashed and forgot the unflushed claim: nothing happened, claim again.
                Executed::Missing => lead.tell(Stage::Claiming),
            }
        }
        lead.tell(Stage::Failed(SubmitError::Stopping));
        Ok(answers::temporary_failure(intent))
    }

    fn claim_row(&self, intent: &Intent, arrival_id: Uuid) -> ClaimRow {
        ClaimRow {
            token: Uuid::new_v4(),
            subject_id: intent.subject_id,
            action_type: intent.action_type().as_str(),
            key: intent.key.as_str().to_owned(),
            fingerprint: *intent.fingerprint.as_bytes(),
            request: intent.command.clone(),
            lease: intent.lease,
            may_commit_late: intent.action.policy().local_effects_only,
            arrival_id,
            client_id: intent.client_id.clone(),
            trace_id: intent.trace_id.clone(),
            age: intent.arrived.elapsed(),
        }
    }

    /// Answers an arrival whose key is already on its way at this process.
    async fn join(
        &self,
        mut stage: watch::Receiver<Stage>,
        intent: &Intent,
    ) -> Result<Answer, SubmitError> {
        let until = tokio::time::Instant::from_std(intent.arrived + intent.wait);
        loop {
            let seen = stage.borrow_and_update().clone();
            match seen {
                Stage::Claiming => {}
                Stage::Failed(error) => return Err(error),
                Stage::Ended(record) => {
                    return self.answer_from(record, intent, Defence::InFlight).await;
                }
                Stage::Executing {
                    record_id,
                    fingerprint,
                } => {
                    let mismatch = fingerprint != intent.fingerprint;
                    if mismatch || tokio::time::Instant::now() >= until {
                        let answer = if mismatch {
                            answers::mismatch(intent)
                        } else {
                            answers::processing(intent)
                        };
                        self.note(record_id, intent, Defence::InFlight, &answer, !mismatch)
                            .await;
                        return Ok(answer);
                    }
                    if let Ok(changed) = tokio::time::timeout_at(until, stage.changed()).await {
                        changed.map_err(|_| SubmitError::Stopping)?;
                    }
                    continue;
                }
            }
            // A claim is one short statement; its outcome decides what this arrival is.
            stage.changed().await.map_err(|_| SubmitError::Stopping)?;
        }
    }

    /// Answers an arrival by the record of its key, waiting for another instance's execution when the caller wants that.
    async fn answer_from(
        &self,
        mut record: FoundRecord,
        intent: &Intent,
        defence: Defence,
    ) -> Result<Answer, SubmitError> {
        let mut pause = LOOK_EVERY.0;
        while record.fingerprint == intent.fingerprint.as_bytes()
            && record.state == RecordState::Processing
            && record.lease_is_live
            && intent.arrived.elapsed() < intent.wait
        {
            tokio::time::sleep(pause.min(intent.wait.saturating_sub(intent.arrived.elapsed())))
                .await;
            pause = (pause * 2).min(LOOK_EVERY.1);
            match find_record(&self.0.pools.work, record.id).await? {
                Some(seen) => record = seen,
                None => break,
            }
        }
        let (same_content, answer) = answers::of_record(&record, intent);
        self.note(record.id, intent, defence, &answer, same_content)
            .await;
        Ok(answer)
    }

    async fn note(
        &self,
        record_id: i64,
        intent: &Intent,
        defence: Defence,
        answer: &Answer,
        same_content: bool,
    ) {
        let row = ArrivalRow {
            id: Uuid::now_v7(),
            record_id,
            action_type: intent.action_type().as_str(),
            bucket: answer.bucket,
            defence,
            client_id: intent.client_id.clone(),
            trace_id: intent.trace_id.clone(),
            same_content,
            duration: intent.arrived.elapsed(),
            age: Duration::ZERO,
        };
        self.0.recorder.note_arrival(row).await;
    }
}
