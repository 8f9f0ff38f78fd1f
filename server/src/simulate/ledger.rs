//! What was sent and seen.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::client::Reply;

/// The book of one simulation.
#[derive(Debug)]
pub(super) struct Ledger {
    most: u64,
    until: Instant,
    begun: AtomicU64,
    done: watch::Sender<u64>,
    ended: AtomicBool,
    /// What each request was answered, by its trace.
    replies: Mutex<HashMap<String, Reply>>,
}

impl Ledger {
    pub(super) fn new(most: u64, until: Instant) -> Self {
        Self {
            most,
            until,
            begun: AtomicU64::new(0),
            done: watch::channel(0).0,
            ended: AtomicBool::new(false),
            replies: Mutex::default(),
        }
    }

    /// Whether there is one more intent to begin.
    pub(super) fn begin(&self) -> bool {
        Instant::now() < self.until && self.begun.fetch_add(1, Ordering::Relaxed) < self.most
    }

    pub(super) fn done(&self) {
        self.done.send_modify(|done| *done += 1);
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.done.send_modify(|_| {});
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Waits until half of the intents, or of the time, are over; `false` when everything ended before.
    pub(super) async fn half(&self) -> bool {
        let half_time = Instant::now() + self.until.saturating_duration_since(Instant::now()) / 2;
        let mut done = self.done.subscribe();
        while !self.has_ended() {
            if *done.borrow_and_update() >= self.most / 2 || Instant::now() >= half_time {
                return true;
            }
            let _ = tokio::time::timeout(Duration::from_millis(100), done.changed()).await;
        }
        false
    }

    pub(super) fn note(&self, trace: String, reply: Reply) {
        self.lock().insert(trace, reply);
    }

    /// Intents that are done, and how many there are to be at most.
    pub(super) fn intents(&self) -> (u64, u64) {
        (*self.done.borrow(), self.most)
    }

    /// How many requests were answered by each bucket; `lost` for those without an answer, and the status where there is no bucket.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for reply in self.lock().values() {
            *counts.entry(word(reply)).or_default() += 1;
        }
        counts
    }

    /// Every request.
    pub(super) fn replies(&self) -> HashMap<String, Reply> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Reply>> {
        // Nothing can panic while it is held.
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn word(reply: &Reply) -> String {
    match reply {
        Reply::Lost => "lost".to_owned(),
        Reply::Answer { status, bucket } if bucket.is_empty() => status.to_string(),
        Reply::Answer { bucket, .. } => bucket.clone(),
    }
}
