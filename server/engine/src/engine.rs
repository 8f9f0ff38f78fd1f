//! The handle, its parts and its life.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use domain::view::FrontLockHealth;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use crate::{
    EngineConfig, StoreError, crash,
    flight::Flights,
    front_lock::FrontLock,
    outside::{Provider, Webhook},
    pipeline::Pipeline,
    recorder::Recorder,
    store::{
        self,
        record::{ClaimRow, Claimed},
    },
    submit::finish::{FinishJob, Finished},
};

/// How many sets of claims are on their way at once: the second is gathered and sent while the first commits.
const CLAIM_SETS: usize = 2;
/// One finish at a time: all touch the counters of this instance, so a second would only wait for the first.
const FINISH_SETS: usize = 1;

/// How long a set may take: longer than it waits for locks and the disk, and so short that what is repeated after it still ends
/// within the usual lease.
const SET_PATIENCE: Duration = Duration::from_secs(10);

/// The connections of the engine. Reading has its own, so that no screen can starve a submission.
#[derive(Debug, Clone)]
pub struct Pools {
    /// Claims, finishes and what belongs to them.
    pub work: PgPool,
    /// Everything that is only shown.
    pub reading: PgPool,
}

/// The engine: a cheap handle to one instance.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) config: EngineConfig,
    pub(crate) pools: Pools,
    pub(crate) instance_id: i32,
    pub(crate) flights: Flights,
    pub(crate) claims: Pipeline<ClaimRow, Claimed>,
    pub(crate) finishes: Pipeline<FinishJob, Finished>,
    pub(crate) recorder: Recorder,
    pub(crate) executions: TaskTracker,
    pub(crate) stopping: CancellationToken,
    /// Wakes this process's runner of bulks; another's finds a bulk by itself.
    pub(crate) bulk_started: Notify,
    /// Wakes this process's relay; it also looks by itself.
    pub(crate) message_written: Notify,
    pub(crate) provider: Option<Provider>,
    pub(crate) webhook: Option<Webhook>,
    pub(crate) front_lock: Option<FrontLock>,
    /// The beginning of this process's monotonic clock.
    pub(crate) started: Instant,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("instance_id", &self.0.instance_id)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Registers this instance and starts its pipelines. The schema must be there already.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn start(pools: Pools, config: EngineConfig) -> Result<Self, StoreError> {
        let (fsync, full_page_writes) = store::transaction::find_durability(&pools.work).await?;
        if fsync != "on" || full_page_writes != "on" {
            tracing::warn!(
                fsync,
                full_page_writes,
                "this Postgres may forget a commit when its machine fails"
            );
        }
        let unusable = |error: reqwest::Error| StoreError::Corrupt(error.without_url().to_string());
        let provider = match config.reward.clone() {
            Some(remote) => Some(Provider::new(remote.url, remote.timeout).map_err(unusable)?),
            None => None,
        };
        let webhook = match config.webhook.clone() {
            Some(remote) => Some(Webhook::new(remote.url, remote.timeout).map_err(unusable)?),
            None => None,
        };
        let front_lock = match &config.front_lock {
            Some(front_lock) => Some(FrontLock::start(front_lock).await.ok_or_else(|| {
                StoreError::Corrupt("the front lock's URL is none of Redis's".into())
            })?),
            None => None,
        };
        let instance_id =
            store::instance::insert_instance(&pools.work, &config.instance_name).await?;
        let claims = {
            let pool = pools.work.clone();
            Pipeline::start(CLAIM_SETS, SET_PATIENCE, move |items: Arc<[ClaimRow]>| {
                let pool = pool.clone();
                Box::pin(async move { claim_set(&pool, instance_id, &items).await })
            })
        };
        let finishes = {
            let (pool, retention) = (pools.work.clone(), config.retention);
            Pipeline::start(FINISH_SETS, SET_PATIENCE, move |items: Arc<[FinishJob]>| {
                let pool = pool.clone();
                Box::pin(async move {
                    crate::submit::finish::finish_set(&pool, instance_id, retention, &items).await
                })
            })
        };
        Ok(Self(Arc::new(Inner {
            flights: Flights::default(),
            claims,
            finishes,
            recorder: Recorder::start(pools.work.clone(), instance_id),
            executions: TaskTracker::new(),
            stopping: CancellationToken::new(),
            bulk_started: Notify::new(),
            message_written: Notify::new(),
            provider,
            webhook,
            front_lock,
            started: Instant::now(),
            instance_id,
            config,
            pools,
        })))
    }

    /// Takes no more work, lets running executions finish for at most `deadline`, and writes what is still to be recorded.
    /// What does not finish in time stays PROCESSING and is recovered by its lease.
    pub async fn stop(&self, deadline: Duration) {
        self.0.stopping.cancel();
        self.0.executions.close();
        let end = Instant::now() + deadline;
        if tokio::time::timeout_at(end.into(), self.0.executions.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                left = self.0.executions.len(),
                "executions were left for the scanner"
            );
        }
        // A store that is away must not keep the process from ending.
        if tokio::time::timeout(deadline, self.flush()).await.is_err() {
            tracing::error!("arrivals that were answered could not be recorded in time");
        }
    }

    /// Waits until every arrival that was answered before is counted.
    pub async fn flush(&self) {
        self.0.recorder.flush().await;
    }

    /// How the front lock is, as this process sees it.
    pub fn front_lock_health(&self) -> FrontLockHealth {
        let front_lock = self.0.front_lock.as_ref();
        front_lock.map_or(FrontLockHealth::Off, FrontLock::health)
    }

    /// Whether the store answers; if so, whether it has the schema that this process needs.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn has_schema(&self) -> Result<bool, StoreError> {
        let versions: Vec<i64> = store::MIGRATOR.iter().map(|step| step.version).collect();
        let applied =
            store::transaction::count_migrations(&self.0.pools.reading, &versions).await?;
        Ok(usize::try_from(applied).is_ok_and(|applied| applied == versions.len()))
    }
}

/// Claims a set and answers in the order of its items.
async fn claim_set(
    pool: &PgPool,
    instance_id: i32,
    items: &[ClaimRow],
) -> Result<Vec<Claimed>, StoreError> {
    crash::point("before_claim");
    let mut connection = pool.acquire().await?;
    let mut answers: Vec<(Uuid, Claimed)> =
        store::record::claim_many(&mut connection, instance_id, items).await?;
    drop(connection);
    crash::point("after_claim");
    items
        .iter()
        .map(|item| {
            let at = answers.iter().position(|(token, _)| *token == item.token);
            // Purged between the two statements: whoever repeats this claims it anew.
            let at = at
                .ok_or_else(|| StoreError::Corrupt("a key was neither claimed nor found".into()))?;
            Ok(answers.swap_remove(at).1)
        })
        .collect()
}
