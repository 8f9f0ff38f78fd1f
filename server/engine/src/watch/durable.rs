//! What is read from the database to be watched: the same on every instance, and the same as the panel's.

use domain::RecordState;

use crate::{
    Engine, StoreError,
    store::{actions::REGISTRY, panel, transaction::begin_watching, watch},
};

/// Numbers of one moment.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Action, name of the counter as on the panel, and its value; those that are 0 are absent.
    pub counters: Vec<(String, String, i64)>,
    /// Action, and how many claims became stuck.
    pub became_stuck: Vec<(String, i64)>,
    /// What is unfinished.
    pub unfinished: Vec<Unfinished>,
    /// What waits for somebody.
    pub queues: Queues,
}

/// Unfinished records of one action in one state.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// The action.
    pub action: String,
    /// PROCESSING, UNKNOWN or FAILED_RETRYABLE.
    pub state: RecordState,
    /// How many.
    pub records: i64,
    /// How many of them are stuck.
    pub stuck: i64,
    /// Since when the oldest of them is claimed, in seconds.
    pub oldest_seconds: f64,
}

/// What waits for a person or for the relay.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Queues {
    /// Compensations that wait for a second person.
    pub approvals: i64,
    /// How long the oldest of them waits, in seconds.
    pub oldest_approval_seconds: f64,
    /// Messages that are to be delivered.
    pub undelivered: i64,
    /// How long the oldest of them waits, in seconds.
    pub oldest_undelivered_seconds: f64,
    /// Messages that were tried too often.
    pub dead: i64,
}

/// The connections of one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// Which pool.
    pub name: &'static str,
    /// Connections that are open and used by nobody.
    pub idle: usize,
    /// Connections that are used.
    pub used: usize,
    /// How many there may be.
    pub most: u32,
}

impl Engine {
    /// Reads what is watched, each statement within a second.
    ///
    /// # Errors
    /// When the store fails or takes too long.
    pub async fn watched(&self) -> Result<Watched, StoreError> {
        // One snapshot, or the numbers would not add up.
        let mut snapshot = begin_watching(&self.0.pools.reading).await?;
        let counters = panel::list_total_counters(&mut snapshot).await?;
        let became_stuck = watch::list_stuck_counters(&mut snapshot).await?;
        let unfinished = watch::list_unfinished(&mut snapshot, self.0.config.stuck_after).await?;
        let queues = watch::find_queues(&mut snapshot).await?;
        snapshot.commit().await?;
        Ok(Watched {
            counters: counters
                .into_iter()
                .map(|row| (row.action_type, row.name, row.n))
                .collect(),
            became_stuck,
            unfinished,
            queues,
        })
    }

    /// How many records are finished, by action and state. It looks at every record, so it is asked seldom.
    ///
    /// # Errors
    /// When the store fails or takes too long.
    pub async fn count_finished(&self) -> Result<Vec<(String, RecordState, i64)>, StoreError> {
        let mut snapshot = begin_watching(&self.0.pools.reading).await?;
        let counted = watch::count_finished(&mut snapshot).await?;
        snapshot.commit().await?;
        Ok(counted)
    }

    /// The names of the registered actions.
    pub fn action_names() -> Vec<&'static str> {
        REGISTRY
            .iter()
            .map(|action| action.action_type().as_str())
            .collect()
    }

    /// The connections of this process.
    pub fn pool_stats(&self) -> [PoolStats; 2] {
        let of = |name, pool: &sqlx::PgPool| {
            let (size, idle) = (pool.size() as usize, pool.num_idle());
            PoolStats {
                name,
                idle,
                used: size.saturating_sub(idle),
                most: pool.options().get_max_connections(),
            }
        };
        [
            of("work", &self.0.pools.work),
            of("reading", &self.0.pools.reading),
        ]
    }
}
