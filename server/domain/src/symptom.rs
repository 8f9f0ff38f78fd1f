//! What the panel's numbers point at, by the articles' reading guide: each with its threshold, so that nobody has to guess why it
//! is said, or why it is not.

use crate::view::{Counters, PanelView};

/// From how many arrivals on a share says anything.
const ENOUGH_ARRIVALS: i64 = 20;
/// From how many occurrences on something is more than an accident.
const ENOUGH_EVENTS: i64 = 3;
/// Article 1: the count of reused results tells that retries are frequent; a fifth is far more than its 120 a day.
const REUSE_SHARE: f64 = 0.2;
/// Article 1: constraint conflicts tell of concurrent writes.
const CONFLICT_SHARE: f64 = 0.02;
/// Article 1: compensations stayed below 0.02 % of the submissions.
pub const COMPENSATION_SHARE: f64 = 0.0002;
/// Failures that pass, of the executions.
const FAILURE_SHARE: f64 = 0.01;
/// Keys that were used for another request: a client's fault, however rare.
const MISMATCH_SHARE: f64 = 0.01;
/// Successes whose caller had gone, of the executions.
const TIMEOUT_SHARE: f64 = 0.01;
/// Article 1: after 3 s without an answer a client takes its request for failed, in milliseconds.
const CLIENT_PATIENCE_MS: f64 = 3_000.0;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::AsRefStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SymptomKind {
    /// Records neither end nor become known.
    Stuck,
    /// Compensations wait for a second person.
    Approvals,
    /// Many arrivals repeat a key.
    Reuse,
    /// Many arrivals meet the business constraint.
    Conflict,
    /// Front locks run out while the work runs.
    FrontLock,
    /// Many executions had to be compensated.
    Compensated,
    /// Many executions fail for now.
    Failed,
    /// Keys are used for other requests.
    Mismatch,
    /// Successes whose caller had gone.
    Timeout,
    /// One arrival in a hundred takes longer than a client waits.
    Slow,
}

/// A number as it is to be shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// A number of things.
    Count(i64),
    /// A part of a whole, from 0 to 1.
    Share(f64),
    /// Milliseconds.
    Milliseconds(f64),
}

/// Something that stands out.
#[derive(Debug, Clone, PartialEq)]
pub struct Symptom {
    /// What it is.
    pub kind: SymptomKind,
    /// The action that it is about, when it is about one.
    pub action: Option<String>,
    /// How much.
    pub value: Measure,
    /// From how much on it is told.
    pub threshold: Measure,
    /// How long half of this action's executions take at most, in milliseconds, where that explains it.
    pub flow_ms: Option<f64>,
}

/// Everything that stands out in a panel, the most urgent first.
pub fn symptoms(view: &PanelView) -> Vec<Symptom> {
    let mut found = Vec::new();
    let gauges = [
        (SymptomKind::Stuck, view.gauges.stuck),
        (SymptomKind::Approvals, view.gauges.awaiting_approval),
    ];
    for (kind, n) in gauges {
        found.extend(counted(kind, n, 1));
    }
    for action in &view.by_action {
        let counters = &action.counters;
        let arrivals = counters.arrivals();
        let repeated = counters.reused + counters.processing;
        let of_action = [
            shared(SymptomKind::Reuse, repeated, arrivals, REUSE_SHARE),
            shared(
                SymptomKind::Conflict,
                counters.constraint_conflict,
                arrivals,
                CONFLICT_SHARE,
            ),
            shared(
                SymptomKind::Mismatch,
                counters.mismatch,
                arrivals,
                MISMATCH_SHARE,
            ),
            counted(
                SymptomKind::FrontLock,
                counters.front_lock_expired_suspected,
                1,
            ),
        ];
        found.extend(of_action.into_iter().flatten().map(|symptom| Symptom {
            action: Some(action.action.clone()),
            flow_ms: action.flow_ms.p50,
            ..symptom
        }));
    }
    found.extend(executions(&view.counters));
    if let Some(p99) = view.latency_ms.p99.filter(|p99| *p99 > CLIENT_PATIENCE_MS) {
        found.push(Symptom {
            value: Measure::Milliseconds(p99),
            threshold: Measure::Milliseconds(CLIENT_PATIENCE_MS),
            ..symptom(SymptomKind::Slow)
        });
    }
    found.sort_by_key(|symptom| symptom.kind as u8);
    found
}

