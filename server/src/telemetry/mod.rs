//! What the process tells about itself: the log, traces, and its own metrics.

use anyhow::Context;
use opentelemetry_sdk::trace::SdkTracerProvider;
use secrecy::SecretString;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

mod ids;
mod json;
pub mod recorder;
mod traces;

/// What is logged when `RUST_LOG` is unset.
const DEFAULT_FILTER: &str = "info,sqlx=warn,hyper=warn,leptos=warn";
/// How many lines may wait for a slow reader of the log before whoever writes waits itself: no line is ever dropped.
const LOG_LINES: usize = 16_384;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// The running log and traces.
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    /// Writes what is left when it is dropped.
    _log: WorkerGuard,
}

/// Starts the log on standard error, and the export of traces, if there is somewhere
/// to send them; `RUST_LOG` chooses what is in both. A second start in the same process keeps the first log.
///
/// # Errors
/// When the exporter cannot be set up.
pub fn start(format: LogFormat, otlp_endpoint: Option<&SecretString>) -> anyhow::Result<Telemetry> {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    // A line must not cost the request that writes it a system call.
    let (writer, guard) = NonBlockingBuilder::default()
        .lossy(false)
        .buffered_lines_limit(LOG_LINES)
        .finish(std::io::stderr());
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match format {
        LogFormat::Human => lines.with_target(false).boxed(),
        LogFormat::Json => lines
            .fmt_fields(tracing_subscriber::fmt::format::JsonFields::new())
            .event_format(json::JsonLine)
            .boxed(),
    };
    let traces = otlp_endpoint
        .map(traces::provider)
        .transpose()
        .context("OTEL_EXPORTER_OTLP_ENDPOINT")?;
    let spans = traces.as_ref().map(traces::layer);
    // One filter for both. With a filter for each layer, a library that only asks whether something is enabled, as sqlx does for
    // every statement, leaves that answer behind on its thread, and the next line or span there is dropped.
    let started = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .with(spans)
        .try_init();
    if started.is_ok() && traces.is_some() {
        engine::trace::start_exporting();
    }
    Ok(Telemetry {
        traces,
        _log: guard,
    })
}

impl Telemetry {
    /// Sends the spans that are left, and ends. The last lines of the log are written when this is dropped.
    pub async fn stop(self) {
        let Some(provider) = self.traces.clone() else {
            return;
        };
        // It waits for a thread of its own, which needs this runtime for sending.
        let ended = tokio::task::spawn_blocking(move || provider.shutdown()).await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the last spans were not sent"
            ),
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the last spans were not sent"
            ),
        }
    }
}
