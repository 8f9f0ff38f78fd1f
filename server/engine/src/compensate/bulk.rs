//! One action on many records: frozen at the click, run in the background by one instance at a time, record by record.

use std::{collections::BTreeMap, time::Duration};

use domain::{
    IdempotencyKey, ProblemCode,
    compensation::{BulkOutcome, CompensationAction, CompensationStatus},
    view::{BulkView, RecordFilter},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Ask, Attempt, By, CompensateError, Requester, Written, check_reason, fingerprint};
use crate::{
    Engine, StoreError,
    store::{
        bulk::{
            ClaimedBulk, NewBulk, claim_bulk, find_bulk, find_bulk_by_key, find_open_item,
            insert_bulk, insert_items, list_results, mark_bulk_finished, mark_item_if_open,
            release_bulk, renew_bulk,
        },
        transaction::{begin_finish, commit},
    },
};

/// The most records of one bulk: what one person can answer for.
const MAX_BULK: usize = 10_000;
/// How often a record is tried before the bulk goes on without it, and the pause between.
const TRIES: (u32, Duration) = (3, Duration::from_millis(300));

/// Which records a bulk is for.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkTarget {
    /// These.
    Ids(Vec<String>),
    /// Whatever the list shows for this filter, at the click.
    Filter(Box<RecordFilter>),
}

/// Why a bulk was not taken up.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BulkError {
    /// As for a single one.
    #[error(transparent)]
    Compensate(#[from] CompensateError),
    /// An id is no id.
    #[error("{0:?} is no record's id")]
    InvalidId(String),
    /// Too many records, or none named.
    #[error("a bulk has 1 to {MAX_BULK} records")]
    InvalidSize,
}

impl From<StoreError> for BulkError {
    fn from(error: StoreError) -> Self {
        CompensateError::from(error).into()
    }
}

impl From<sqlx::Error> for BulkError {
    fn from(error: sqlx::Error) -> Self {
        StoreError::from(error).into()
    }
}

/// How far one step of a bulk came.
enum BulkStep {
    /// One record has its outcome.
    Item,
    /// Every record has.
    Finished,
    /// Somebody else runs it now.
    Lost,
}

impl Engine {
    /// Freezes a bulk and lets it run in the background; the same key answers with the same bulk.
    ///
    /// # Errors
    /// [`BulkError`]; nothing was frozen then.
    pub async fn start_bulk(
        &self,
        requester: &Requester,
        target: BulkTarget,
        action: CompensationAction,
        reason: &str,
        key: &IdempotencyKey,
    ) -> Result<BulkView, BulkError> {
        let by = By::new(requester)?;
        check_reason(reason)?;
        let actor_id = by.actor_id.ok_or(CompensateError::Forbidden)?;
        let fingerprint = fingerprint(&(&target, action, reason))?;
        let pool = &self.0.pools.work;
        if let Some(found) = find_bulk_by_key(pool, actor_id, key.as_str()).await? {
            return self.same_bulk(found, fingerprint.as_bytes()).await;
        }
        let items = self.freeze(target).await?;
        let new = NewBulk {
            action,
            reason,
            actor_id,
            key: key.as_str(),
            fingerprint: fingerprint.as_bytes(),
            origin: &by.origin,
            total: i32::try_from(items.len()).map_err(|_| BulkError::InvalidSize)?,
        };
        let mut transaction = begin_finish(pool).await?;
        let Some(id) = insert_bulk(&mut transaction, &new).await? else {
            // Two clicks at the same moment.
            transaction.rollback().await?;
            let found = find_bulk_by_key(pool, actor_id, key.as_str()).await?;
            let found = found.ok_or(CompensateError::NotFound)?;
            return self.same_bulk(found, fingerprint.as_bytes()).await;
        };
        insert_items(&mut transaction, id, &items).await?;
        commit(transaction).await?;
        self.0.bulk_started.notify_one();
        Ok(self.find_bulk_row(id).await?)
    }

