//! What teachers and parents read.

use axum::{
    Json, Router,
    extract::{Path, State},
    routing::get,
};
use domain::{
    Role,
    view::{ChildReport, ClassProgress, ClassView, StudentView},
};
use engine::Engine;
use serde::Serialize;

use super::{AppState, problem::ApiProblem, tasks::found};
use crate::auth::Signed;

/// The routes, below the API's root.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/classes", get(list_classes))
        .route("/classes/{id}/progress", get(show_progress))
        .route("/children", get(list_children))
        .route("/children/{id}/report", get(show_report))
}

/// The answer of `GET /api/v1/classes`.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Classes {
    classes: Vec<ClassView>,
}

/// The answer of `GET /api/v1/children`.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Children {
    children: Vec<StudentView>,
}

async fn list_classes(
    State(engine): State<Engine>,
    signed: Signed,
) -> Result<Json<Classes>, ApiProblem> {
    let actor = signed.require(&[Role::Teacher])?;
    Ok(Json(Classes {
        classes: engine.list_classes(&actor).await?,
    }))
}

async fn show_progress(
    State(engine): State<Engine>,
    signed: Signed,
    Path(id): Path<String>,
) -> Result<Json<ClassProgress>, ApiProblem> {
    let actor = signed.require(&[Role::Teacher])?;
    found(engine.class_progress(&actor, &id).await?)
}

async fn list_children(
    State(engine): State<Engine>,
    signed: Signed,
) -> Result<Json<Children>, ApiProblem> {
    let actor = signed.require(&[Role::Parent])?;
    Ok(Json(Children {
        children: engine.list_children(&actor).await?,
    }))
}

async fn show_report(
    State(engine): State<Engine>,
    signed: Signed,
    Path(id): Path<String>,
) -> Result<Json<ChildReport>, ApiProblem> {
    let actor = signed.require(&[Role::Parent])?;
    found(engine.child_report(&actor, &id).await?)
}
