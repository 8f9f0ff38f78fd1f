//! One sampler per window, shared by everybody who watches it: the panel costs the store the same for one tab and for eighty.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::view::Window;
use engine::Engine;
use strum::VariantArray;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often the numbers are read. The contract asks for an event at least every 2 s.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

type Snapshot = Option<Arc<str>>;

/// The panel's live feed.
#[derive(Clone)]
pub struct PanelFeed(Arc<Inner>);

struct Inner {
    engine: Engine,
    stopping: CancellationToken,
    /// The channel of each window, and whether its sampler runs.
    windows: Mutex<Vec<(Window, watch::Sender<Snapshot>, bool)>>,
}

impl std::fmt::Debug for PanelFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PanelFeed").finish_non_exhaustive()
    }
}

impl PanelFeed {
    /// A feed that ends with the token.
    pub fn new(engine: Engine, stopping: CancellationToken) -> Self {
        let windows = Window::VARIANTS
            .iter()
            .map(|window| (*window, watch::channel(None).0, false))
            .collect();
        Self(Arc::new(Inner {
            engine,
            stopping,
            windows: Mutex::new(windows),
        }))
    }

    /// Ends every stream.
    pub fn stopping(&self) -> CancellationToken {
        self.0.stopping.clone()
    }

    /// The snapshots of a window, as JSON, from now on; `None` until the first one is read.
    pub fn subscribe(&self, window: Window) -> watch::Receiver<Snapshot> {
        let mut windows = self
            .0
            .windows
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some((_, sender, running)) = windows.iter_mut().find(|entry| entry.0 == window) else {
            return watch::channel(None).1;
        };
        if !*running {
            *running = true;
            // What was read for the last watcher is old.
            sender.send_replace(None);
            tokio::spawn(self.clone().sample(window, sender.clone()));
        }
        sender.subscribe()
    }

    async fn sample(self, window: Window, sender: watch::Sender<Snapshot>) {
        let mut ticks = tokio::time::interval(SAMPLE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut away = false;
        while !self.0.stopping.is_cancelled() && !self.rests(window, &sender) {
            ticks.tick().await;
            match self.0.engine.panel(window).await {
                Ok(panel) => {
                    away = false;
                    if let Ok(json) = serde_json::to_string(&panel) {
                        sender.send_replace(Some(json.into()));
                    }
                }
                // Watchers see the age of what they have; one line tells the log.
                Err(error) if !away => {
                    away = true;
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the panel cannot be read"
                    );
                }
                Err(_) => {}
            }
        }
    }

    /// Whether nobody watches; then the sampler is noted as ended, under the same lock that starts one.
    fn rests(&self, window: Window, sender: &watch::Sender<Snapshot>) -> bool {
        let mut windows = self
            .0
            .windows
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if sender.receiver_count() > 0 {
            return false;
        }
        if let Some(entry) = windows.iter_mut().find(|entry| entry.0 == window) {
            entry.2 = false;
        }
        true
    }
}
