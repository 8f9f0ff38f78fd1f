//! How fast it is, always as a ratio to something measured in the same run on the same machine.
//!
//! `make bench` runs it, on a throw-away Postgres with fsync on. Whatever is measured is checked as well: an answer that is not
//! the expected one, or an intent without exactly one row, ends it with an error.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

mod arguments;
mod articles;
#[path = "../../tests/it/child.rs"]
mod child;
mod crowd;
mod panel;
mod progress;
mod report;
mod school;
mod scratch;
mod storm;
mod submissions;
mod wire;

use arguments::{Arguments, Part};
use progress::Progress;
use report::Section;
use scratch::Cluster;

/// A bound was missed.
const MISSED: u8 = 1;
/// Something could not be measured, or came out wrong.
const FAILED: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let asked = Arguments::parse();
    if !asked.bench {
        println!("Nothing is measured: `make bench` does that.");
        return ExitCode::SUCCESS;
    }
    let progress = Progress::start();
    let measured = measure(&asked, &progress).await;
    progress.end();
    match measured {
        Ok(sections) if sections.iter().all(Section::is_kept) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(MISSED),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

async fn measure(asked: &Arguments, progress: &Progress) -> anyhow::Result<Vec<Section>> {
    let url = asked.database_url.as_deref();
    let url = url.context("YICI_BENCH_DATABASE_URL says where Postgres is, and is not set")?;
    let cluster = Cluster::open(url).await?;
    let machine = cluster.machine().await?;
    let mut sections = Vec::new();
    let mut add = |section: Section| {
        progress.pause(|| section.print());
        sections.push(section);
    };
    if asked.wants(Part::Submissions) {
        add(submissions::measure(&cluster, asked, progress).await?);
    }
    if asked.wants(Part::Storm) {
        add(storm::measure(&cluster, asked, progress).await?);
    }
    if asked.wants(Part::Panel) || asked.wants(Part::Watchers) {
        for section in panel::measure(&cluster, asked, progress).await? {
            add(section);
        }
    }
    report::write(&asked.json, &machine, &sections)?;
    progress.pause(|| println!("\nThe figures are in {}; {machine}", asked.json.display()));
    Ok(sections)
}
