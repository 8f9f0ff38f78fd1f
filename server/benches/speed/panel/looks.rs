//! How long the panel, the lists and a record take to answer, as a client on the same machine sees it: a little more than the
//! server's own time.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use domain::view::{PanelView, RecordPage, Window};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::json;
use strum::VariantArray;

use crate::{
    arguments::Arguments,
    crowd::percentiles,
    progress::Progress,
    report::{Bound, Section, Table},
    scratch::Scratch,
    wire::Wire,
};

/// Every one of these is to be answered in less, at the 95th percentile.
const BOUND_MS: f64 = 100.0;
/// The page that is to cost what the first one costs.
const DEEP_PAGE: u32 = 200;
/// By how much it may cost more.
const DEEP_RATIO: f64 = 2.0;
/// One record in so many of `load.sql` is stuck, and the first of them is this one.
const STUCK: (u32, u32) = (2000, 7);

/// Something to look at.
struct Look {
    name: String,
    path: String,
    took: Vec<Duration>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    p50_ms: f64,
    p95_ms: f64,
}

pub(super) async fn measure(
    scratch: &Scratch,
    wire: &Wire,
    asked: &Arguments,
    progress: &Progress,
) -> anyhow::Result<Section> {
    let ops = scratch.school.ops_token();
    progress.say("panel: is it what was loaded?");
    check(wire, ops, asked.records).await?;
    progress.say(format!("panel: to page {DEEP_PAGE}"));
    let mut looks = looks(wire, ops).await?;
    for round in 0..asked.looks {
        if round % 10 == 0 {
            progress.say(format!("panel: look {round} of {}", asked.looks));
        }
        // In turns, so that a disturbance falls on all of them.
        for look in &mut looks {
            let begun = Instant::now();
            wire.get(ops, &look.path).await?;
            look.took.push(begun.elapsed());
        }
    }
    let lines: Vec<Line> = looks.into_iter().map(Look::into_line).collect();
    Ok(section(lines, asked))
}

/// Fails unless the panel shows what `load.sql` loads.
async fn check(wire: &Wire, ops: &str, records: u32) -> anyhow::Result<()> {
    let panel: PanelView = serde_json::from_value(wire.json(ops, "/api/v1/panel").await?)?;
    let (every, first) = STUCK;
    let stuck = i64::from((records - first).div_ceil(every));
    ensure!(
        panel.gauges.stuck == stuck,
        "{} records are stuck instead of {stuck}",
        panel.gauges.stuck
    );
    let ended = panel.totals.new + panel.totals.constraint_conflict;
    let expected = i64::from(records) - stuck;
    ensure!(
        ended == expected,
        "the panel counts {ended} records that ended instead of {expected}"
    );
    Ok(())
}

async fn looks(wire: &Wire, ops: &str) -> anyhow::Result<Vec<Look>> {
    let mut looks = Vec::new();
    let mut add = |name: &str, path: String| {
        looks.push(Look {
            name: name.to_owned(),
            path,
            took: Vec::new(),
        });
    };
    for window in Window::VARIANTS {
        add(
            &format!("panel, {window}"),
            format!("/api/v1/panel?window={window}"),
        );
    }
    let list = "/api/v1/records";
    let mut deep = list.to_owned();
    let mut page = page(wire, ops, &deep).await?;
    for _ in 1..DEEP_PAGE {
        let after = page.next.context("the list ends too early")?;
        deep = format!("{list}?after={after}");
        page = self::page(wire, ops, &deep).await?;
    }
    let some = page.records.first().context("an empty page")?.clone();
    let trace = wire.json(ops, &format!("{list}/{}", some.id)).await?;
    let trace = trace["trace_id"].as_str().context("no trace")?.to_owned();
    let search = |q: &str| format!("{list}?q={}", utf8_percent_encode(q, NON_ALPHANUMERIC));
    let beginning = some.key.rsplit_once(':').context("an odd key")?.0;
    let stuck = self::page(wire, ops, &format!("{list}?stuck=true")).await?;
    let stuck = stuck.records.first().context("nothing is stuck")?;
    add(FIRST, list.to_owned());
    add(DEEP, deep);
    add("records, 200 on a page", format!("{list}?limit=200"));
    add("stuck records", format!("{list}?stuck=true"));
    add("refused records", format!("{list}?state=FAILED_FINAL"));
    for (outcome, window) in [
        ("reused", "1h"),
        ("constraint_conflict", "24h"),
        ("mismatch", "7d"),
    ] {
        add(
            &format!("records with {outcome}, {window}"),
            format!("{list}?outcome={outcome}&window={window}"),
        );
    }
    add(
        "records of a student",
        format!("{list}?subject={}", some.subject),
    );
    add("search: a key", search(&some.key));
    add("search: the beginning of a key", search(beginning));
    add("search: the beginning of all keys", search("task_submit:"));
    add("search: a trace id", search(&trace));
    add(
        "arrivals that were reused, 24h",
        "/api/v1/arrivals?outcome=reused&window=24h".to_owned(),
    );
    add("a record", format!("{list}/{}", some.id));
    add("a stuck record", format!("{list}/{}", stuck.id));
    add("page: the panel", "/panel".to_owned());
    add("page: a record", format!("/records/{}", some.id));
    Ok(looks)
}

const FIRST: &str = "records, page 1";
const DEEP: &str = "records, page 200";

async fn page(wire: &Wire, ops: &str, path: &str) -> anyhow::Result<RecordPage> {
    Ok(serde_json::from_value(wire.json(ops, path).await?)?)
}

impl Look {
    fn into_line(mut self) -> Line {
        let [p50_ms, p95_ms] = percentiles(&mut self.took, [0.5, 0.95]);
        Line {
            name: self.name,
            p50_ms,
            p95_ms,
        }
    }
}

fn section(lines: Vec<Line>, asked: &Arguments) -> Section {
    let slow: Vec<&str> = lines
        .iter()
        .filter(|line| line.p95_ms >= BOUND_MS)
        .map(|line| line.name.as_str())
        .collect();
    let mut text = format!("Each is answered in less than {BOUND_MS} ms (p95)");
    if !slow.is_empty() {
        text += &format!("; not: {}", slow.join("; "));
    }
    let p50 = |name: &str| {
        lines
            .iter()
            .find(|l| l.name == name)
            .map_or(f64::NAN, |l| l.p50_ms)
    };
    let deep = p50(DEEP) / p50(FIRST);
    let bounds = vec![
        Bound {
            kept: slow.is_empty(),
            text,
        },
        Bound {
            // NaN is not kept.
            kept: deep <= DEEP_RATIO,
            text: format!(
                "Page {DEEP_PAGE} takes at most {DEEP_RATIO} × as long as page 1: {deep:.2} × (p50)"
            ),
        },
    ];
    let row = |line: &Line| {
        vec![
            line.name.clone(),
            format!("{:.1}", line.p50_ms),
            format!("{:.1}", line.p95_ms),
        ]
    };
    Section {
        name: "panel",
        tables: vec![Table {
            title: format!("Panel and lists over {} records", asked.records),
            heads: vec!["", "p50 ms", "p95 ms"],
            rows: lines.iter().map(row).collect(),
            notes: vec![format!(
                "{} times each, in turns, one at a time, over HTTP.",
                asked.looks
            )],
        }],
        bounds,
        figures: json!({ "records": asked.records, "looks": lines, "deep_page_ratio": deep }),
    }
}
