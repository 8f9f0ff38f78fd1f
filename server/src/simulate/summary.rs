//! What was seen beside what the panel says.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use anyhow::bail;
use domain::{
    Bucket,
    view::{ArrivalView, Counters},
};
use strum::VariantArray;

use super::{
    client::{Client, Reply},
    ledger::Ledger,
};

/// How long the server may take to decide and write what is still on its way: replays are written up to a second late, what a
/// dying process left is recovered after its lease.
const SETTLE_FOR: Duration = Duration::from_secs(60);
/// When nothing runs and nothing has changed for this long, nothing more will come.
const QUIET_FOR: Duration = Duration::from_secs(5);
/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The numbers of one bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Line {
    /// Answers that said so.
    answered: i64,
    /// Requests without an answer whose arrival the server counted so.
    lost: i64,
    /// Answers whose arrival died with its process, before it was written.
    unwritten: i64,
    /// What the panel's total grew by.
    panel: i64,
}

impl Line {
    const fn agrees(self) -> bool {
        self.answered + self.lost - self.unwritten == self.panel
    }
}

/// Waits until the server has counted everything, compares, prints, and fails when the two differ.
pub(super) async fn compare(
    client: &Client,
    ops: &str,
    ledger: &Ledger,
    before: &Counters,
    disturbed: bool,
) -> anyhow::Result<()> {
    let replies = ledger.replies();
    let end = Instant::now() + SETTLE_FOR;
    let mut quiet = (None, Instant::now());
    let (lines, contradictions, after) = loop {
        let panel = client.panel(ops).await?;
        let arrivals = arrivals(client, ops, &replies).await?;
        let (lines, contradictions) = lines(&replies, &arrivals, before, &panel.totals, disturbed);
        let looked = Instant::now();
        if panel.gauges.processing > 0 || quiet.0.as_ref() != Some(&lines) {
            quiet = (Some(lines.clone()), looked);
        }
        let agrees = panel.gauges.processing == 0 && lines.values().all(|line| line.agrees());
        if agrees || looked >= end || looked.duration_since(quiet.1) >= QUIET_FOR {
            break (lines, contradictions, panel.totals);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    print(ledger, &replies, &lines, before, &after);
    for line in &contradictions {
        println!("  {line}");
    }
    let differs = lines.values().filter(|line| !line.agrees()).count();
    if differs + contradictions.len() > 0 {
        bail!("the panel and this simulation do not agree; was somebody else at it, too?");
    }
    println!("The panel agrees in every bucket.");
    Ok(())
}

/// The arrivals of this simulation, by trace.
async fn arrivals(
    client: &Client,
    ops: &str,
    replies: &HashMap<String, Reply>,
) -> anyhow::Result<HashMap<String, ArrivalView>> {
    let mut found = HashMap::new();
    let mut after: Option<String> = None;
    loop {
        let page = client.arrivals(ops, after.as_deref()).await?;
        let ours = page
            .arrivals
            .into_iter()
            .filter(|arrival| replies.contains_key(&arrival.trace_id));
        found.extend(ours.map(|arrival| (arrival.trace_id.clone(), arrival)));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found),
        }
    }
}

/// The numbers of each bucket, and every request that was answered one thing and counted as another.
fn lines(
    replies: &HashMap<String, Reply>,
    arrivals: &HashMap<String, ArrivalView>,
    before: &Counters,
    after: &Counters,
    disturbed: bool,
) -> (BTreeMap<Bucket, Line>, Vec<String>) {
    let mut lines: BTreeMap<Bucket, Line> = Bucket::VARIANTS
        .iter()
        .map(|bucket| {
            let panel = of(after, *bucket) - of(before, *bucket);
            (
                *bucket,
                Line {
                    panel,
                    ..Line::default()
                },
            )
        })
        .collect();
    let mut contradictions = Vec::new();
    for (trace, reply) in replies {
        let counted = arrivals.get(trace).and_then(|arrival| arrival.outcome);
        let told = match reply {
            Reply::Lost => None,
            Reply::Answer { bucket, .. } => Bucket::VARIANTS
                .iter()
                .copied()
                .find(|b| b.header_value() == bucket),
        };
        match (told, counted) {
            (Some(told), Some(counted)) if told == counted => line(&mut lines, told).answered += 1,
            (Some(told), None) => {
                line(&mut lines, told).answered += 1;
                // A process that is killed takes the last second of replays with it, and nothing else.
                if disturbed && told != Bucket::New && told != Bucket::ConstraintConflict {
                    line(&mut lines, told).unwritten += 1;
                }
            }
            (Some(told), Some(counted)) => contradictions.push(format!(
                "trace {trace} was told {told} and counted as {counted}"
            )),
            (None, Some(counted)) => line(&mut lines, counted).lost += 1,
            (None, None) => {}
        }
    }
    (lines, contradictions)
}