    /// How a bulk stands, with what became of each record; `None` when there is none of this id.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find_bulk(&self, id: &str) -> Result<Option<BulkView>, StoreError> {
        let Ok(id) = id.parse() else { return Ok(None) };
        let Some(bulk) = find_bulk(&self.0.pools.reading, id).await? else {
            return Ok(None);
        };
        let results = list_results(&self.0.pools.reading, id).await?;
        Ok(Some(BulkView {
            results: Some(results),
            ..bulk
        }))
    }

    /// Runs bulks until it is told to stop; one that fails is taken up again at the next turn.
    pub async fn run_bulks(&self, interval: Duration, stopping: CancellationToken) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = self.0.bulk_started.notified() => {}
                _ = ticks.tick() => {}
            }
            while !stopping.is_cancelled() {
                match self.run_bulk_once(&stopping).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "a bulk was interrupted"
                        );
                        break;
                    }
                }
            }
        }
    }

    /// Claims one bulk and runs it to its end, or until it is told to stop. Answers whether there was one.
    ///
    /// # Errors
    /// When the store fails; the bulk is taken up again when its claim has run out.
    pub async fn run_bulk_once(&self, stopping: &CancellationToken) -> Result<bool, StoreError> {
        let (pool, lease) = (&self.0.pools.work, self.0.config.lease);
        let Some(bulk) = claim_bulk(pool, Uuid::new_v4(), lease).await? else {
            return Ok(false);
        };
        loop {
            if stopping.is_cancelled() {
                release_bulk(pool, &bulk).await?;
                return Ok(true);
            }
            match self.bulk_step(&bulk).await? {
                BulkStep::Item => {}
                BulkStep::Finished | BulkStep::Lost => return Ok(true),
            }
        }
    }

    /// One record; tried again when the store refuses, and left out when that does not help.
    async fn bulk_step(&self, bulk: &ClaimedBulk) -> Result<BulkStep, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.bulk_item(bulk, None).await {
                Ok(step) => return Ok(step),
                Err(error) if tries < TRIES.0 => {
                    tracing::debug!(
                        bulk_id = bulk.id,
                        error = &error as &dyn std::error::Error,
                        "once more"
                    );
                    tokio::time::sleep(TRIES.1).await;
                }
                // The store is away altogether: nobody's outcome is known.
                Err(error @ StoreError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    tracing::error!(
                        bulk_id = bulk.id,
                        error = &error as &dyn std::error::Error,
                        "a record of a bulk failed"
                    );
                    return self.bulk_item(bulk, Some(BulkOutcome::Failed)).await;
                }
            }
        }
    }

    /// Outcome and transition of one record in one transaction, under the bulk's claim; `given` writes an outcome without trying.
    async fn bulk_item(
        &self,
        bulk: &ClaimedBulk,
        given: Option<BulkOutcome>,
    ) -> Result<BulkStep, StoreError> {
        let mut transaction = begin_finish(&self.0.pools.work).await?;
        if !renew_bulk(&mut transaction, bulk, self.0.config.lease).await? {
            return Ok(BulkStep::Lost);
        }
        let Some((record_id, version)) = find_open_item(&mut transaction, bulk.id).await? else {
            mark_bulk_finished(&mut transaction, bulk).await?;
            commit(transaction).await?;
            return Ok(BulkStep::Finished);
        };
        let (outcome, detail, job) = match given {
            Some(outcome) => (outcome, Some("store-failed"), None),
            None => {
                let by = By {
                    actor_id: Some(bulk.actor_id),
                    origin: bulk.origin.clone(),
                    trace_id: String::new(),
                };
                let ask = Ask {
                    record_id,
                    action: bulk.action,
                    reason: bulk.reason.clone(),
                    expected_version: Some(version),
                    key: None,
                    fingerprint: fingerprint(&(bulk.id, record_id))?,
                    bulk_id: Some(bulk.id),
                };
                match self.write_compensation(&mut transaction, &by, &ask).await? {
                    Attempt::Written(written) => {
                        let (outcome, detail) = outcome_of(&written);
                        (outcome, detail, written.job)
                    }
                    Attempt::Missing | Attempt::Repeated | Attempt::Nameless => {
                        (BulkOutcome::Skipped, Some("not-found"), None)
                    }
                }
            }
        };
        let open = mark_item_if_open(&mut transaction, bulk.id, record_id, outcome, detail).await?;
        if !open {
            return Err(StoreError::Corrupt(format!(
                "bulk {} has two runners",
                bulk.id
            )));
        }
        crate::crash::point("inside_bulk_item");
        commit(transaction).await?;
        crate::crash::point("after_bulk_item");
        self.run_job(job).await;
        Ok(BulkStep::Item)
    }

    /// The records of a target, with the versions they are seen with.
    async fn freeze(&self, target: BulkTarget) -> Result<Vec<(i64, Option<i64>)>, BulkError> {
        let mut frozen = BTreeMap::new();
        match target {
            BulkTarget::Ids(ids) => {
                for id in ids {
                    let id = id.parse().map_err(|_| BulkError::InvalidId(id))?;
                    frozen.insert(id, None);
                }
                if frozen.is_empty() {
                    return Err(BulkError::InvalidSize);
                }
            }
            BulkTarget::Filter(filter) => {
                let mut filter = RecordFilter {
                    after: None,
                    before: None,
                    limit: Some(crate::reading::MAX_PAGE),
                    ..*filter
                };
                // The list itself, page by page, so that a bulk has exactly the records that the list shows.
                while frozen.len() <= MAX_BULK {
                    let page = self.list_records(&filter).await?.unwrap_or_default();
                    for record in page.records {
                        let id = record.id.parse();
                        let id = id.map_err(|_| BulkError::InvalidId(record.id))?;
                        frozen.insert(id, Some(record.version));
                    }
                    filter.after = page.next;
                    if filter.after.is_none() {
                        break;
                    }
                }
            }
        }
        if frozen.len() > MAX_BULK {
            return Err(BulkError::InvalidSize);
        }
        Ok(frozen.into_iter().collect())
    }

    async fn same_bulk(
        &self,
        (id, stored): (i64, Vec<u8>),
        fingerprint: &[u8],
    ) -> Result<BulkView, BulkError> {
        if stored != fingerprint {
            return Err(CompensateError::KeyReused.into());
        }
        Ok(self.find_bulk_row(id).await?)
    }

    async fn find_bulk_row(&self, id: i64) -> Result<BulkView, StoreError> {
        find_bulk(&self.0.pools.work, id)
            .await?
            .ok_or_else(|| StoreError::Corrupt(format!("bulk {id} is gone")))
    }
}

/// What a compensation is within a bulk, and why.
fn outcome_of(written: &Written) -> (BulkOutcome, Option<&'static str>) {
    let outcome = match written.status {
        CompensationStatus::AwaitingApproval => BulkOutcome::AwaitingApproval,
        CompensationStatus::Refused => match written.refusal {
            Some(ProblemCode::AlreadyTerminal | ProblemCode::Stale) => BulkOutcome::Skipped,
            _ => BulkOutcome::Refused,
        },
        _ => BulkOutcome::Applied,
    };
    (outcome, written.refusal.map(Into::into))
}
