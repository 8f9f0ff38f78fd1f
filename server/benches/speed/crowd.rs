//! A number of workers who each do one thing after the other for a while, and how long each thing took.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::Serialize;
use tokio::task::JoinSet;

/// Does one thing after the other; one at a time.
pub(crate) trait Worker: Send + 'static {
    /// Does it once, and fails when it did not come out as it should.
    fn once(&mut self) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// What a crowd did.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Pace {
    pub(crate) count: usize,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
}

/// So often it is done before anything is measured: each connection of the server's pool plans its statements anew the first times.
const WARM_UP: usize = 400;
/// How long it is done at least.
const WARM_UP_TIME: Duration = Duration::from_millis(500);

/// Measures a crowd, warmed up.
pub(crate) async fn pace<W: Worker>(mut workers: Vec<W>, time: Duration) -> anyhow::Result<Pace> {
    let mut count = 0;
    while count < WARM_UP {
        let pace;
        (workers, pace) = run(workers, WARM_UP_TIME).await?;
        count += pace.count;
    }
    Ok(run(workers, time).await?.1)
}

/// Lets all workers go on for a while and gives them back. What is on its way at the end is waited for and counts.
pub(crate) async fn run<W: Worker>(
    workers: Vec<W>,
    duration: Duration,
) -> anyhow::Result<(Vec<W>, Pace)> {
    let begun = Instant::now();
    let end = begun + duration;
    let mut crowd = JoinSet::new();
    for mut worker in workers {
        crowd.spawn(async move {
            let mut took = Vec::new();
            while Instant::now() < end {
                let since = Instant::now();
                worker.once().await?;
                took.push(since.elapsed());
            }
            anyhow::Ok((worker, took))
        });
    }
    let (mut workers, mut all) = (Vec::new(), Vec::new());
    while let Some(ended) = crowd.join_next().await {
        let (worker, took) = ended.context("a worker")??;
        workers.push(worker);
        all.extend(took);
    }
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(!all.is_empty(), "nobody did anything");
    let per_second = all.len() as f64 / seconds;
    let [p50_ms, p95_ms, p99_ms] = percentiles(&mut all, [0.5, 0.95, 0.99]);
    let pace = Pace {
        count: all.len(),
        per_second,
        p50_ms,
        p95_ms,
        p99_ms,
    };
    Ok((workers, pace))
}

/// The middle one by speed: its percentiles belong to the same round as its speed.
pub(crate) fn middle(mut paces: Vec<Pace>) -> Option<Pace> {
    paces.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    paces.get(paces.len() / 2).copied()
}

/// Percentiles in milliseconds, each the smallest time that so many did not exceed.
pub(crate) fn percentiles<const N: usize>(took: &mut [Duration], shares: [f64; N]) -> [f64; N] {
    took.sort_unstable();
    shares.map(|share| {
        let rank = (share * took.len() as f64).ceil() as usize;
        let at = rank.clamp(1, took.len().max(1)) - 1;
        took.get(at).map_or(0.0, |t| t.as_secs_f64() * 1000.0)
    })
}

/// The median.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers.len().saturating_sub(1) / 2, numbers.len() / 2);
    match (numbers.get(low), numbers.get(high)) {
        (Some(low), Some(high)) => (low + high) / 2.0,
        _ => f64::NAN,
    }
}

/// The smallest and the largest.
pub(crate) fn extremes(numbers: &[f64]) -> (f64, f64) {
    let smallest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    (
        smallest,
        numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    )
}
