//! The scanner, on every instance: ends what nobody ended, and purges what has expired. In small sets, so that it never disturbs
//! submissions.

use std::time::Duration;

use domain::RecordState;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use crate::{
    Engine, StoreError,
    store::{
        actions::{ClaimRef, REGISTRY},
        compensation::expire_compensations,
        outbox, panel,
        record::Executor,
        recovery::reclaim,
        scan::{self, Due},
        watch::mark_stuck,
    },
    submit::finish::{self, Executed, FinishJob},
    trace, watch,
};

/// How many records one scan takes.
const SET: i64 = 50;
/// How many stuck records one scan counts.
const STUCK_SET: i64 = 1000;
/// The pause after a first attempt that did not end a record, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(600));
/// After this many attempts a record waits for its caller or a person: about two hours.
const MAX_ATTEMPTS: i32 = 16;
/// How many rows one purge takes of each kind.
const PURGE_SET: i64 = 500;
/// How many counters are moved at once: more than all instances write meanwhile.
const ROLL_SET: i64 = 5_000;
/// How long arrivals are kept, in days; the panel looks back over seven.
const ARRIVALS_KEPT_DAYS: i32 = 8;

impl Engine {
    /// Scans and purges until it is told to stop; what fails is logged and tried again at the next turn.
    pub async fn run_scanner(&self, interval: Duration, stopping: CancellationToken) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stopping.run_until_cancelled(ticks.tick()).await.is_some() {
            // A full set means that there may be more: no pause between those.
            while !stopping.is_cancelled() {
                match self.scan_once().await {
                    Ok(taken) if i64::try_from(taken).is_ok_and(|taken| taken >= SET) => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(error = &error as &dyn std::error::Error, "a scan failed");
                        break;
                    }
                }
            }
            if let Err(error) = self.purge_once().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "a purge failed");
            }
        }
    }

    /// Takes what is due, verifies it, and runs again what did not happen. Answers how many records it took.
    ///
    /// # Errors
    /// When nothing could be taken. A record that fails on its own is noted and keeps nobody else waiting.
    pub async fn scan_once(&self) -> Result<usize, StoreError> {
        let scanned = self.scan().await;
        watch::note_scan(scanned.is_ok());
        scanned
    }

    async fn scan(&self) -> Result<usize, StoreError> {
        // First, so that what is recovered at this very turn is counted as well.
        let stuck_after = self.0.config.stuck_after;
        let (stuck, now) = mark_stuck(&self.0.pools.work, stuck_after, STUCK_SET).await?;
        watch::note_heartbeat(now);
        if stuck > 0 {
            tracing::warn!(stuck, "records became stuck");
        }
        let due = scan::take_due(&self.0.pools.work, SET, PAUSES.0, PAUSES.1, MAX_ATTEMPTS).await?;
        let taken = due.len();
        for record in due {
            let span = trace::continuing(&record.trace_id, record.id, || {
                tracing::info_span!("recover", trace_id = record.trace_id, record_id = record.id)
            });
            let note = match self.recover(&record).instrument(span).await {
                Ok(note) => note,
                Err(error) => {
                    tracing::warn!(
                        record_id = record.id,
                        error = &error as &dyn std::error::Error,
                        "a record could not be recovered"
                    );
                    Some("the store failed")
                }
            };
            if let Some(note) = note {
                tracing::info!(
                    record_id = record.id,
                    trace_id = record.trace_id,
                    attempts = record.attempts,
                    note,
                    "still unfinished"
                );
                scan::update_scan_note(&self.0.pools.work, record.id, note).await?;
            }
        }
        Ok(taken)
    }

    /// Ends what nobody decided in time, and deletes one small set of everything that has expired.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn purge_once(&self) -> Result<(), StoreError> {
        let pool = &self.0.pools.work;
        expire_compensations(pool, PURGE_SET).await?;
        let records = scan::delete_expired_records(pool, PURGE_SET).await?;
        let arrivals = scan::delete_old_arrivals(pool, ARRIVALS_KEPT_DAYS, PURGE_SET).await?;
        outbox::delete_old(pool, ARRIVALS_KEPT_DAYS, PURGE_SET).await?;
        let tokens = scan::delete_expired_tokens(pool, PURGE_SET).await?;
        panel::roll_counters(pool, ROLL_SET).await?;
        if records + arrivals + tokens > 0 {
            tracing::debug!(records, arrivals, tokens, "purged");
        }
        Ok(())
    }

    /// Brings one record on; `Some` says why it is still unfinished.
    async fn recover(&self, due: &Due) -> Result<Option<&'static str>, StoreError> {
        let action = REGISTRY.of_stored(&due.action_type)?;
        watch::note_taken(action.action_type());
        let verified = match (due.state, action.outside()) {
            // What ran out of tries and was refused now and then is run again as it is.
            (RecordState::FailedRetryable, None) => Some(due.state),
            (_, Some(outside)) => self.reconcile(outside, due.id, true).await?,
            (_, None) => self.verify(due.id, true).await?,
        };
        let Some(state) = verified else {
            return Ok(None);
        };
        // Verification of a claim that was PROCESSING has fenced it.
        let epoch = due.epoch + i64::from(due.state == RecordState::Processing);
        if state == RecordState::Unknown {
            return Ok(Some("nobody can tell yet whether it happened"));
        }
        if state.is_terminal() {
            watch::note_recovered(action.action_type());
        }
        if state != RecordState::FailedRetryable || !action.policy().local_effects_only {
            return Ok(None);
        }
        let lease = self.lease_of(action);
        let token = Uuid::new_v4();
        let reclaimed = reclaim(
            &self.0.pools.work,
            self.0.instance_id,
            due.id,
            epoch,
            token,
            lease,
            None,
        )
        .await?;
        let Some(epoch) = reclaimed else {
            return Ok(None);
        };
        let job = FinishJob {
            claim: ClaimRef {
                record_id: due.id,
                epoch,
                token,
            },
            action,
            trace_id: due.trace_id.clone(),
            executor: Executor::Scanner,
        };
        Ok(match finish::execute(self, job).await {
            Executed::Ended(row) if row.state.is_terminal() => {
                watch::note_recovered(action.action_type());
                tracing::info!(
                    record_id = due.id,
                    trace_id = due.trace_id,
                    state = %row.state,
                    outcome = row.bucket.as_ref(),
                    "recovered an execution that did not end"
                );
                None
            }
            Executed::Ended(_) => Some("it failed again for a reason that may pass"),
            Executed::Overtaken { .. } | Executed::Missing => None,
            Executed::Undecided => Some("nobody could be told how it ended"),
        })
    }
}
