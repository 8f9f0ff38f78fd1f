//! `GET /metrics` (Prometheus' text format): what the database tells, the same on every instance, and what this process counted.
//!
//! Anybody may read it, as scrapers expect, and nobody is limited: it holds no id, and is read at most once a second however often
//! it is asked for. While the store is away it answers with the last values it has and `yici_store_up 0`, so that counters never
//! fall and the rest stays visible; before the first values, 503.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use domain::RecordState;
use engine::{
    Engine,
    watch::{PoolStats, Watched},
};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::PrometheusBuilder;
use metrics_process::Collector;
use strum::VariantArray;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::AppState;
use crate::telemetry::recorder;

/// How long a page is good for.
const KEPT: Duration = Duration::from_secs(1);
/// How long the database may take in all before the last values are given.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How often finished records are counted: that looks at every record.
const COUNT_FINISHED_EVERY: Duration = Duration::from_secs(60);
/// The format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Name, the panel's counter of the same number, and help.
const COUNTERS: &[(&str, &str, &str)] = &[
    (
        "idempotency_new_request_total",
        "new",
        "Arrivals that executed",
    ),
    (
        "idempotency_reused_result_total",
        "reused",
        "Arrivals that were answered with a stored result",
    ),
    (
        "idempotency_processing_hit_total",
        "processing",
        "Arrivals whose key was still executing",
    ),
    (
        "idempotency_unknown_state_total",
        "unknown",
        "Arrivals whose outcome was not known",
    ),
    (
        "idempotency_key_mismatch_total",
        "mismatch",
        "Arrivals whose key had been used for another request",
    ),
    (
        "duplicate_business_constraint_total",
        "constraint_conflict",
        "Arrivals that the business constraint answered",
    ),
    (
        "redis_lock_expired_suspected_total",
        "front_lock_expired_suspected",
        "Front locks that ran out before the work ended",
    ),
    (
        "redis_lock_release_mismatch_total",
        "front_lock_release_mismatch",
        "Front locks that somebody else held when they were to be released",
    ),
    (
        "request_timeout_after_success_total",
        "timeout_after_success",
        "Successes whose caller had gone before the answer",
    ),
    (
        "idempotency_failed_final_total",
        "failed_final",
        "Executions that ended FAILED_FINAL",
    ),
    (
        "idempotency_failed_retryable_total",
        "failed_retryable",
        "Executions that ended FAILED_RETRYABLE",
    ),
    (
        "idempotency_compensated_total",
        "compensated",
        "Records brought to a proper state by the scanner or a person",
    ),
];
const STUCK: &str = "idempotency_record_stuck_total";
const RECORDS: &str = "idempotency_records";
const RECORDS_STUCK: &str = "idempotency_records_stuck";
const OLDEST: &str = "idempotency_oldest_unfinished_seconds";
const APPROVALS: &str = "yici_approvals_waiting";
const OLDEST_APPROVAL: &str = "yici_oldest_approval_seconds";
const UNDELIVERED: &str = "yici_outbox_undelivered";
const OLDEST_UNDELIVERED: &str = "yici_outbox_oldest_undelivered_seconds";
const DEAD: &str = "yici_outbox_dead_letters";
const STORE_UP: &str = "yici_store_up";
const STORE_AGE: &str = "yici_store_read_age_seconds";

/// The page, which is made when it is asked for.
#[derive(Clone)]
pub struct MetricsPage(Arc<Inner>);

struct Inner {
    engine: Engine,
    stopping: CancellationToken,
    last: Mutex<Last>,
}

/// What was read last.
#[derive(Default)]
struct Last {
    page: Option<(Instant, String)>,
    durable: Option<(Instant, Watched)>,
    finished: Vec<(String, RecordState, i64)>,
    finished_at: Option<Instant>,
    away: bool,
}

impl std::fmt::Debug for MetricsPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricsPage").finish_non_exhaustive()
    }
}

/// The handler.
pub async fn show(State(state): State<AppState>) -> Response {
    match state.metrics.page().await {
        Some(page) => ([(CONTENT_TYPE, TEXT), (CACHE_CONTROL, "no-store")], page).into_response(),
        None => {
            let status = http::StatusCode::SERVICE_UNAVAILABLE;
            let words = "The store cannot be reached, and nothing was read from it yet.\n";
            (status, [(CONTENT_TYPE, TEXT)], words).into_response()
        }
    }
}

impl MetricsPage {
    /// A page about this engine.
    pub fn new(engine: Engine, stopping: CancellationToken) -> Self {
        // From now on every series is there.
        recorder::handle();
        super::measure::begin();
        Self(Arc::new(Inner {
            engine,
            stopping,
            last: Mutex::default(),
        }))
    }

    /// The text; `None` when the database was never read.
    async fn page(&self) -> Option<String> {
        // Whoever comes while it is made waits for the same page.
        let mut last = self.0.last.lock().await;
        if let Some((made, page)) = &last.page
            && made.elapsed() < KEPT
        {
            return Some(page.clone());
        }
        let up = self.read(&mut last).await;
        let (read, watched) = last.durable.as_ref()?;
        let durable = durable_page(watched, &last.finished, up, read.elapsed());
        let page = durable + &self.own_page();
        last.page = Some((Instant::now(), page.clone()));
        Some(page)
    }

