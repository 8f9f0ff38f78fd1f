//! Submissions and replays: through the engine's handle and over HTTP, against the articles' statements, in turns.
//!
//! The handle is the like for like: neither it nor the articles' statements have HTTP or a sign-in around them. HTTP is what a
//! student gets; there the server's own background work and this client compute on the same cores. Each way has a database of its
//! own, so that none pays for another one's rows, and only one runs at a time.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::json;

use crate::{
    arguments::Arguments,
    articles::Articles,
    crowd::{self, Pace, Worker, pace},
    progress::Progress,
    report::{Section, Table, ratio},
    school::{School, Which},
    scratch::{Cluster, Scratch},
    wire::{OverHttp, Server, expected},
};

/// The ways to hand in, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    Articles,
    Handle,
    HandleReplays,
    Http,
    HttpReplays,
}

const WAYS: [Way; 5] = [
    Way::Articles,
    Way::Handle,
    Way::HandleReplays,
    Way::Http,
    Way::HttpReplays,
];

impl Way {
    const fn words(self) -> &'static str {
        match self {
            Self::Articles => "the articles' statements",
            Self::Handle => "Yici, engine handle",
            Self::HandleReplays => "  its replays",
            Self::Http => "Yici, HTTP",
            Self::HttpReplays => "  its replays",
        }
    }

    /// What its speed is told as a ratio to.
    const fn measure(self) -> Self {
        match self {
            Self::Articles | Self::Handle | Self::Http => Self::Articles,
            Self::HandleReplays => Self::Handle,
            Self::HttpReplays => Self::Http,
        }
    }
}

/// The databases of the ways.
struct Places {
    articles: Scratch,
    handle: Scratch,
    http: Scratch,
    /// Paused while others are measured: its scanner and relay compute, too.
    server: Server,
}

#[derive(Serialize)]
struct Line {
    at_once: usize,
    way: Way,
    /// The middle round.
    pace: Pace,
    ratio_to: Way,
    /// By round.
    ratios: Vec<f64>,
}

pub(crate) async fn measure(
    cluster: &Cluster,
    asked: &Arguments,
    progress: &Progress,
) -> anyhow::Result<Section> {
    progress.say("submissions: three databases");
    let plain = async |_: &mut sqlx::PgConnection| Ok(());
    let http = cluster.make("http", plain).await?;
    let server = Server::start(&http.url, &[]).await?;
    server.pause().await?;
    let places = Places {
        server,
        http,
        articles: cluster
            .make("articles", async |connection| {
                sqlx::raw_sql(include_str!("articles.sql"))
                    .execute(connection)
                    .await?;
                Ok(())
            })
            .await?,
        handle: cluster.make("handle", plain).await?,
    };
    let mut lines = Vec::new();
    for &at_once in &asked.at_once {
        let mut paces: Vec<Vec<Pace>> = vec![Vec::new(); WAYS.len()];
        for round in 0..asked.rounds {
            let mut order: Vec<usize> = (0..WAYS.len()).collect();
            // So that nothing is always measured after the same thing. Replays need something to repeat: the first round begins with it.
            order.rotate_left(round as usize % WAYS.len());
            for at in order {
                let way = WAYS[at];
                progress.say(format!(
                    "submissions: {at_once} at once, round {} of {}: {}",
                    round + 1,
                    asked.rounds,
                    way.words().trim()
                ));
                paces[at].push(places.round(way, at_once, asked.time()).await?);
            }
        }
        lines.extend(lines_of(at_once, &paces)?);
    }
    progress.say("submissions: one row for each intent?");
    let intents = places.check().await?;
    places.server.wake().await?;
    places.server.stop().await?;
    for scratch in [places.articles, places.handle, places.http] {
        cluster.drop(scratch).await?;
    }
    Ok(Section {
        name: "submissions",
        tables: vec![table(&lines, asked.rounds, intents)],
        bounds: Vec::new(),
        figures: json!({ "lines": lines, "intents_checked": intents }),
    })
}

