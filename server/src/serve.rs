//! `server serve`: wiring, and the order of a graceful stop.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context;
use engine::{Engine, EngineConfig};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::password,
    database::Database,
    http::{AppState, feed::PanelFeed, limits::Limits, metrics::MetricsPage, pages::Site, router},
    reward_provider,
    settings::Settings,
    telemetry::recorder,
};

/// How long the process is not ready before it takes no connection any more.
const NOT_READY_FIRST: Duration = Duration::from_secs(1);
/// How long requests and executions may take to end once the server is to stop.
const DRAIN: Duration = Duration::from_secs(20);
/// How often the limits forget whoever has been quiet.
const FORGET_EVERY: Duration = Duration::from_secs(60);
/// The password of every account of the demo.
const DEMO_PASSWORD: &str = "demo";
/// Where the demo's provider of rewards remembers what it gave, beside the private Postgres.
const DEMO_PROVIDER_LOG: &str = "reward-provider.jsonl";

/// Serves until the process is told to stop.
///
/// # Errors
/// When something that is needed cannot be had: the address, the front end, the database.
pub async fn serve(settings: Settings, demo: bool) -> anyhow::Result<()> {
    let site = Site::find(&settings.site_dir)?;
    // The address first: a second server on it must not touch the first one's data.
    let listener = TcpListener::bind(settings.listen)
        .await
        .with_context(|| format!("YICI_LISTEN: cannot listen on {}", settings.listen))?;
    let database = Database::open(&settings.database, false).await?;
    let served = serve_on(listener, &database, &settings, demo, &site).await;
    let closed = database.close().await;
    served.and(closed)
}

async fn serve_on(
    listener: TcpListener,
    database: &Database,
    settings: &Settings,
    demo: bool,
    site: &Site,
) -> anyhow::Result<()> {
    let address = listener
        .local_addr()
        .context("the listener has no address")?;
    let stopping = CancellationToken::new();
    // Ends last: executions that are still running may call it.
    let provider_stopping = CancellationToken::new();
    let mut engine_settings = settings.engine.clone();
    if demo && engine_settings.reward_url.is_none() {
        // Its memory lives as long as the demo's data: beside the private Postgres, or as long as this process.
        let is_private = settings.database.url.is_none();
        let log = is_private.then(|| settings.database.data_dir.join(DEMO_PROVIDER_LOG));
        let url = reward_provider::start_for_demo(log, provider_stopping.clone()).await?;
        tracing::info!(url, "the demo has its own provider of rewards");
        engine_settings.reward_url = Some(url.into());
    }
    let config = EngineConfig {
        front_lock: settings.front_lock(),
        ..engine_settings.config(format!("{address} {}", std::process::id()))
    };
    let engine = Engine::start(database.pools.clone(), config).await?;
    if demo {
        let password_hash = password::hash(DEMO_PASSWORD.to_owned()).await?;
        engine
            .load_demo(settings.demo_students, &password_hash)
            .await
            .context("--demo")?;
    }
    let state = AppState {
        engine: engine.clone(),
        feed: PanelFeed::new(engine.clone(), stopping.clone()),
        limits: Limits::new(
            settings.rate_limit_per_account,
            settings.rate_limit_per_address,
        ),
        metrics: MetricsPage::new(engine.clone(), stopping.clone()),
        options: site.options(),
    };
    tokio::spawn(recorder::keep(stopping.clone()));
    tokio::spawn(forget_quiet(state.limits.clone(), stopping.clone()));
    let scanner = {
        let (engine, stopping, interval) =
            (engine.clone(), stopping.clone(), settings.scan_interval);
        tokio::spawn(async move { engine.run_scanner(interval, stopping).await })
    };
    let bulks = {
        let (engine, stopping, interval) =
            (engine.clone(), stopping.clone(), settings.scan_interval);
        tokio::spawn(async move { engine.run_bulks(interval, stopping).await })
    };
    let relay = {
        let (engine, stopping) = (engine.clone(), stopping.clone());
        tokio::spawn(async move { engine.run_relay(stopping).await })
    };
    let app = router(state).into_make_service_with_connect_info::<SocketAddr>();
    println!("Yici serves on http://{address}");
    tracing::info!(%address, "serving");
    let signal = {
        let stopping = stopping.clone();
        async move {
            told_to_stop().await;
            tracing::info!("stopping: not ready any more, streams end");
            stopping.cancel();
            // Whoever sends requests here sees it and sends them elsewhere; what comes meanwhile is served. Then the listener
            // closes and requests drain.
            tokio::time::sleep(NOT_READY_FIRST).await;
            tracing::info!("stopping: no new connections, requests drain");
        }
    };
    let serving = axum::serve(listener, app)
        .with_graceful_shutdown(signal)
        .into_future();
    tokio::pin!(serving);
    let drained = tokio::select! {
        served = &mut serving => served.context("the server failed"),
        () = async { stopping.cancelled().await; tokio::time::sleep(DRAIN).await } => {
            tracing::warn!("some requests did not end in time");
            Ok(())
        }
    };
    for (name, task) in [
        ("scanner", scanner),
        ("runner of bulks", bulks),
        ("relay", relay),
    ] {
        match tokio::time::timeout(DRAIN, task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(
                name,
                error = &error as &dyn std::error::Error,
                "a task failed"
            ),
            // What it was doing is guarded: whoever comes next finds it undone.
            Err(_) => tracing::warn!(name, "a task did not end in time"),
        }
    }
    engine.stop(DRAIN).await;
    provider_stopping.cancel();
    tracing::info!("stopped");
    drained
}

async fn forget_quiet(limits: Limits, stopping: CancellationToken) {
    while stopping
        .run_until_cancelled(tokio::time::sleep(FORGET_EVERY))
        .await
        .is_some()
    {
        limits.forget_quiet();
    }
}

/// Ctrl-C or SIGTERM.
pub(crate) async fn told_to_stop() {
    let interrupt = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot listen for Ctrl-C"
            );
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending::<()>().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}
