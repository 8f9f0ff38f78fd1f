//! One intent, one effect, one answer: the path of an arrival.
//!
//! The caller only waits. The execution runs in a task of its own, so a caller that goes away never stops it.

use std::time::{Duration, Instant};

use domain::{ActionType, Bucket, Defence, EndEvent, Fingerprint, IdempotencyKey, RecordState};
use tokio::sync::oneshot;
use tracing::Instrument;
use uuid::Uuid;

use crate::{
    Actor, Answer, Arrival, Engine, StoreError, SubmitError,
    flight::{Joined, Lead, Seat, Stage},
    store::{
        actions::{Action, ClaimRef, REGISTRY},
        arrival::{ArrivalRow, decide_arrival},
        record::{ClaimRow, Claimed, Executor, FoundRecord, find_record},
        recovery::{TakingArrival, reclaim},
    },
    trace, watch,
};

pub(crate) mod answers;
pub(crate) mod finish;
mod front;

use finish::{Executed, FinishJob};
use front::Passed;

/// How many steps a path may take. Each one is made necessary by somebody else's progress (a take-over, a verification, a
/// purge), so a path that is longer than this meets something that is wrong.
const STEPS: u32 = 12;
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
        let trusted_until = intent.arrived + intent.lease.mul_f64(LEASE_MARGIN);
        match self
            .0
            .flights
            .board(intent.flight_key(), intent.arrived, trusted_until)
        {
            Seat::Lead(lead) => self.detach(Some(lead), intent).await,
            Seat::Join(joined) => self.join(joined, intent).await,
        }
    }

    /// Pursues an intent in a task of its own, and waits for its answer.
    async fn detach(&self, flight: Option<Lead>, intent: Intent) -> Result<Answer, SubmitError> {
        let (reply, answer) = oneshot::channel();
        let task = self.clone().pursue(flight, intent, reply);
        self.0
            .executions
            .spawn(task.instrument(tracing::Span::current()));
        answer.await.unwrap_or(Err(SubmitError::Stopping))
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
        if action.outside().is_some() && self.0.provider.is_none() {
            return Err(SubmitError::NoProvider);
        }
        Ok(Intent {
            lease: self.lease_of(action),
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

    /// Claims and executes; with a flight, on behalf of every arrival of this key at this process.
    async fn pursue(
        self,
        mut flight: Option<Lead>,
        intent: Intent,
        reply: oneshot::Sender<Result<Answer, SubmitError>>,
    ) {
        let mut kept = None;
        let answer = match self.pass_front_lock(&mut flight, &intent).await {
            Ok(Passed::Answered(answer)) => Ok(answer),
            Ok(Passed::Without) => self.claim_and_execute(flight, &intent).await,
            Ok(Passed::With(lock, mut held)) => {
                let work = self.claim_and_execute(flight, &intent);
                let answer = lock.keep(&mut held, work).await;
                kept = Some((lock, held));
                answer
            }
            Err(error) => {
                if let Some(lead) = flight {
                    lead.tell(Stage::Failed(error.clone()));
                }
                Err(error)
            }
        };
        if let Ok(answer) = &answer {
            tell(&intent, answer);
        }
        let succeeded =
            matches!(&answer, Ok(answer) if answer.bucket == Bucket::New && answer.status < 300);
        if reply.send(answer).is_err() && succeeded {
            self.0
                .recorder
                .note_event(intent.action_type(), EndEvent::TimeoutAfterSuccess)
                .await;
        }
        // Behind the answer: nobody waits for Redis twice.
        if let Some((lock, held)) = kept {
            self.leave_front_lock(lock, held, &intent).await;
        }
    }

    /// Claims the key, or takes over what somebody left unfinished, executes and answers; or answers by the record.
    async fn claim_and_execute(
        &self,
        mut flight: Option<Lead>,
        intent: &Intent,
    ) -> Result<Answer, SubmitError> {
        // One token and one arrival for the whole path: a step that is repeated finds its own first try.
        let own = Own {
            token: Uuid::new_v4(),
            arrival_id: Uuid::now_v7(),
        };
        for _ in 0..STEPS {
            let step = self.step(&mut flight, intent, &own).await;
            if let Some(lead) = flight.as_ref() {
                lead.tell(match &step {
                    Ok(Step::Again) => Stage::Claiming,
                    Ok(Step::Answered(_, Some(record))) => Stage::Ended(record.clone()),
                    Ok(Step::Answered(_, None)) => Stage::Failed(SubmitError::Stopping),
                    Err(error) => Stage::Failed(error.clone().into()),
                });
            }
            match step? {
                Step::Again => {}
                Step::Answered(answer, _) => return Ok(answer),
            }
        }
        Ok(answers::temporary_failure(intent))
    }

    /// One step of the path: as far as it goes without somebody else's progress in between.
    async fn step(
        &self,
        flight: &mut Option<Lead>,
        intent: &Intent,
        own: &Own,
    ) -> Result<Step, StoreError> {
        let begun = Instant::now();
        let claimed = self.claim(intent, own).await?;
        watch::note_claim(intent.action_type(), begun);
        let claim = match claimed {
            Claimed::Won { record_id, epoch } => own.claim(record_id, epoch),
            Claimed::Found(record) => match self.take_over(&record, intent, own).await? {
                TakeOver::Won(claim) => claim,
                TakeOver::MovedOn => return Ok(Step::Again),
                TakeOver::NotOurs => {
                    // The flight ends here, so that its joiners are answered by the record as well.
                    if let Some(lead) = flight.take() {
                        lead.tell(Stage::Ended(record.clone()));
                    }
                    return self.answer_from(record, intent, Defence::Record).await;
                }
            },
        };
        if let Some(lead) = flight {
            lead.tell(Stage::Executing {
                record_id: claim.record_id,
                fingerprint: intent.fingerprint,
            });
        }
        let job = FinishJob {
            claim,
            action: intent.action,
            trace_id: intent.trace_id.clone(),
            executor: Executor::Arrival(own.arrival_id),
        };
        Ok(match finish::execute(self, job).await {
            Executed::Ended(row) => {
                let answer = answers::of_execution(row.response.as_ref(), row.bucket, intent);
                let record = FoundRecord::finished(row, &intent.fingerprint, &intent.trace_id);
                Step::Answered(answer, Some(record))
            }
            // Fenced, and nobody alive runs it: what is verified as not done may be done now.
            Executed::Overtaken {
                record,
                bucket: None,
            } if !record.lease_is_live && !record.state.is_terminal() => Step::Again,
            Executed::Overtaken { record, bucket } => {
                let answer = self.answer_overtaken(&record, bucket, intent, own).await;
                Step::Answered(answer, Some(record))
            }
            Executed::Undecided if intent.action.outside().is_some() => {
                Step::Answered(answers::unknown(intent), None)
            }
            Executed::Undecided => Step::Answered(answers::temporary_failure(intent), None),
            // Postgres crashed and forgot the unflushed claim: nothing happened, claim again.
            Executed::Missing => Step::Again,
        })
    }

    async fn claim(&self, intent: &Intent, own: &Own) -> Result<Claimed, StoreError> {
        let row = claim_row(intent, own);
        match intent.action.outside() {
            Some(outside) => self.claim_with_hold(outside, row).await,
            None => self.0.claims.run(row).await,
        }
    }

    /// Makes a record that was left unfinished one's own, if it is: verified first, when its lease ran out.
    async fn take_over(
        &self,
        record: &FoundRecord,
        intent: &Intent,
        own: &Own,
    ) -> Result<TakeOver, StoreError> {
        if record.is_answer_to(&intent.fingerprint) {
            return Ok(TakeOver::NotOurs);
        }
        match record.state {
            RecordState::Succeeded | RecordState::FailedFinal => Ok(TakeOver::NotOurs),
            RecordState::Processing | RecordState::Unknown => {
                match self.verify(record.id, false).await? {
                    // Nobody can tell yet: the caller is told so, and the outside is asked meanwhile.
                    Some(RecordState::Unknown) => {
                        self.start_reconciling(intent.action, record.id);
                        Ok(TakeOver::NotOurs)
                    }
                    _ => Ok(TakeOver::MovedOn),
                }
            }
            RecordState::FailedRetryable => {
                let arrival = TakingArrival {
                    id: own.arrival_id,
                    client_id: &intent.client_id,
                    trace_id: &intent.trace_id,
                    age: intent.arrived.elapsed(),
                };
                let epoch = match intent.action.outside() {
                    Some(outside) => {
                        let claim = own.claim(record.id, record.epoch);
                        self.reclaim_with_hold(outside, claim, intent.lease, arrival)
                            .await?
                    }
                    None => {
                        reclaim(
                            &self.0.pools.work,
                            self.0.instance_id,
                            record.id,
                            record.epoch,
                            own.token,
                            intent.lease,
                            Some(arrival),
                        )
                        .await?
                    }
                };
                Ok(epoch.map_or(TakeOver::MovedOn, |epoch| {
                    TakeOver::Won(own.claim(record.id, epoch))
                }))
            }
        }
    }

    /// Asks the outside what became of a call, behind the answer.
    fn start_reconciling(&self, action: &'static dyn Action, record_id: i64) {
        let Some(outside) = action.outside() else {
            return;
        };
        let engine = self.clone();
        self.0.executions.spawn(async move {
            if let Err(error) = engine.reconcile(outside, record_id, false).await {
                tracing::warn!(
                    record_id,
                    error = &error as &dyn std::error::Error,
                    "a record could not be reconciled"
                );
            }
        });
    }

    /// Answers the caller of an owner that was fenced: with what is true now, in the bucket that was or is decided for it.
    async fn answer_overtaken(
        &self,
        record: &FoundRecord,
        bucket: Option<Bucket>,
        intent: &Intent,
        own: &Own,
    ) -> Answer {
        if let (Some(bucket), Some(_)) = (bucket, &record.response) {
            return answers::of_execution(record.response.as_ref(), bucket, intent);
        }
        watch::note_fenced(intent.action_type());
        tracing::warn!(
            record_id = record.id,
            trace_id = intent.trace_id,
            "an owner was fenced and wrote nothing"
        );
        let (_, answer) = answers::of_record(record, intent);
        let decided = decide_arrival(
            &self.0.pools.work,
            self.0.instance_id,
            own.arrival_id,
            answer.bucket,
            Defence::Record,
        )
        .await;
        if let Err(error) = decided {
            // It stays undecided and falls to whoever finishes the record.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "an arrival could not be decided"
            );
        }
        answer
    }

    /// Answers an arrival whose key is already on its way at this process.
    async fn join(&self, joined: Joined, intent: Intent) -> Result<Answer, SubmitError> {
        let Joined {
            mut stage,
            trusted_until,
        } = joined;
        let until = intent.arrived + intent.wait;
        loop {
            let seen = stage.borrow_and_update().clone();
            match seen {
                Stage::Claiming => {}
                Stage::Failed(error) => return Err(error),
                Stage::Ended(record) => {
                    return match self.answer_from(record, &intent, Defence::InFlight).await? {
                        Step::Answered(answer, _) => {
                            tell(&intent, &answer);
                            Ok(answer)
                        }
                        // What another instance left unfinished may be taken over, by this arrival as well as by any.
                        Step::Again => self.detach(None, intent).await,
                    };
                }
                Stage::Executing {
                    record_id,
                    fingerprint,
                } => {
                    let mismatch = fingerprint != intent.fingerprint;
                    if mismatch || Instant::now() >= until {
                        let mut answer = if mismatch {
                            answers::mismatch(&intent)
                        } else {
                            answers::processing(&intent)
                        };
                        answer.defence = Defence::InFlight;
                        self.note(record_id, &intent, Defence::InFlight, &answer, !mismatch)
                            .await;
                        tell(&intent, &answer);
                        return Ok(answer);
                    }
                    if Instant::now() >= trusted_until {
                        // RACE: another instance may have taken over; only the database knows.
                        return self.detach(None, intent).await;
                    }
                    let look = until.min(trusted_until).into();
                    if let Ok(changed) = tokio::time::timeout_at(look, stage.changed()).await {
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
    /// Looks again when the record can be taken over by then.
    async fn answer_from(
        &self,
        mut record: FoundRecord,
        intent: &Intent,
        defence: Defence,
    ) -> Result<Step, StoreError> {
        let mut pause = LOOK_EVERY.0;
        while record.fingerprint == intent.fingerprint.as_bytes()
            && record.lease_is_live
            && intent.arrived.elapsed() < intent.wait
        {
            tokio::time::sleep(pause.min(intent.wait.saturating_sub(intent.arrived.elapsed())))
                .await;
            pause = (pause * 2).min(LOOK_EVERY.1);
            match find_record(
                &self.0.pools.work,
                record.id,
                intent.subject_id,
                intent.key.as_str(),
            )
            .await?
            {
                Some(seen) if seen.lease_is_live || seen.state.is_terminal() => record = seen,
                _ => return Ok(Step::Again),
            }
        }
        let (same_content, mut answer) = answers::of_record(&record, intent);
        answer.defence = defence;
        trace::link_first(&record.trace_id, record.id);
        self.note(record.id, intent, defence, &answer, same_content)
            .await;
        Ok(Step::Answered(answer, Some(record)))
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

/// Measures and logs an arrival that was answered: one line for each, with the key's hash and never the key.
fn tell(intent: &Intent, answer: &Answer) {
    let took = intent.arrived.elapsed();
    watch::note_request(intent.action_type(), took);
    let outcome = answer.bucket.as_ref();
    let defence = answer.defence.as_ref();
    let key_hash = intent.key.hash();
    let span = tracing::Span::current();
    span.record("outcome", outcome);
    span.record("defence", defence);
    span.record("key_hash", key_hash.as_str());
    span.record("action", intent.action_type().as_str());
    tracing::info!(
        action = intent.action_type().as_str(),
        key_hash,
        outcome,
        defence,
        status = answer.status,
        duration_ms = took.as_secs_f64() * 1000.0,
        trace_id = intent.trace_id,
        "arrival"
    );
}

/// What is one's own of a path: proof that a claim is, and the arrival that it decides.
struct Own {
    token: Uuid,
    arrival_id: Uuid,
}

impl Own {
    const fn claim(&self, record_id: i64, epoch: i64) -> ClaimRef {
        ClaimRef {
            record_id,
            epoch,
            token: self.token,
        }
    }
}

/// How far one step came.
enum Step {
    /// To an answer, and the record behind it when it is known.
    Answered(Answer, Option<FoundRecord>),
    /// Somebody else made progress: look again.
    Again,
}

/// What became of taking a record over.
enum TakeOver {
    Won(ClaimRef),
    /// It is somebody else's, or finished, or nobody can tell.
    NotOurs,
    /// It has changed meanwhile: look again.
    MovedOn,
}

fn claim_row(intent: &Intent, own: &Own) -> ClaimRow {
    ClaimRow {
        token: own.token,
        subject_id: intent.subject_id,
        action_type: intent.action_type().as_str(),
        key: intent.key.as_str().to_owned(),
        fingerprint: *intent.fingerprint.as_bytes(),
        request: intent.command.clone(),
        lease: intent.lease,
        may_commit_late: intent.action.policy().local_effects_only,
        arrival_id: own.arrival_id,
        client_id: intent.client_id.clone(),
        trace_id: intent.trace_id.clone(),
        age: intent.arrived.elapsed(),
    }
}
