//! The relay: takes messages that were written with their effects out of the outbox, to a webhook or, without one, straight to
//! their readers. At least once outside, under a key that stays the same; exactly once recorded inside.

use std::time::Duration;

use domain::view::{MessageView, NotificationView};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use crate::{
    CompensateError, Engine, Requester, StoreError,
    compensate::By,
    crash,
    outside::Webhook,
    store::{
        audit,
        outbox::{self, Claimed, MessageRow, NotificationRow, Revived},
        rfc3339,
        transaction::{begin_finish, commit},
    },
    trace,
    watch::{self, RelayResult},
};

/// How many messages one turn takes.
const SET: i64 = 100;
/// How many are on their way to the webhook at once.
const AT_ONCE: usize = 8;
/// How long an undelivered message waits for its next turn at most.
const TICK: Duration = Duration::from_secs(1);
/// How long messages are gathered, once there is one.
const GATHER: Duration = Duration::from_millis(100);
/// The pause after the first failure, which doubles with each, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(600));
/// After so many failures a message is a dead letter: about an hour and a half.
const MAX_ATTEMPTS: i32 = 16;
/// How many notifications a page shows.
const SHOWN: i64 = 20;
/// How much of an error is kept, in characters.
const MAX_ERROR: usize = 300;

/// What became of letting a dead letter be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// It will be tried again.
    Done,
    /// It is no dead letter.
    NotDead,
}

impl Engine {
    /// Delivers messages until it is told to stop; what fails is logged and tried again.
    pub async fn run_relay(&self, stopping: CancellationToken) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                // Those that come together go out together: one statement for each submission would cost as much as it.
                () = self.0.message_written.notified() => tokio::time::sleep(GATHER).await,
                _ = ticks.tick() => {}
            }
            // A full set means that there may be more: no pause between those.
            while !stopping.is_cancelled() {
                match self.relay_once().await {
                    Ok(taken) if taken >= SET => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "the relay failed"
                        );
                        break;
                    }
                }
            }
        }
    }

    /// Takes one set of messages that are due. Answers how many it took.
    ///
    /// # Errors
    /// When the store fails; what was claimed is delivered again when its claim has run out.
    pub async fn relay_once(&self) -> Result<i64, StoreError> {
        let pool = &self.0.pools.work;
        let Some(webhook) = &self.0.webhook else {
            let delivered = outbox::deliver_inside(pool, SET).await?;
            watch::note_relay(RelayResult::Delivered, delivered.unsigned_abs());
            return Ok(delivered);
        };
        let token = Uuid::new_v4();
        // Each of the set may have to wait for those before it.
        let turns = u32::try_from(SET)
            .unwrap_or(u32::MAX)
            .div_ceil(AT_ONCE as u32);
        let lease = webhook.timeout * (turns + 1);
        let claimed = outbox::claim_due(pool, token, lease, SET).await?;
        let taken = i64::try_from(claimed.len()).unwrap_or(SET);
        let deliveries = claimed.into_iter().map(|message| {
            let trace_id = message.trace_id.as_deref().unwrap_or_default();
            let span = trace::continuing(trace_id, message.record_id, || {
                tracing::info_span!("deliver", trace_id, message_id = message.id)
            });
            self.deliver(webhook, token, message).instrument(span)
        });
        let mut deliveries = stream::iter(deliveries).buffer_unordered(AT_ONCE);
        while let Some(delivered) = deliveries.next().await {
            delivered?;
        }
        Ok(taken)
    }

    async fn deliver(
        &self,
        webhook: &Webhook,
        token: Uuid,
        message: Claimed,
    ) -> Result<(), StoreError> {
        let pool = &self.0.pools.work;
        let body = json!({
            "id": message.id.to_string(),
            "topic": message.topic,
            "created_at": rfc3339(message.created_at),
            "payload": message.payload,
        });
        let key = format!("outbox:{}", message.id);
        let trace_id = message
            .trace_id
            .unwrap_or_else(|| Uuid::new_v4().simple().to_string());
        match webhook.deliver(&key, &body, &trace_id).await {
            Ok(()) => {
                crash::point("after_delivery");
                watch::note_relay(RelayResult::Delivered, 1);
                if !outbox::mark_delivered_if_claimed(pool, message.id, token).await? {
                    tracing::warn!(
                        message_id = message.id,
                        "a message was delivered more than once"
                    );
                }
            }
            Err(error) => {
                let error: String = error.chars().take(MAX_ERROR).collect();
                let pause = pause_after(message.attempts);
                let result = if pause.is_some() {
                    RelayResult::Failed
                } else {
                    RelayResult::Dead
                };
                watch::note_relay(result, 1);
                tracing::warn!(
                    message_id = message.id,
                    trace_id,
                    attempts = message.attempts,
                    dead = pause.is_none(),
                    error,
                    "a message could not be delivered"
                );
                outbox::mark_failed_if_claimed(pool, message.id, token, &error, pause).await?;
            }
        }
        Ok(())
    }

    /// Lets a dead letter be tried again, with a reason, which is kept in the audit.
    ///
    /// # Errors
    /// [`CompensateError`]; nothing was changed then.
    pub async fn replay_message(
        &self,
        requester: &Requester,
        message_id: &str,
        reason: &str,
    ) -> Result<Replayed, CompensateError> {
        let by = By::new(requester)?;
        crate::compensate::check_reason(reason)?;
        let id: i64 = message_id.parse().map_err(|_| CompensateError::NotFound)?;
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        let (replayed, outcome) = match outbox::revive_if_dead(&mut transaction, id).await? {
            Revived::Done => (Replayed::Done, "applied"),
            Revived::MovedOn => (Replayed::NotDead, "refused"),
            Revived::Missing => return Err(CompensateError::NotFound),
        };
        let detail = json!({ "outcome": outcome, "reason": reason, "from": by.origin, "trace_id": by.trace_id });
        let object = format!("outbox/{id}");
        audit::insert_entry(
            &mut *transaction,
            by.actor_id,
            "outbox.replay",
            &object,
            &detail,
        )
        .await?;
        commit(transaction).await?;
        self.0.message_written.notify_one();
        Ok(replayed)
    }

    /// The newest notifications of this account.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_notifications(
        &self,
        actor: &crate::Actor,
    ) -> Result<Vec<NotificationView>, StoreError> {
        let rows = outbox::list_notifications(&self.0.pools.reading, actor.id, SHOWN).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}

