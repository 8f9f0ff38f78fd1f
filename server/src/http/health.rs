//! Whether the process lives, and whether it should be sent requests. Neither is ever rate limited.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde_json::json;

use super::AppState;

/// `GET /healthz`: the process answers.
pub async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the database answers, and the process is not stopping. The schema was checked before anything was served.
pub async fn readyz(State(state): State<AppState>) -> Response {
    let draining = state.feed.stopping().is_cancelled();
    let database = state.engine.ping().await;
    if let Err(error) = &database {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "not ready: the store is away"
        );
    }
    let ready = database.is_ok() && !draining;
    // Never decides: every instance shares it, and none would be left.
    let front_lock = state.engine.front_lock_health();
    let detail = json!({
        "ready": ready,
        "database": database.is_ok(),
        "draining": draining,
        "front_lock": front_lock,
    });
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(detail)).into_response()
}
