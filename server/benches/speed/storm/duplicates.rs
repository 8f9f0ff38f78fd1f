//! All arrivals of one key at the same moment.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    school::School,
    wire::{Reply, Wire},
};

/// Sends them, and answers how long it took until the last one was answered. Fails unless exactly one was new and all others have
/// its answer.
pub(super) async fn storm(
    wires: Vec<Wire>,
    school: Arc<School>,
    arrivals: u32,
) -> anyhow::Result<Duration> {
    let key = school.take();
    let start = Arc::new(Barrier::new(arrivals as usize + 1));
    let mut storm = JoinSet::new();
    for (_, wire) in (0..arrivals).zip(wires.into_iter().cycle()) {
        let (school, start) = (school.clone(), start.clone());
        storm.spawn(async move {
            let intent = school.nth(key)?;
            start.wait().await;
            wire.submit(&intent).await
        });
    }
    start.wait().await;
    let begun = Instant::now();
    let replies = storm.join_all().await;
    let took = begun.elapsed();
    let replies: Vec<Reply> = replies.into_iter().collect::<anyhow::Result<_>>()?;
    let first = replies
        .iter()
        .find(|reply| reply.bucket == "new")
        .context("none was new")?;
    for reply in &replies {
        ensure!(
            (reply.status, &reply.body) == (first.status, &first.body) && reply.status == 201,
            "a duplicate got another answer: {reply:?} instead of {first:?}"
        );
        ensure!(
            reply.bucket == "reused" || std::ptr::eq(reply, first),
            "a duplicate was {}",
            reply.bucket
        );
    }
    Ok(took)
}
