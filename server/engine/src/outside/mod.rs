//! Effects outside the database: held with the claim, marked before the call, called at most once without proof, and reconciled
//! by the provider's own word. Never a provider's answer inside a transaction.

use std::time::{Duration, Instant};

use domain::RecordState;
use tracing::Instrument;

use crate::{
    Engine, StoreError, crash,
    store::{
        actions::{Action, Call, CallAnswer, ClaimRef, Outside, Probe},
        record::{ClaimRow, Claimed, claim_many},
        recovery::{TakingArrival, reclaim},
        transaction::{begin_finish, commit},
    },
    submit::finish::FinishJob,
    trace,
};

mod provider;
mod webhook;
mod wire;

pub(crate) use provider::Provider;
pub(crate) use webhook::Webhook;

/// How often the answer to a call is written again when the store refuses, and the pause between.
const ANSWER_TRIES: (u32, Duration) = (5, Duration::from_millis(200));

impl Engine {
    /// For how long a claim of this action is presumed alive: at least three times what a call may take.
    pub(crate) fn lease_of(&self, action: &dyn Action) -> Duration {
        let lease = action.policy().lease.unwrap_or(self.0.config.lease);
        match (action.outside(), &self.0.provider) {
            (Some(_), Some(provider)) => lease.max(provider.timeout * 3),
            _ => lease,
        }
    }

    /// Claims a key and holds what its effect costs, in one transaction that is flushed.
    pub(crate) async fn claim_with_hold(
        &self,
        outside: &'static dyn Outside,
        row: ClaimRow,
    ) -> Result<Claimed, StoreError> {
        crash::point("before_claim");
        let token = row.token;
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        let claimed = claim_many(&mut transaction, self.0.instance_id, &[row]).await?;
        let (_, claimed) = claimed
            .into_iter()
            .next()
            .ok_or_else(|| StoreError::Corrupt("a key was neither claimed nor found".into()))?;
        if let Claimed::Won { record_id, epoch } = claimed {
            let claim = ClaimRef {
                record_id,
                epoch,
                token,
            };
            outside.take_hold(&mut transaction, claim).await?;
        }
        commit(transaction).await?;
        crash::point("after_claim");
        Ok(claimed)
    }

    /// Takes a FAILED_RETRYABLE record over and holds what its effect costs, in one transaction.
    pub(crate) async fn reclaim_with_hold(
        &self,
        outside: &'static dyn Outside,
        claim: ClaimRef,
        lease: Duration,
        arrival: TakingArrival<'_>,
    ) -> Result<Option<i64>, StoreError> {
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        let epoch = reclaim(
            &mut *transaction,
            self.0.instance_id,
            claim.record_id,
            claim.epoch,
            claim.token,
            lease,
            Some(arrival),
        )
        .await?;
        if let Some(epoch) = epoch {
            outside
                .take_hold(&mut transaction, ClaimRef { epoch, ..claim })
                .await?;
        }
        commit(transaction).await?;
        Ok(epoch)
    }

    /// Marks the call, calls, and keeps the answer; the finish decides by what is kept. Without a mark nothing is called.
    pub(crate) async fn call_outside(
        &self,
        outside: &'static dyn Outside,
        job: &FinishJob,
    ) -> Result<(), StoreError> {
        let Some(provider) = &self.0.provider else {
            return Ok(());
        };
        // Before the mark: whatever the mark takes counts, too.
        let begun = Instant::now();
        let Some(call) = self.mark_call(outside, job.claim, provider.timeout).await? else {
            return Ok(());
        };
        crash::point("before_call");
        // A process that was paused since may have been taken over, and its call been proven void: it must not be sent any more.
        let answer = if begun.elapsed() < provider.timeout {
            let span = trace::below(|| tracing::info_span!("call provider", otel.kind = "client"));
            let called = provider.call(&call.key, &call.body, &job.trace_id);
            called.instrument(span).await
        } else {
            CallAnswer::NotSent
        };
        crash::point("after_call");
        self.keep_answer(outside, job.claim, &answer).await
    }

    async fn mark_call(
        &self,
        outside: &'static dyn Outside,
        claim: ClaimRef,
        timeout: Duration,
    ) -> Result<Option<Call>, StoreError> {
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        let call = outside.mark_call(&mut transaction, claim, timeout).await?;
        commit(transaction).await?;
        Ok(call)
    }

    async fn keep_answer(
        &self,
        outside: &'static dyn Outside,
        claim: ClaimRef,
        answer: &CallAnswer,
    ) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match outside
                .store_answer(&self.0.pools.work, claim, answer)
                .await
            {
                Err(error) if error.is_passing() && tries < ANSWER_TRIES.0 => {
                    tokio::time::sleep(ANSWER_TRIES.1).await;
                }
                // Lost answers are asked for again at the status endpoint.
                kept => return kept,
            }
        }
    }

    /// Verifies a record whose effect lies outside, asking the provider when the store alone cannot tell. `None` when the record
    /// has moved on.
    pub(crate) async fn reconcile(
        &self,
        outside: &'static dyn Outside,
        record_id: i64,
        compensating: bool,
    ) -> Result<Option<RecordState>, StoreError> {
        match self.verify(record_id, compensating).await? {
            Some(RecordState::Unknown) => {}
            decided => return Ok(decided),
        }
        if !self.ask_outside(outside, record_id).await? {
            return Ok(Some(RecordState::Unknown));
        }
        self.verify(record_id, compensating).await
    }

    /// Asks the provider what became of a record's call and keeps what it says. Answers whether it was asked.
    pub(crate) async fn ask_outside(
        &self,
        outside: &'static dyn Outside,
        record_id: i64,
    ) -> Result<bool, StoreError> {
        let Some(provider) = &self.0.provider else {
            return Ok(false);
        };
        let pool = &self.0.pools.work;
        let patience = provider.timeout * 2;
        let Some(question) = outside.claim_question(pool, record_id, patience).await? else {
            return Ok(false);
        };
        let asked_ms = self.monotonic_ms();
        let span = trace::continuing(&question.trace_id, record_id, || {
            tracing::info_span!("ask provider", otel.kind = "client", record_id)
        });
        let asked = provider.ask(&question.key, &question.trace_id);
        let status = asked.instrument(span).await;
        let probe = Probe {
            record_id,
            epoch: question.epoch,
            asked_ms,
            answered_ms: self.monotonic_ms(),
            finding: status.as_str(),
        };
        outside
            .store_probe(pool, self.0.instance_id, &probe)
            .await?;
        tracing::info!(
            record_id,
            trace_id = question.trace_id,
            said = status.as_str(),
            "asked the provider what became of a call"
        );
        Ok(true)
    }

    fn monotonic_ms(&self) -> i64 {
        i64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}