fn line(lines: &mut BTreeMap<Bucket, Line>, bucket: Bucket) -> &mut Line {
    lines.entry(bucket).or_default()
}

const fn of(counters: &Counters, bucket: Bucket) -> i64 {
    match bucket {
        Bucket::New => counters.new,
        Bucket::Reused => counters.reused,
        Bucket::Processing => counters.processing,
        Bucket::Unknown => counters.unknown,
        Bucket::Mismatch => counters.mismatch,
        Bucket::ConstraintConflict => counters.constraint_conflict,
    }
}

fn print(
    ledger: &Ledger,
    replies: &HashMap<String, Reply>,
    lines: &BTreeMap<Bucket, Line>,
    before: &Counters,
    after: &Counters,
) {
    println!("{} intents, {} requests", ledger.intents().0, replies.len());
    println!(
        "  {:<20} {:>9} {:>13} {:>10} {:>9}",
        "arrivals", "answered", "answer lost", "unwritten", "panel"
    );
    for (bucket, line) in lines {
        println!(
            "  {:<20} {:>9} {:>13} {:>10} {:>9}  {}",
            bucket.header_value(),
            line.answered,
            line.lost,
            line.unwritten,
            line.panel,
            if line.agrees() { "=" } else { "DIFFERS" }
        );
    }
    let counted: i64 = lines.values().map(|line| line.panel).sum();
    println!("  {:<20} {counted:>44}", "all");
    for (words, n) in [
        (
            "successes that reached nobody",
            after.timeout_after_success - before.timeout_after_success,
        ),
        (
            "records ended by the scanner or a person",
            after.compensated - before.compensated,
        ),
    ] {
        println!("  {n} {words}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_answer_is_found_by_its_trace_and_a_contradiction_is_told() {
        let arrival = |trace: &str, outcome: Bucket| {
            let view = serde_json::json!({
                "id": "1", "record_id": "1", "action": "task_submit", "arrived_at": "", "outcome": outcome, "defence": null,
                "client_id": "phone", "trace_id": trace, "same_content": true, "duration_ms": null
            });
            (
                trace.to_owned(),
                serde_json::from_value::<ArrivalView>(view).unwrap(),
            )
        };
        let told = |bucket: &str| Reply::Answer {
            status: 201,
            bucket: bucket.to_owned(),
        };
        let replies = HashMap::from([
            ("a".to_owned(), told("new")),
            ("b".to_owned(), Reply::Lost),
            ("c".to_owned(), Reply::Lost),
            ("d".to_owned(), told("reused")),
        ]);
        let arrivals = HashMap::from([arrival("a", Bucket::New), arrival("b", Bucket::New)]);
        let after = Counters {
            new: 2,
            ..Counters::default()
        };
        let (seen, wrong) = lines(&replies, &arrivals, &Counters::default(), &after, true);
        assert_eq!(
            seen[&Bucket::New],
            Line {
                answered: 1,
                lost: 1,
                unwritten: 0,
                panel: 2
            }
        );
        assert!(seen[&Bucket::New].agrees() && seen[&Bucket::Reused].agrees() && wrong.is_empty());
        // Without a disturbance an answer that is counted nowhere is a fault.
        let (seen, _) = lines(&replies, &arrivals, &Counters::default(), &after, false);
        assert!(!seen[&Bucket::Reused].agrees());
        let arrivals = HashMap::from([arrival("a", Bucket::Reused)]);
        let (_, wrong) = lines(&replies, &arrivals, &Counters::default(), &after, false);
        assert_eq!(wrong.len(), 1);
    }
}
