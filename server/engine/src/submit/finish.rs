//! The second commit: effects and final state in one transaction, for a set of claims.

use std::time::{Duration, Instant};

use domain::Bucket;
use sqlx::PgPool;
use tracing::Instrument;

use super::answers;
use crate::{
    Engine, StoreError, crash,
    store::{
        actions::{Action, ClaimRef},
        arrival::find_arrival,
        record::{Executor, FinishRow, FoundRecord, find_record_settled, finish_many},
        transaction::{begin_finish, commit},
    },
    trace, watch,
};

/// One claim that is to be executed.
#[derive(Clone)]
pub(crate) struct FinishJob {
    pub(crate) claim: ClaimRef,
    pub(crate) action: &'static dyn Action,
    pub(crate) trace_id: String,
    pub(crate) executor: Executor,
}

/// What became of one claim of a set.
#[derive(Debug, Clone)]
pub(crate) enum Finished {
    /// Its effects and its final state are committed.
    Committed(FinishRow),
    /// The guard found no such claim: it was taken over, or was never there.
    NoClaim,
}

/// What became of one execution.
pub(crate) enum Executed {
    /// It ended under its own claim.
    Ended(FinishRow),
    /// Somebody took the claim over, or an earlier try had committed and its answer was lost; this is what is true now, and
    /// into which bucket the arrival was decided.
    Overtaken {
        record: FoundRecord,
        bucket: Option<Bucket>,
    },
    /// There is no record at all.
    Missing,
    /// Nobody could be told; the lease will end and the record be verified.
    Undecided,
}

/// Executes a claim: effects, final state, commit; and finds out what is true when that did not go straight.
pub(crate) async fn execute(engine: &Engine, job: FinishJob) -> Executed {
    let span = trace::execution(&job.trace_id, job.claim.record_id, job.claim.epoch);
    let (action, begun) = (job.action.action_type(), Instant::now());
    let executed = call_and_finish(engine, job).instrument(span).await;
    watch::note_finish(action, begun);
    executed
}

async fn call_and_finish(engine: &Engine, job: FinishJob) -> Executed {
    let (claim, executor, action) = (job.claim, job.executor, job.action);
    if let Some(outside) = action.outside()
        && let Err(error) = engine.call_outside(outside, &job).await
    {
        // The finish goes by what was kept; what was not is asked for again.
        tracing::warn!(
            record_id = claim.record_id,
            error = &error as &dyn std::error::Error,
            "a call outside was not wholly kept"
        );
    }
    match engine.0.finishes.run(job).await {
        Ok(Finished::Committed(row)) => {
            engine.0.message_written.notify_one();
            Executed::Ended(row)
        }
        // The guard is the authority: somebody took over, or an earlier try had committed and its answer was lost.
        Ok(Finished::NoClaim) => read_back(engine, claim, executor).await,
        Err(error) => {
            tracing::error!(
                record_id = claim.record_id,
                error = &error as &dyn std::error::Error,
                "an execution could not be finished"
            );
            // What may have happened outside is never given up on here: its lease ends, and it is verified.
            if action.outside().is_some() {
                return Executed::Undecided;
            }
            give_up(engine, claim, executor).await
        }
    }
}

/// What is true now, seen behind the row lock and flushed.
async fn read_back(engine: &Engine, claim: ClaimRef, executor: Executor) -> Executed {
    let read = async {
        let mut transaction = begin_finish(&engine.0.pools.work).await?;
        let record = find_record_settled(&mut transaction, claim.record_id).await?;
        let arrival = match executor.arrival_id() {
            Some(id) => find_arrival(&mut transaction, id, claim.record_id).await?,
            None => Some(None),
        };
        commit(transaction).await?;
        Ok::<_, StoreError>(record.zip(arrival))
    };
    match read.await {
        // The arrival was written with the claim. Without it the claim was forgotten, and its number may be another key's.
        Ok(None) => Executed::Missing,
        Ok(Some((record, bucket))) => Executed::Overtaken { record, bucket },
        Err(error) => {
            tracing::error!(
                record_id = claim.record_id,
                error = &error as &dyn std::error::Error,
                "what became of an execution cannot be read"
            );
            Executed::Undecided
        }
    }
}

/// Marks a claim as failed for a reason that may pass, so that the same key runs again at once.
async fn give_up(engine: &Engine, claim: ClaimRef, executor: Executor) -> Executed {
    let row = answers::retryable_row(claim, executor);
    let mark = async {
        let mut transaction = begin_finish(&engine.0.pools.work).await?;
        let marked = finish_many(
            &mut transaction,
            engine.0.instance_id,
            engine.0.config.retention,
            std::slice::from_ref(&row),
        )
        .await?;
        commit(transaction).await?;
        Ok::<_, StoreError>(!marked.is_empty())
    };
    match mark.await {
        Ok(true) => Executed::Ended(row),
        Ok(false) => read_back(engine, claim, executor).await,
        Err(_) => Executed::Undecided,
    }
}

/// Finishes a set of claims in one transaction and answers in the order of its items.
pub(crate) async fn finish_set(
    pool: &PgPool,
    instance_id: i32,
    retention: Duration,
    jobs: &[FinishJob],
) -> Result<Vec<Finished>, StoreError> {
    let mut transaction = begin_finish(pool).await?;
    let mut rows = Vec::with_capacity(jobs.len());
    for (action, claims) in by_action(jobs) {
        for (record_id, verdict) in action.run_effects(&mut transaction, &claims).await? {
            let job = jobs.iter().find(|job| job.claim.record_id == record_id);
            let job = job.ok_or_else(|| {
                StoreError::Corrupt("a verdict for a claim that was not asked for".into())
            })?;
            rows.push(answers::finish_row(job, verdict));
        }
    }
    if !rows.is_empty() {
        let finished = finish_many(&mut transaction, instance_id, retention, &rows).await?;
        // INVARIANT: the guard's locks are held, so whatever had a verdict can be finished; else nothing may be committed.
        if finished.len() != rows.len() {
            return Err(StoreError::Corrupt(format!(
                "{} of {} guarded claims were finished",
                finished.len(),
                rows.len()
            )));
        }
    }
    crash::point("inside_finish");
    commit(transaction).await?;
    crash::point("after_finish");
    Ok(jobs
        .iter()
        .map(|job| {
            let row = rows
                .iter()
                .find(|row| row.claim.record_id == job.claim.record_id);
            row.map_or(Finished::NoClaim, |row| Finished::Committed(row.clone()))
        })
        .collect())
}

/// The claims of each action, so that each runs its effects once for all of its own.
fn by_action(jobs: &[FinishJob]) -> Vec<(&'static dyn Action, Vec<ClaimRef>)> {
    let mut groups: Vec<(&'static dyn Action, Vec<ClaimRef>)> = Vec::new();
    for job in jobs {
        match groups
            .iter_mut()
            .find(|(action, _)| action.action_type() == job.action.action_type())
        {
            Some((_, claims)) => claims.push(job.claim),
            None => groups.push((job.action, vec![job.claim])),
        }
    }
    groups
}
