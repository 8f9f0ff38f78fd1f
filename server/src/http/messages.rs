//! Messages: what teachers and parents are told, and dead letters that an admin lets be tried again.

use axum::{
    Extension, Json, Router,
    extract::{Path, State},
    routing::{get, post},
};
use domain::{ProblemCode, Role, view::NotificationView};
use engine::{Engine, Origin, Replayed, Requester, TraceId};
use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::{AppState, body::JsonBody, problem::ApiProblem};
use crate::auth::Signed;

/// The routes, below the API's root.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/notifications", get(list_notifications))
        .route("/outbox/{id}/replay", post(replay))
}

/// The answer of `GET /api/v1/notifications`.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Notifications {
    notifications: Vec<NotificationView>,
}

/// The body of `POST /api/v1/outbox/{id}/replay`.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplayBody {
    reason: String,
}

async fn list_notifications(
    State(engine): State<Engine>,
    signed: Signed,
) -> Result<Json<Notifications>, ApiProblem> {
    let actor = signed.require(&[Role::Teacher, Role::Parent])?;
    Ok(Json(Notifications {
        notifications: engine.list_notifications(&actor).await?,
    }))
}

async fn replay(
    State(engine): State<Engine>,
    signed: Signed,
    Extension(origin): Extension<Origin>,
    Extension(trace): Extension<TraceId>,
    Path(id): Path<String>,
    body: Result<JsonBody<ReplayBody>, ApiProblem>,
) -> Result<StatusCode, ApiProblem> {
    let actor = signed.require(&[Role::Admin])?;
    let JsonBody(body) = body?;
    let requester = Requester {
        actor: Some(actor),
        origin: origin.0,
        trace_id: trace.0,
    };
    match engine.replay_message(&requester, &id, &body.reason).await? {
        Replayed::Done => Ok(StatusCode::NO_CONTENT),
        Replayed::NotDead => Err(ApiProblem::plain(ProblemCode::NotDead)),
    }
}
