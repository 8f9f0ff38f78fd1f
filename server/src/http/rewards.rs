//! Rewards, and what a student redeemed. The redemption itself is an action of the registry.

use axum::{
    Json, Router,
    extract::{Path, State},
    routing::get,
};
use domain::{
    Role,
    view::{RedemptionView, RewardView},
};
use engine::Engine;
use serde::Serialize;

use super::{AppState, problem::ApiProblem, tasks::found};
use crate::auth::Signed;

/// The routes, below the API's root.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/rewards", get(list_rewards))
        .route("/redemptions", get(list_redemptions))
        .route("/redemptions/{id}", get(show_redemption))
}

/// The answer of `GET /api/v1/rewards`.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Rewards {
    rewards: Vec<RewardView>,
}

/// The answer of `GET /api/v1/redemptions`.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Redemptions {
    redemptions: Vec<RedemptionView>,
}

async fn list_rewards(
    State(engine): State<Engine>,
    signed: Signed,
) -> Result<Json<Rewards>, ApiProblem> {
    let actor = signed.require(&[Role::Student])?;
    Ok(Json(Rewards {
        rewards: engine.list_rewards(&actor).await?,
    }))
}

async fn list_redemptions(
    State(engine): State<Engine>,
    signed: Signed,
) -> Result<Json<Redemptions>, ApiProblem> {
    let actor = signed.require(&[Role::Student])?;
    Ok(Json(Redemptions {
        redemptions: engine.list_redemptions(&actor).await?,
    }))
}

async fn show_redemption(
    State(engine): State<Engine>,
    signed: Signed,
    Path(id): Path<String>,
) -> Result<Json<RedemptionView>, ApiProblem> {
    let actor = signed.require(&[Role::Student])?;
    found(engine.find_redemption(&actor, &id).await?)
}