/// The pause after so many attempts; `None` when they were too many.
fn pause_after(attempts: i32) -> Option<Duration> {
    if attempts >= MAX_ATTEMPTS {
        return None;
    }
    let doublings = u32::try_from(attempts.saturating_sub(1))
        .unwrap_or(0)
        .min(20);
    Some((PAUSES.0 * 2_u32.pow(doublings)).min(PAUSES.1))
}

impl From<MessageRow> for MessageView {
    fn from(row: MessageRow) -> Self {
        Self {
            id: row.id.to_string(),
            topic: row.topic,
            payload: row.payload,
            created_at: rfc3339(row.created_at),
            delivered_at: row.delivered_at.map(rfc3339),
            attempts: row.attempts,
            dead_at: row.dead_at.map(rfc3339),
            last_error: row.last_error,
        }
    }
}

impl From<NotificationRow> for NotificationView {
    fn from(row: NotificationRow) -> Self {
        Self {
            id: row.id.to_string(),
            topic: row.topic,
            at: rfc3339(row.created_at),
            student: row.student_name,
            title: row.title,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_end() {
        let seconds = |attempts| pause_after(attempts).map(|pause| pause.as_secs());
        assert_eq!(
            [1, 2, 5, 10, 15].map(seconds),
            [Some(1), Some(2), Some(16), Some(512), Some(600)]
        );
        assert_eq!(seconds(16), None);
    }
}
