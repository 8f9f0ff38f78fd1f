//! What is to be measured, and how much of it.

use std::{path::PathBuf, time::Duration};

use clap::{Parser, ValueEnum};

/// Measures how fast it is, as ratios within one run. `make bench` runs it, BENCH="…" holds its arguments.
#[derive(Debug, Parser)]
#[command(name = "make bench")]
pub(crate) struct Arguments {
    /// What to measure [default: everything]
    #[arg(value_name = "PART")]
    parts: Vec<Part>,
    /// How many requests are on their way at the same time
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1], value_parser = at_least_one)]
    pub(crate) at_once: Vec<usize>,
    /// How often each thing is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// For how long each time, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// panel: how many records there are
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(10_000..=10_000_000))]
    pub(crate) records: u32,
    /// panel: how often each page is asked for
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    pub(crate) looks: u32,
    /// watchers: how many panels are open
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) watchers: u32,
    /// watchers: how often submissions are measured with and without
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(3..=100))]
    pub(crate) pairs: u32,
    /// storm: how many keys come in a storm
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) keys: u32,
    /// storm: how many arrivals each key has at the same time
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..=2_000))]
    pub(crate) arrivals: u32,
    /// storm: how many instances they are spread over
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) instances: u32,
    /// Where the figures go
    #[arg(long, value_name = "FILE", default_value = "bench.json")]
    pub(crate) json: PathBuf,
    /// Where Postgres is: databases of its own are made there and dropped
    #[arg(
        long,
        env = "YICI_BENCH_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub(crate) database_url: Option<String>,
    /// Cargo says so when it runs a bench; without it, it only wants to know whether it could.
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

/// Something to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Submissions and replays against the articles' statements
    Submissions,
    /// The panel and the lists over many records
    Panel,
    /// How much open panels slow submissions, over as many records
    Watchers,
    /// Duplicates over several instances, with the front lock and without
    Storm,
}

impl Arguments {
    /// Whether a part is asked for.
    pub(crate) fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// For how long each thing is measured.
    pub(crate) const fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=256) => Ok(number),
        _ => Err("expected a number from 1 to 256".to_owned()),
    }
}
