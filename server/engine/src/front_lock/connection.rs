//! One connection to Redis behind a breaker: after the first failure nobody asks it any more until a probe has succeeded.
//!
//! Not the crate's own connection manager: that one lets commands wait while it connects, and keeps a connection whose peer
//! went silent, until the kernel gives it up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{AsyncConnectionConfig, Client, RedisError, aio::MultiplexedConnection};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::PREFIX;

/// How long Redis may take for anything. It is to spare Postgres time, not to cost it.
const TIMEOUT: Duration = Duration::from_millis(200);
/// How often it is probed, whether it is up or away.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How many commands may wait to be sent.
const QUEUE: usize = 1024;

/// The connection while Redis is up.
#[derive(Clone)]
struct Live {
    redis: MultiplexedConnection,
    /// RACE: a command that fails late must not take away the connection that followed its own.
    number: u64,
}

pub(super) struct Connection {
    breaker: Arc<Breaker>,
    /// Ends the probes.
    _probing: DropGuard,
}

struct Breaker {
    client: Client,
    live: watch::Sender<Option<Live>>,
    opened: AtomicU64,
}

impl Connection {
    /// Tries to connect once, and then again and again in the background. `None`: the URL is none of Redis's.
    pub(super) async fn start(url: &SecretString) -> Option<Self> {
        let breaker = Arc::new(Breaker {
            client: Client::open(url.expose_secret()).ok()?,
            live: watch::Sender::new(None),
            opened: AtomicU64::new(0),
        });
        breaker.probe().await;
        let ending = CancellationToken::new();
        tokio::spawn({
            let (breaker, ending) = (breaker.clone(), ending.clone());
            async move {
                while ending
                    .run_until_cancelled(tokio::time::sleep(PROBE_EVERY))
                    .await
                    .is_some()
                {
                    breaker.probe().await;
                }
            }
        });
        Some(Self {
            breaker,
            _probing: ending.drop_guard(),
        })
    }

    pub(super) fn is_up(&self) -> bool {
        self.breaker.live.borrow().is_some()
    }

    /// Runs a command; `None` when Redis is away, did not answer in time, or refused.
    pub(super) async fn run<T>(
        &self,
        command: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Option<T> {
        let live = self.breaker.live.borrow().clone()?;
        self.breaker.run_on(live, command).await
    }
}

impl Breaker {
    async fn run_on<T>(
        &self,
        mut live: Live,
        command: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Option<T> {
        let failure = match tokio::time::timeout(TIMEOUT, command(&mut live.redis)).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer in {} ms", TIMEOUT.as_millis()),
        };
        let was_up = self.live.send_if_modified(|now| {
            let is_same = now.as_ref().is_some_and(|now| now.number == live.number);
            if is_same {
                *now = None;
            }
            is_same
        });
        if was_up {
            tracing::warn!(error = failure, "the front lock's store is away");
        }
        None
    }

    /// Does what a lock does, so that a Redis that is full or only a replica counts as away.
    async fn probe(&self) {
        let current = self.live.borrow().clone();
        let is_new = current.is_none();
        let live = match current {
            Some(live) => live,
            None => match self.connect().await {
                Ok(live) => live,
                Err(error) => {
                    tracing::debug!(error, "the front lock's store cannot be reached");
                    return;
                }
            },
        };
        let mut set = redis::cmd("SET");
        // By a name of its own, or two processes would wait for each other's.
        let name = format!("{PREFIX}probe:{}", Uuid::new_v4());
        set.arg(name).arg("").arg("PX").arg(1);
        let taken = self
            .run_on(live.clone(), async |redis| {
                set.query_async::<()>(redis).await
            })
            .await;
        if taken.is_some() && is_new {
            self.live.send_replace(Some(live));
            tracing::info!("the front lock's store is there");
        }
    }

    async fn connect(&self) -> Result<Live, String> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT))
            .set_pipeline_buffer_size(QUEUE);
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let redis = tokio::time::timeout(TIMEOUT, connecting)
            .await
            .map_err(|_| format!("no connection in {} ms", TIMEOUT.as_millis()))?
            .map_err(|error| error.to_string())?;
        Ok(Live {
            redis,
            number: self.opened.fetch_add(1, Ordering::Relaxed),
        })
    }
}