/// What stands out among the executions of all actions.
fn executions(counters: &Counters) -> impl Iterator<Item = Symptom> {
    let all = counters.executions();
    [
        shared(
            SymptomKind::Compensated,
            counters.compensated,
            all,
            COMPENSATION_SHARE,
        ),
        shared(
            SymptomKind::Failed,
            counters.failed_retryable,
            all,
            FAILURE_SHARE,
        ),
        shared(
            SymptomKind::Timeout,
            counters.timeout_after_success,
            all,
            TIMEOUT_SHARE,
        ),
    ]
    .into_iter()
    .flatten()
}

fn counted(kind: SymptomKind, n: i64, from: i64) -> Option<Symptom> {
    (n >= from).then(|| Symptom {
        value: Measure::Count(n),
        threshold: Measure::Count(from),
        ..symptom(kind)
    })
}

fn shared(kind: SymptomKind, part: i64, whole: i64, from: f64) -> Option<Symptom> {
    // What is counted at its end can have come in before the window.
    let share = part as f64 / whole.max(part).max(1) as f64;
    let says_anything = part >= ENOUGH_EVENTS && whole.max(part) >= ENOUGH_ARRIVALS;
    (says_anything && share > from).then(|| Symptom {
        value: Measure::Share(share),
        threshold: Measure::Share(from),
        ..symptom(kind)
    })
}

fn symptom(kind: SymptomKind) -> Symptom {
    Symptom {
        kind,
        action: None,
        value: Measure::Count(0),
        threshold: Measure::Count(0),
        flow_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{ActionCounters, FrontLockHealth, Gauges, Latency, Window};

    fn panel(counters: Counters) -> PanelView {
        PanelView {
            at: String::new(),
            window: Window::OneHour,
            counters,
            totals: counters,
            gauges: Gauges::default(),
            by_action: vec![ActionCounters {
                action: "task_submit".into(),
                counters,
                flow_ms: Latency {
                    p50: Some(8.0),
                    ..Latency::default()
                },
            }],
            series: Vec::new(),
            latency_ms: Latency::default(),
            stuck_after_seconds: 300,
            front_lock: FrontLockHealth::Off,
        }
    }

    fn kinds(view: &PanelView) -> Vec<SymptomKind> {
        symptoms(view).into_iter().map(|s| s.kind).collect()
    }

    #[test]
    fn a_quiet_hour_has_nothing_to_tell() {
        assert!(kinds(&panel(Counters::default())).is_empty());
        let quiet = Counters {
            new: 1_000,
            reused: 100,
            constraint_conflict: 10,
            mismatch: 2,
            ..Counters::default()
        };
        assert!(kinds(&panel(quiet)).is_empty());
    }

    #[test]
    fn few_arrivals_prove_nothing() {
        let few = Counters {
            new: 2,
            reused: 3,
            constraint_conflict: 2,
            ..Counters::default()
        };
        assert!(kinds(&panel(few)).is_empty());
    }

    #[test]
    fn each_rule_of_the_guide_speaks_above_its_threshold() {
        let loud = Counters {
            new: 50,
            reused: 30,
            constraint_conflict: 5,
            mismatch: 5,
            failed_retryable: 4,
            compensated: 3,
            timeout_after_success: 3,
            front_lock_expired_suspected: 1,
            ..Counters::default()
        };
        let mut view = panel(loud);
        view.gauges.stuck = 2;
        view.gauges.awaiting_approval = 1;
        view.latency_ms.p99 = Some(3_500.0);
        use SymptomKind as K;
        assert_eq!(
            kinds(&view),
            [
                K::Stuck,
                K::Approvals,
                K::Reuse,
                K::Conflict,
                K::FrontLock,
                K::Compensated,
                K::Failed,
                K::Mismatch,
                K::Timeout,
                K::Slow
            ]
        );
        let lock = symptoms(&view)
            .into_iter()
            .find(|s| s.kind == K::FrontLock)
            .expect("told");
        assert_eq!(
            (lock.action.as_deref(), lock.flow_ms),
            (Some("task_submit"), Some(8.0))
        );
    }

    #[test]
    fn compensations_are_measured_against_the_articles_reference() {
        let many = Counters {
            new: 10_000,
            compensated: 3,
            ..Counters::default()
        };
        assert_eq!(kinds(&panel(many)), [SymptomKind::Compensated]);
        let few = Counters {
            new: 100_000,
            compensated: 3,
            ..Counters::default()
        };
        assert!(kinds(&panel(few)).is_empty());
    }
}
