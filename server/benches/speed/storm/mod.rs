//! A storm of duplicates over several instances of one database, with the front lock and without: what of it reaches Postgres.
//!
//! Also what the lock costs when nothing is duplicated. Both sides run all the time and are measured in turns.

mod duplicates;
mod redis;
mod statements;

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use serde::Serialize;
use serde_json::json;

use crate::{
    arguments::Arguments,
    crowd::{median, pace, percentiles},
    progress::Progress,
    report::{Section, Table, ratio},
    school::Which,
    scratch::{Cluster, Scratch},
    wire::{OverHttp, Server},
};
use duplicates::storm;
use redis::Redis;
use statements::Statements;

/// What is measured twice.
struct Side {
    scratch: Scratch,
    servers: Vec<Server>,
    took: Vec<Duration>,
    /// Arrivals beyond the first of their key.
    duplicates: u64,
    ordinary: Vec<f64>,
}

/// What one side came to.
#[derive(Serialize)]
struct Outcome {
    answered_p50_ms: f64,
    answered_p95_ms: f64,
    statements: Option<Statements>,
    /// Arrivals by the defence that answered them.
    defences: Vec<(String, i64)>,
    ordinary_per_second: Vec<f64>,
}

pub(crate) async fn measure(
    cluster: &Cluster,
    asked: &Arguments,
    progress: &Progress,
) -> anyhow::Result<Section> {
    progress.say("storm: redis and the instances");
    let redis = Redis::start().await?;
    let mut sides = [
        Side::start(cluster, "without", None, asked).await?,
        Side::start(cluster, "locked", Some(&redis.url), asked).await?,
    ];
    for round in 0..asked.rounds {
        for at in turns(round) {
            progress.say(format!(
                "storm: no duplicates, round {} of {}, {}",
                round + 1,
                asked.rounds,
                NAMES[at]
            ));
            sides[at].ordinary(asked).await?;
        }
    }
    for side in &mut sides {
        // The first one opens connections.
        side.storm(asked).await?;
        side.took.clear();
        side.settle().await?;
        if cluster.counts_statements {
            statements::begin(&mut side.scratch.connect().await?).await?;
        }
    }
    for key in 0..asked.keys {
        if key % 10 == 0 {
            progress.say(format!("storm: key {key} of {}", asked.keys));
        }
        for at in turns(key) {
            sides[at].storm(asked).await?;
        }
    }
    progress.say("storm: one row for each key?");
    let mut outcomes = Vec::new();
    for side in sides {
        outcomes.push(side.end(cluster, asked).await?);
    }
    redis.stop().await?;
    Ok(section(&outcomes, asked))
}

const NAMES: [&str; 2] = ["without the lock", "with it"];

