//! HTTP: routes, extractors, problems and the order of the layers.

use axum::{
    Router,
    extract::FromRef,
    http::{HeaderValue, StatusCode},
    middleware::{from_fn, from_fn_with_state},
    routing::get,
};
use engine::Engine;
use leptos::config::LeptosOptions;
use tower::ServiceBuilder;
use tower_http::{
    catch_panic::CatchPanicLayer, compression::CompressionLayer, csrf::CsrfLayer,
    limit::RequestBodyLimitLayer, set_header::SetResponseHeaderLayer,
};

pub mod actions;
pub mod body;
pub mod compensations;
pub mod export;
pub mod feed;
pub mod health;
pub mod key;
pub mod limits;
pub mod measure;
pub mod messages;
pub mod metrics;
pub mod openapi;
pub mod pages;
pub mod panel;
pub mod problem;
pub mod problem_pages;
pub mod query;
pub mod reports;
pub mod rewards;
pub mod session;
pub mod tasks;
pub mod trace;

use crate::auth::identify;
use feed::PanelFeed;
use limits::Limits;
use metrics::MetricsPage;

/// What handlers share.
#[derive(Debug, Clone)]
pub struct AppState {
    /// The engine.
    pub engine: Engine,
    /// The panel's live feed.
    pub feed: PanelFeed,
    /// Who asked how much.
    pub limits: Limits,
    /// What is measured.
    pub metrics: MetricsPage,
    /// What the pages' shell needs to know.
    pub options: LeptosOptions,
}

impl FromRef<AppState> for Engine {
    fn from_ref(state: &AppState) -> Self {
        state.engine.clone()
    }
}

impl FromRef<AppState> for PanelFeed {
    fn from_ref(state: &AppState) -> Self {
        state.feed.clone()
    }
}

/// Everything that is served. From the outside in: the measure, panics become problems, the trace, the peer, security headers,
/// compression, problems' bodies, the check against other sites, identity, limits, the handler.
pub fn router(state: AppState) -> Router {
    let api = Router::new()
        .merge(actions::router().with_state(state.engine.clone()))
        .merge(tasks::router())
        .merge(reports::router())
        .merge(rewards::router())
        .merge(panel::router())
        .merge(compensations::router())
        .merge(messages::router())
        .fallback(async || StatusCode::NOT_FOUND);
    let limited = Router::new()
        .nest("/api/v1", api)
        .merge(pages::router(&state))
        .layer(from_fn_with_state(state.limits.clone(), limits::limit));
    // Successful sign-ins are never throttled, so these stand beside the limits.
    let sessions = Router::new()
        .nest("/api/v1", session::api())
        .merge(session::forms());
    let identified = limited
        .merge(sessions)
        .layer(from_fn_with_state(state.engine.clone(), identify));
    let header =
        |name, value| SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value));
    Router::new()
        .route("/problems", get(problem_pages::list))
        .route("/problems/{code}", get(problem_pages::show))
        .merge(openapi::router())
        .merge(identified)
        .merge(pages::files(&state))
        .layer(
            ServiceBuilder::new()
                .layer(from_fn(measure::measure))
                .layer(from_fn(trace::trace))
                .layer(from_fn(limits::note_peer))
                .layer(header(
                    http::header::CONTENT_SECURITY_POLICY,
                    "default-src 'none'; frame-ancestors 'none'",
                ))
                .layer(header(http::header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
                .layer(header(http::header::REFERRER_POLICY, "same-origin"))
                .layer(CompressionLayer::new())
                .layer(from_fn(problem::render))
                .layer(CatchPanicLayer::new())
                // Also for server functions, which read their bodies themselves.
                .layer(RequestBodyLimitLayer::new(body::MAX_BODY))
                .layer(CsrfLayer::new()),
        )
        .route("/metrics", get(metrics::show))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .with_state(state)
}
