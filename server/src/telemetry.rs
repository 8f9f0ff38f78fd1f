//! The log. (Metrics and traces join it here.)

use tracing_subscriber::{EnvFilter, layer::SubscriberExt, util::SubscriberInitExt};

/// What is logged when `RUST_LOG` is unset.
const DEFAULT_FILTER: &str = "info,sqlx=warn,hyper=warn,leptos=warn";

/// Starts the log on standard error; `RUST_LOG` chooses what is in it.
pub fn start_log() {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false);
    // A second start (in tests) keeps the first.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init();
}