impl Places {
    async fn round(&self, way: Way, at_once: usize, time: Duration) -> anyhow::Result<Pace> {
        let first = self.handle.school.taken();
        match way {
            Way::Articles => pace(Articles::crowd(at_once, &self.articles).await?, time).await,
            Way::Handle => pace(Handle::crowd(at_once, &self.handle, Which::New), time).await,
            Way::HandleReplays => {
                let again = Which::Again(first);
                pace(Handle::crowd(at_once, &self.handle, again), time).await
            }
            Way::Http => self.over_http(Which::New, at_once, time).await,
            Way::HttpReplays => {
                let again = Which::Again(self.http.school.taken());
                self.over_http(again, at_once, time).await
            }
        }
    }

    async fn over_http(
        &self,
        which: Which,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Pace> {
        self.server.wake().await?;
        let crowd = OverHttp::crowd(at_once, &self.server.wire, &self.http.school, which);
        let pace = pace(crowd, time).await?;
        self.server.pause().await?;
        Ok(pace)
    }

    /// Fails unless each intent of each way has exactly one row; answers how many there were.
    async fn check(&self) -> anyhow::Result<u64> {
        let mut intents = 0;
        for (place, table) in [
            (&self.articles, "article_submission"),
            (&self.handle, "submission"),
            (&self.http, "submission"),
        ] {
            place.engine.flush().await;
            place
                .school
                .check(&place.database.pools.work, table)
                .await?;
            intents += place.school.taken();
        }
        Ok(intents)
    }
}

/// One student after the other, at the engine's handle.
struct Handle {
    engine: engine::Engine,
    school: Arc<School>,
    which: Which,
}

impl Handle {
    fn crowd(at_once: usize, scratch: &Scratch, which: Which) -> Vec<Self> {
        (0..at_once)
            .map(|_| Self {
                engine: scratch.engine.clone(),
                school: scratch.school.clone(),
                which,
            })
            .collect()
    }
}

impl Worker for Handle {
    async fn once(&mut self) -> anyhow::Result<()> {
        let intent = self.school.pick(self.which)?;
        let answer = self.engine.submit(intent.actor, intent.arrival()?).await?;
        let expected = expected(self.which);
        ensure!(
            answer.status == 201 && answer.bucket == expected,
            "{}: {} {} instead of 201 {expected}",
            intent.key,
            answer.status,
            answer.bucket
        );
        Ok(())
    }
}

fn lines_of(at_once: usize, paces: &[Vec<Pace>]) -> anyhow::Result<Vec<Line>> {
    let of = |way: Way| WAYS.iter().zip(paces).find(|(w, _)| **w == way);
    WAYS.iter()
        .zip(paces)
        .map(|(way, own)| {
            let (_, other) = of(way.measure()).context("nothing to compare with")?;
            let ratios = own.iter().zip(other);
            Ok(Line {
                at_once,
                way: *way,
                pace: crowd::middle(own.clone()).context("no round")?,
                ratio_to: way.measure(),
                ratios: ratios.map(|(a, b)| a.per_second / b.per_second).collect(),
            })
        })
        .collect()
}

fn table(lines: &[Line], rounds: u32, intents: u64) -> Table {
    let row = |line: &Line| {
        let to = match line.ratio_to {
            Way::Articles => "articles",
            _ => "first submissions",
        };
        let ratio = if line.way == line.ratio_to {
            String::new()
        } else {
            format!("{} × {to}", ratio(&line.ratios))
        };
        vec![
            line.way.words().to_owned(),
            line.at_once.to_string(),
            format!("{:.0}", line.pace.per_second),
            format!("{:.2}", line.pace.p50_ms),
            format!("{:.2}", line.pace.p95_ms),
            format!("{:.2}", line.pace.p99_ms),
            ratio,
        ]
    };
    Table {
        title: "Submissions".into(),
        heads: vec![
            "", "at once", "per s", "p50 ms", "p95 ms", "p99 ms", "ratio",
        ],
        rows: lines.iter().map(row).collect(),
        notes: vec![
            format!(
                "Medians of {rounds} rounds in turns, with the smallest and the largest ratio."
            ),
            format!("Each of {intents} intents has exactly one row."),
        ],
    }
}
