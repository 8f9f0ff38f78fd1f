//! `server simulate`: the traffic of students on bad networks against a running server, and whether the panel tells the same.
//!
//! It is a client like any other: it knows the API and nothing else. Each request has a trace id, so what became of a request whose
//! answer was lost can be looked up afterwards, and the comparison is exact.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::task::JoinSet;

mod client;
mod ledger;
mod progress;
mod student;
mod summary;

use client::Client;
use ledger::Ledger;
use student::Student;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Simulation {
    /// The server.
    pub url: String,
    /// How many of the demo's students take part.
    pub students: u32,
    /// How many intents at most.
    pub intents: u64,
    /// For how long at most.
    pub duration: Duration,
    /// Makes the same students do the same.
    pub seed: Option<u64>,
    /// A command that is run once when half of the intents are done, such as one that kills the server.
    pub disturb: Option<String>,
    /// The demo's password.
    pub password: String,
}

/// Runs it, and prints what was seen beside what the panel says.
///
/// # Errors
/// When the server cannot be used, or the two do not agree.
pub async fn run(asked: Simulation) -> anyhow::Result<()> {
    let seed = asked.seed.unwrap_or_else(|| rand::rng().random());
    println!("seed {seed}: run with --seed {seed} to let the same students do the same");
    let client = Client::new(&asked.url)?;
    let ops = client.sign_in("ops1", &asked.password).await?;
    let before = client.totals(&ops).await?;
    let names: Vec<String> = (1..=asked.students)
        .map(|n| format!("student{n}"))
        .collect();
    let mut students = Vec::new();
    // Each has a seed of its own out of it; neighbouring numbers would make seeds near each other share students.
    let mut seeds = StdRng::seed_from_u64(seed);
    for name in &names {
        let token = client
            .sign_in(name, &asked.password)
            .await
            .with_context(|| format!("{name}: the demo has fewer students, or none"))?;
        students.push(Student::new(
            client.clone(),
            token,
            StdRng::seed_from_u64(seeds.random()),
        ));
    }
    ensure!(!students.is_empty(), "nobody takes part");
    let ledger = Arc::new(Ledger::new(asked.intents, Instant::now() + asked.duration));
    let progress = progress::start(ledger.clone());
    let mut crowd = JoinSet::new();
    for student in students {
        crowd.spawn(student.live(ledger.clone()));
    }
    let disturbing = asked
        .disturb
        .map(|command| tokio::spawn(disturb(command, ledger.clone())));
    while let Some(ended) = crowd.join_next().await {
        ended.context("a student")??;
    }
    ledger.end();
    progress.await.context("the progress")?;
    let disturbed = match disturbing {
        Some(task) => task.await.context("the disturbance")??,
        None => false,
    };
    summary::compare(&client, &ops, &ledger, &before, disturbed).await
}

/// Runs the command when half of the intents are done; answers whether it came to that.
async fn disturb(command: String, ledger: Arc<Ledger>) -> anyhow::Result<bool> {
    if !ledger.half().await {
        return Ok(false);
    }
    let status = tokio::process::Command::new("sh")
        .args(["-c", &command])
        .status()
        .await
        .context("--disturb: cannot run a shell")?;
    ensure!(status.success(), "--disturb: {command}: {status}");
    Ok(true)
}
