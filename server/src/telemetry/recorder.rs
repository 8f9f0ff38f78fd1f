//! The recorder of this process's own metrics.

use std::{sync::OnceLock, time::Duration};

use engine::watch::{BUCKETS, SLOW};
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use tokio_util::sync::CancellationToken;

/// Answers by route.
pub const HTTP_SECONDS: &str = "yici_http_request_duration_seconds";
/// Answers by route and class of status.
pub const HTTP_ANSWERS: &str = "yici_http_requests_total";
/// Connections of each pool by what they do.
pub const CONNECTIONS: &str = "yici_pool_connections";
/// How many connections each pool may have.
pub const CONNECTIONS_MOST: &str = "yici_pool_connections_limit";
/// Whether the process is stopping.
pub const DRAINING: &str = "yici_draining";
/// Which version runs.
pub const BUILD: &str = "yici_build_info";

/// How often samples of histograms are brought in when nobody asks: they would pile up.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// The recorder's handle; the first call installs it for the process.
pub fn handle() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let mut builder = PrometheusBuilder::new();
            for (name, buckets) in BUCKETS.iter().chain(&[(HTTP_SECONDS, SLOW)]) {
                builder = builder
                    .set_buckets_for_metric(Matcher::Full((*name).to_owned()), buckets)
                    .expect("no list of buckets is empty");
            }
            // INVARIANT: only this function installs a recorder, and once.
            let handle = builder
                .install_recorder()
                .expect("no other recorder is installed");
            describe();
            handle
        })
        .clone()
}

fn describe() {
    engine::watch::describe();
    Collector::default().describe();
    let own = "by this process since it started";
    describe_histogram!(
        HTTP_SECONDS,
        Unit::Seconds,
        format!("Time from a request to the head of its answer, by route, {own}.")
    );
    describe_counter!(
        HTTP_ANSWERS,
        format!("Requests answered, by route and class of status, {own}.")
    );
    describe_gauge!(CONNECTIONS, "Open connections to Postgres of this process.");
    describe_gauge!(
        CONNECTIONS_MOST,
        "How many connections to Postgres each pool of this process may have."
    );
    describe_gauge!(DRAINING, "Whether this process is stopping: 1 or 0.");
    describe_gauge!(BUILD, "1, with the version of this process.");
    metrics::gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// Keeps the recorder small until it is told to stop.
pub async fn keep(stopping: CancellationToken) {
    let handle = handle();
    while stopping
        .run_until_cancelled(tokio::time::sleep(UPKEEP_EVERY))
        .await
        .is_some()
    {
        handle.run_upkeep();
    }
}
