//! How much open panels slow submissions: the same crowd hands in with panels open and without, in turns.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use domain::view::Window;
use serde_json::json;
use strum::VariantArray;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    arguments::Arguments,
    crowd::{self, extremes, median},
    progress::Progress,
    report::{Bound, Section, Table},
    school::Which,
    scratch::Scratch,
    wire::{OverHttp, Wire},
};

/// What open panels may cost submissions.
const MOST_SLOWED: f64 = 0.05;
/// An open panel hears something at least so often.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);
/// Handing in before each measurement, so that what the one before left behind has ended.
const WARM_UP: Duration = Duration::from_millis(1500);
/// Makes a median absolute deviation a standard deviation, where deviations are normal.
const MAD_TO_DEVIATION: f64 = 1.4826;

pub(super) async fn measure(
    scratch: &Scratch,
    wire: &Wire,
    asked: &Arguments,
    progress: &Progress,
) -> anyhow::Result<Section> {
    let at_once = asked.at_once.iter().copied().max().unwrap_or(1);
    let mut crowd = OverHttp::crowd(at_once, wire, &scratch.school, Which::New);
    let (mut without, mut with, mut silence) = (Vec::new(), Vec::new(), Duration::ZERO);
    for pair in 0..asked.pairs {
        progress.say(format!("watchers: pair {} of {}", pair + 1, asked.pairs));
        // First the one, then the other: what grows meanwhile disturbs both the same.
        let first_with = pair % 2 == 1;
        for watched in [first_with, !first_with] {
            let watchers = if watched {
                Some(Watchers::open(wire, scratch.school.ops_token(), asked.watchers).await?)
            } else {
                None
            };
            let pace;
            (crowd, _) = crowd::run(crowd, WARM_UP).await?;
            (crowd, pace) = crowd::run(crowd, asked.time()).await?;
            match watchers {
                Some(watchers) => {
                    silence = silence.max(watchers.close().await?);
                    with.push(pace.per_second);
                }
                None => without.push(pace.per_second),
            }
        }
    }
    Ok(section(&without, &with, silence, at_once, asked))
}

/// Open panels, over all windows in turn.
struct Watchers {
    streams: JoinSet<anyhow::Result<()>>,
    heard: mpsc::UnboundedReceiver<(u32, Instant)>,
    count: u32,
}

impl Watchers {
    /// Opens them and waits until each has heard something.
    async fn open(wire: &Wire, ops: &str, count: u32) -> anyhow::Result<Self> {
        let (hear, heard) = mpsc::unbounded_channel();
        let mut watchers = Self {
            streams: JoinSet::new(),
            heard,
            count,
        };
        for (n, window) in (0..count).zip(Window::VARIANTS.iter().cycle()) {
            let path = format!("/api/v1/panel/events?window={window}");
            let mut stream = wire.open(ops, &path).await?;
            let hear = hear.clone();
            watchers.streams.spawn(async move {
                while let Some(chunk) = stream.chunk().await? {
                    if chunk.starts_with(b"event: panel") {
                        hear.send((n, Instant::now()))?;
                    }
                }
                bail!("a stream ended")
            });
        }
        let mut silent: Vec<u32> = (0..count).collect();
        while !silent.is_empty() {
            let (n, _) = watchers.heard.recv().await.context("the streams ended")?;
            silent.retain(|other| *other != n);
        }
        Ok(watchers)
    }

    /// Closes them. Answers how long one of them heard nothing at most; fails when a stream ended.
    async fn close(mut self) -> anyhow::Result<Duration> {
        let now = Instant::now();
        if let Some(ended) = self.streams.try_join_next() {
            ended.context("a watcher")??;
        }
        self.streams.shutdown().await;
        self.heard.close();
        let mut times: Vec<Vec<Instant>> = vec![Vec::new(); self.count as usize];
        while let Some((n, at)) = self.heard.recv().await {
            times[n as usize].push(at);
        }
        let mut longest = Duration::ZERO;
        for mut heard in times {
            if heard.is_empty() {
                bail!("a panel heard nothing while submissions were measured");
            }
            heard.retain(|at| *at < now);
            heard.push(now);
            for two in heard.windows(2) {
                longest = longest.max(two[1] - two[0]);
            }
        }
        Ok(longest)
    }
}

fn section(
    without: &[f64],
    with: &[f64],
    silence: Duration,
    at_once: usize,
    asked: &Arguments,
) -> Section {
    let slowed: Vec<f64> = without.iter().zip(with).map(|(a, b)| 1.0 - b / a).collect();
    let middle = median(slowed.clone());
    let deviations = slowed.iter().map(|s| (s - middle).abs()).collect();
    // The standard error of the middle: what it would differ by if everything were measured once more.
    let noise = MAD_TO_DEVIATION * median(deviations) / (slowed.len() as f64).sqrt();
    let (least, most) = extremes(&slowed);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let row = |name: &str, values: &[f64]| {
        let (low, high) = extremes(values);
        vec![
            name.to_owned(),
            format!("{:.0}", median(values.to_vec())),
            format!("{low:.0}–{high:.0}"),
        ]
    };
    Section {
        name: "watchers",
        tables: vec![Table {
            title: format!(
                "Submissions per second, {at_once} at once over HTTP, beside {} records",
                asked.records
            ),
            heads: vec!["", "median", "from–to"],
            rows: vec![
                row("no panel open", without),
                row(&format!("{} panels open", asked.watchers), with),
            ],
            notes: vec![format!(
                "{} pairs; slowed by {} to {}; the longest silence of an open panel: {:.1} s.",
                asked.pairs,
                percent(least),
                percent(most),
                silence.as_secs_f64()
            )],
        }],
        bounds: vec![
            Bound {
                kept: middle <= MOST_SLOWED + noise,
                text: format!(
                    "Open panels slow submissions by at most {}: {} (median; noise {})",
                    percent(MOST_SLOWED),
                    percent(middle),
                    percent(noise)
                ),
            },
            Bound {
                kept: silence <= LONGEST_SILENCE,
                text: format!(
                    "An open panel hears something every {} s",
                    LONGEST_SILENCE.as_secs()
                ),
            },
        ],
        figures: json!({
            "at_once": at_once,
            "watchers": asked.watchers,
            "without_per_second": without,
            "with_per_second": with,
            "slowed": slowed,
            "slowed_median": middle,
            "noise": noise,
            "longest_silence_s": silence.as_secs_f64(),
        }),
    }
}