    /// Reads the database; answers whether that went well.
    async fn read(&self, last: &mut Last) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.0.engine.watched()).await;
        let failure = match read {
            Ok(Ok(watched)) => {
                last.durable = Some((Instant::now(), watched));
                last.away = false;
                self.count_finished(last).await;
                return true;
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        if !last.away {
            // One line, however often it is asked for meanwhile.
            last.away = true;
            tracing::warn!(
                error = failure
                    .as_ref()
                    .map(|error| error as &dyn std::error::Error),
                "the metrics cannot be read from the store; the last values are given"
            );
        }
        false
    }

    async fn count_finished(&self, last: &mut Last) {
        if last
            .finished_at
            .is_some_and(|at| at.elapsed() < COUNT_FINISHED_EVERY)
        {
            return;
        }
        last.finished_at = Some(Instant::now());
        match tokio::time::timeout(PATIENCE, self.0.engine.count_finished()).await {
            Ok(Ok(counted)) => last.finished = counted,
            Ok(Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "finished records cannot be counted; the last number is given"
            ),
            Err(_) => tracing::warn!(
                "finished records cannot be counted in time; the last number is given"
            ),
        }
    }

    /// What this process counted.
    fn own_page(&self) -> String {
        for PoolStats {
            name,
            idle,
            used,
            most,
        } in self.0.engine.pool_stats()
        {
            gauge!(recorder::CONNECTIONS, "pool" => name, "state" => "idle").set(idle as f64);
            gauge!(recorder::CONNECTIONS, "pool" => name, "state" => "used").set(used as f64);
            gauge!(recorder::CONNECTIONS_MOST, "pool" => name).set(f64::from(most));
        }
        let draining = self.0.stopping.is_cancelled();
        gauge!(recorder::DRAINING).set(if draining { 1.0 } else { 0.0 });
        Collector::default().collect();
        recorder::handle().render()
    }
}

/// What the database told, written by a recorder of its own: nothing of it is left behind when it changes.
fn durable_page(
    watched: &Watched,
    finished: &[(String, RecordState, i64)],
    up: bool,
    age: Duration,
) -> String {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        describe_durable();
        for action in Engine::action_names() {
            note_action(action, watched, finished);
        }
        let queues = &watched.queues;
        gauge!(APPROVALS).set(queues.approvals as f64);
        gauge!(OLDEST_APPROVAL).set(queues.oldest_approval_seconds);
        gauge!(UNDELIVERED).set(queues.undelivered as f64);
        gauge!(OLDEST_UNDELIVERED).set(queues.oldest_undelivered_seconds);
        gauge!(DEAD).set(queues.dead as f64);
        gauge!(STORE_UP).set(if up { 1.0 } else { 0.0 });
        gauge!(STORE_AGE).set(age.as_secs_f64());
    });
    recorder.handle().render()
}

fn describe_durable() {
    let all = "read from the database, the same on every instance";
    for (name, _, help) in COUNTERS {
        describe_counter!(*name, format!("{help}; {all}."));
    }
    describe_counter!(
        STUCK,
        format!("Claims that became stuck, each counted once; {all}.")
    );
    describe_gauge!(
        RECORDS,
        format!("Records by state; {all}. Finished ones are counted once a minute.")
    );
    describe_gauge!(RECORDS_STUCK, format!("Records that are stuck now; {all}."));
    describe_gauge!(
        OLDEST,
        Unit::Seconds,
        format!("How long ago the oldest unfinished record was claimed, by state; {all}; 0: none.")
    );
    describe_gauge!(
        APPROVALS,
        format!("Compensations that wait for a second person; {all}.")
    );
    describe_gauge!(
        OLDEST_APPROVAL,
        Unit::Seconds,
        format!("How long the oldest of them waits; {all}; 0: none.")
    );
    describe_gauge!(
        UNDELIVERED,
        format!("Messages that are to be delivered; {all}.")
    );
    describe_gauge!(
        OLDEST_UNDELIVERED,
        Unit::Seconds,
        format!("How long the oldest of them waits; {all}; 0: none.")
    );
    describe_gauge!(DEAD, format!("Messages that were tried too often; {all}."));
    describe_gauge!(
        STORE_UP,
        "Whether this process could read the database for this page: 1 or 0."
    );
    describe_gauge!(
        STORE_AGE,
        Unit::Seconds,
        "How old the numbers from the database are, in this process."
    );
}

fn note_action(action: &'static str, watched: &Watched, finished: &[(String, RecordState, i64)]) {
    for (metric, name, _) in COUNTERS {
        let found = watched
            .counters
            .iter()
            .find(|(of, counter, _)| of == action && counter == name);
        counter!(*metric, "action" => action).absolute(found.map_or(0, |row| row.2.unsigned_abs()));
    }
    let stuck = watched.became_stuck.iter().find(|(of, _)| of == action);
    counter!(STUCK, "action" => action).absolute(stuck.map_or(0, |row| row.1.unsigned_abs()));
    for state in RecordState::VARIANTS {
        let word: &'static str = state.as_ref();
        let unfinished = watched
            .unfinished
            .iter()
            .find(|row| row.action == action && row.state == *state);
        let ended = finished
            .iter()
            .find(|(of, ended, _)| of == action && ended == state);
        let records = unfinished.map(|row| row.records).or(ended.map(|row| row.2));
        gauge!(RECORDS, "action" => action, "state" => word).set(records.unwrap_or(0) as f64);
        if !state.is_terminal() {
            let oldest = unfinished.map_or(0.0, |row| row.oldest_seconds);
            gauge!(OLDEST, "action" => action, "state" => word).set(oldest);
        }
    }
    let stuck_now: i64 = watched
        .unfinished
        .iter()
        .filter(|row| row.action == action)
        .map(|row| row.stuck)
        .sum();
    gauge!(RECORDS_STUCK, "action" => action).set(stuck_now as f64);
}
