//! What is only shown, besides how tasks stand: submissions, requests, points, rewards, the panel.

use domain::{
    IdempotencyKey,
    view::{
        ActionCounters, Counters, OpenRedemptionView, PanelView, RedemptionView, RequestView,
        RewardView, SeriesPoint, SubmissionView, Window,
    },
};

use crate::{
    Actor, Engine, StoreError,
    store::{actions::REGISTRY, panel, redemption, rfc3339, task, transaction::begin_reading},
};

/// The longest page of a list.
pub(crate) const MAX_PAGE: u32 = 200;
/// A page when none is asked for.
pub(crate) const DEFAULT_PAGE: u32 = 50;

impl Engine {
    /// A submission that this account may see.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find_submission(
        &self,
        actor: &Actor,
        id: &str,
    ) -> Result<Option<SubmissionView>, StoreError> {
        let Ok(id) = id.parse() else { return Ok(None) };
        Ok(task::find_submission(&self.0.pools.reading, actor, id).await?)
    }

    /// What became of a request of this account.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find_request(
        &self,
        actor: &Actor,
        action: &str,
        key: &IdempotencyKey,
    ) -> Result<Option<RequestView>, StoreError> {
        task::find_request(&self.0.pools.reading, actor, action, key.as_str()).await
    }

    /// The points of this account.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn points_balance(&self, actor: &Actor) -> Result<i64, StoreError> {
        Ok(task::find_balance(&self.0.pools.reading, actor.id)
            .await?
            .unwrap_or(0))
    }

    /// The rewards, with the sequence that this student's next redemption of each is to have.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_rewards(&self, actor: &Actor) -> Result<Vec<RewardView>, StoreError> {
        let rows = redemption::list_rewards(&self.0.pools.reading, actor.id).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    /// What this student redeemed, newest first; of very much, the newest.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_redemptions(&self, actor: &Actor) -> Result<Vec<RedemptionView>, StoreError> {
        let limit = i64::from(MAX_PAGE);
        let rows = redemption::list_redemptions(&self.0.pools.reading, actor.id, limit).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    /// This student's redemptions that are not decided yet, oldest first, whichever device asked for them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_open_redemptions(
        &self,
        actor: &Actor,
    ) -> Result<Vec<OpenRedemptionView>, StoreError> {
        let rows = redemption::list_open_redemptions(&self.0.pools.reading, actor.id).await?;
        let view = |(reward_id, key): (i64, String)| OpenRedemptionView {
            reward_id: reward_id.to_string(),
            key,
        };
        Ok(rows.into_iter().map(view).collect())
    }

    /// A redemption of this student.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find_redemption(
        &self,
        actor: &Actor,
        id: &str,
    ) -> Result<Option<RedemptionView>, StoreError> {
        let Ok(id) = id.parse() else { return Ok(None) };
        let row = redemption::find_redemption(&self.0.pools.reading, actor.id, id).await?;
        Ok(row.map(Into::into))
    }

    /// The panel's numbers, all of one moment.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn panel(&self, window: Window) -> Result<PanelView, StoreError> {
        let mut snapshot = begin_reading(&self.0.pools.reading).await?;
        let panel::Span { from, now } = panel::find_span(&mut *snapshot, window).await?;
        let in_window =
            panel::list_window_counters(&mut snapshot, from, window.step_minutes()).await?;
        let ever = panel::list_total_counters(&mut snapshot).await?;
        let gauges = panel::find_gauges(&mut snapshot, self.0.config.stuck_after).await?;
        let latencies = panel::find_latencies(&mut snapshot, from).await?;
        snapshot.commit().await?;

        let mut counters = Counters::default();
        let mut series: Vec<_> = (0..window.minutes() / window.step_minutes())
            .map(|step| SeriesPoint {
                at: rfc3339(
                    from + time::Duration::minutes(i64::from(step * window.step_minutes())),
                ),
                counters: Counters::default(),
            })
            .collect();
        let flow = |name: &str| latencies.flows.iter().find(|(action, _)| action == name);
        let mut by_action: Vec<_> = REGISTRY
            .iter()
            .map(|action| ActionCounters {
                action: action.action_type().to_string(),
                counters: Counters::default(),
                flow_ms: flow(action.action_type().as_str())
                    .map(|(_, latency)| *latency)
                    .unwrap_or_default(),
            })
            .collect();
        for row in &in_window {
            add(&mut counters, &row.name, row.n)?;
            // A counter of the next minute can be there already, written just after this snapshot's clock was read.
            let step = usize::try_from(row.step).unwrap_or(0).min(series.len() - 1);
            add(&mut series[step].counters, &row.name, row.n)?;
            if let Some(action) = by_action
                .iter_mut()
                .find(|action| action.action == row.action_type)
            {
                add(&mut action.counters, &row.name, row.n)?;
            }
        }
        let mut totals = Counters::default();
        for row in &ever {
            add(&mut totals, &row.name, row.n)?;
        }
        Ok(PanelView {
            at: rfc3339(now),
            window,
            counters,
            totals,
            gauges,
            by_action,
            series,
            latency_ms: latencies.all,
            front_lock: self.front_lock_health(),
            stuck_after_seconds: self
                .0
                .config
                .stuck_after
                .as_secs()
                .try_into()
                .unwrap_or(i64::MAX),
        })
    }
}

/// The cursor and the length of a page; `None` when the cursor is none of ours.
pub(crate) fn cursor(after: Option<&str>, limit: Option<u32>) -> Option<(Option<i64>, i64)> {
    let after = after.map(str::parse).transpose().ok()?;
    Some((
        after,
        i64::from(limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE)),
    ))
}

/// Makes a page of what was found, which is one more than asked for when there is a next page.
pub(crate) fn page<T>(
    mut found: Vec<T>,
    limit: i64,
    cursor: impl Fn(&T) -> String,
) -> (Vec<T>, Option<String>) {
    let full = i64::try_from(found.len()).is_ok_and(|n| n > limit);
    if full {
        found.pop();
    }
    let next = if full { found.last().map(cursor) } else { None };
    (found, next)
}

fn add(counters: &mut Counters, name: &str, n: i64) -> Result<(), StoreError> {
    counters
        .add(name, n)
        .then_some(())
        .ok_or_else(|| StoreError::Corrupt(format!("counter {name:?}")))
}