fn turns(n: u32) -> [usize; 2] {
    if n.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

impl Side {
    async fn start(
        cluster: &Cluster,
        name: &str,
        redis_url: Option<&str>,
        asked: &Arguments,
    ) -> anyhow::Result<Self> {
        let counts = cluster.counts_statements;
        let scratch = cluster
            .make(name, async |connection| {
                if counts {
                    statements::install(connection).await?;
                }
                Ok(())
            })
            .await?;
        // The scanner has nothing to do, and would only be counted.
        let mut variables = vec![("YICI_SCAN_INTERVAL_SECONDS", "3600")];
        variables.extend(redis_url.map(|url| ("REDIS_URL", url)));
        let expected = redis_url.map_or("off", |_| "ok");
        let mut servers = Vec::new();
        for _ in 0..asked.instances {
            let server = Server::start(&scratch.url, &variables).await?;
            let ready = server.wire.json("", "/readyz").await?;
            ensure!(
                ready["front_lock"] == expected,
                "the front lock is {} instead of {expected}",
                ready["front_lock"]
            );
            servers.push(server);
        }
        Ok(Self {
            scratch,
            servers,
            took: Vec::new(),
            duplicates: 0,
            ordinary: Vec::new(),
        })
    }

    /// Submissions without duplicates, spread over the instances.
    async fn ordinary(&mut self, asked: &Arguments) -> anyhow::Result<()> {
        let at_once = asked.at_once.iter().copied().max().unwrap_or(1);
        let instances = self.servers.len();
        let mut crowd = Vec::new();
        for server in &self.servers {
            let own = at_once.div_ceil(instances);
            let school = &self.scratch.school;
            crowd.extend(OverHttp::crowd(own, &server.wire, school, Which::New));
        }
        self.ordinary
            .push(pace(crowd, asked.time()).await?.per_second);
        Ok(())
    }

    async fn storm(&mut self, asked: &Arguments) -> anyhow::Result<()> {
        let wires = self.servers.iter().map(|s| s.wire.clone()).collect();
        let school = Arc::clone(&self.scratch.school);
        self.took.push(storm(wires, school, asked.arrivals).await?);
        self.duplicates += u64::from(asked.arrivals) - 1;
        Ok(())
    }

    /// Waits until every arrival is counted.
    async fn settle(&self) -> anyhow::Result<()> {
        let mut connection = self.scratch.connect().await?;
        let arrivals = self.scratch.school.taken() + self.duplicates;
        statements::settle(&mut connection, arrivals).await
    }

    async fn end(mut self, cluster: &Cluster, asked: &Arguments) -> anyhow::Result<Outcome> {
        self.settle().await?;
        let mut connection = self.scratch.connect().await?;
        let statements = if cluster.counts_statements {
            Some(statements::count(&mut connection, asked.keys).await?)
        } else {
            None
        };
        let defences = statements::defences(&mut connection).await?;
        for server in self.servers {
            server.stop().await?;
        }
        let pool = &self.scratch.database.pools.work;
        self.scratch.school.check(pool, "submission").await?;
        cluster.drop(self.scratch).await?;
        let [answered_p50_ms, answered_p95_ms] = percentiles(&mut self.took, [0.5, 0.95]);
        Ok(Outcome {
            answered_p50_ms,
            answered_p95_ms,
            statements,
            defences,
            ordinary_per_second: self.ordinary,
        })
    }
}

fn section(outcomes: &[Outcome], asked: &Arguments) -> Section {
    let [without, with] = outcomes else {
        unreachable!("there are two sides")
    };
    let mut rows = Vec::new();
    let mut add = |name: &str, unit: usize, value: &dyn Fn(&Outcome) -> f64| {
        let (a, b) = (value(without), value(with));
        let ratio = if a > 0.0 {
            format!("{:.2}", b / a)
        } else {
            "–".to_owned()
        };
        rows.push(vec![
            name.to_owned(),
            format!("{a:.unit$}"),
            format!("{b:.unit$}"),
            ratio,
        ]);
    };
    add("all answered, p50 ms", 1, &|o| o.answered_p50_ms);
    add("all answered, p95 ms", 1, &|o| o.answered_p95_ms);
    if without.statements.is_some() {
        for (name, value) in statements::LINES {
            add(name, 2, &|o| o.statements.as_ref().map_or(f64::NAN, value));
        }
    }
    for defence in ["none", "in_flight", "record", "front_lock", "constraint"] {
        let share = |o: &Outcome| {
            let found = o.defences.iter().find(|(name, _)| name == defence);
            found.map_or(0.0, |(_, n)| *n as f64) / f64::from(asked.keys + 1)
        };
        add(&format!("answered by: {defence}"), 1, &share);
    }
    add("without duplicates, per s", 0, &|o| {
        median(o.ordinary_per_second.clone())
    });
    let pairs = with
        .ordinary_per_second
        .iter()
        .zip(&without.ordinary_per_second);
    let ordinary: Vec<f64> = pairs.map(|(a, b)| a / b).collect();
    let mut notes = vec![
        format!(
            "{} keys, each with {} arrivals at once; counts are per key.",
            asked.keys, asked.arrivals
        ),
        format!(
            "Without duplicates the lock makes submissions {} × as fast.",
            ratio(&ordinary)
        ),
    ];
    if without.statements.is_none() {
        notes.push("Statements were not counted: this Postgres has no pg_stat_statements.".into());
    }
    Section {
        name: "storm",
        tables: vec![Table {
            title: format!("Duplicates over {} instances", asked.instances),
            heads: vec!["", "no lock", "front lock", "ratio"],
            rows,
            notes,
        }],
        bounds: Vec::new(),
        figures: json!({
            "instances": asked.instances,
            "keys": asked.keys,
            "arrivals": asked.arrivals,
            "without": without,
            "with": with,
        }),
    }
}
