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

/// `GET /readyz`: the database answers and is migrated, and the process is not stopping.
pub async fn readyz(State(state): State<AppState>) -> Response {
    let draining = state.feed.stopping().is_cancelled();
    let schema = state.engine.has_schema().await;
    if let Err(error) = &schema {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "not ready: the store is away"
        );
    }
    let (database, migrated) = (schema.is_ok(), schema.unwrap_or(false));
    let ready = migrated && !draining;
    // Never decides: every instance shares it, and none would be left.
    let front_lock = state.engine.front_lock_health();
    let detail = json!({
        "ready": ready,
        "database": database,
        "migrated": migrated,
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
