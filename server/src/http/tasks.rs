//! What a student reads: tasks, submissions, requests, points.

use axum::{
    Json, Router,
    extract::{Path, Query, State, rejection::QueryRejection},
    routing::get,
};
use domain::{
    IdempotencyKey, ProblemCode, Role,
    view::{AttemptView, RequestView, SubmissionView, TaskView},
};
use engine::{Engine, REGISTRY};
use serde::{Deserialize, Serialize};

use super::{AppState, problem::ApiProblem};
use crate::auth::Signed;

/// The routes, below the API's root.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/tasks", get(list_tasks))
        .route("/tasks/{task_id}", get(show_task))
        .route("/tasks/{task_id}/submissions", get(list_submissions))
        .route("/submissions/{id}", get(show_submission))
        .route("/requests/{key}", get(show_request))
        .route("/points", get(show_points))
}

/// The answer of `GET /api/v1/tasks`.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Tasks {
    tasks: Vec<TaskView>,
}

/// The answer of `GET /api/v1/tasks/{task_id}/submissions`.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Submissions {
    submissions: Vec<AttemptView>,
}

/// The answer of `GET /api/v1/points`.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Points {
    balance: i64,
}

async fn list_tasks(
    State(engine): State<Engine>,
    signed: Signed,
) -> Result<Json<Tasks>, ApiProblem> {
    let actor = signed.require(&[Role::Student])?;
    Ok(Json(Tasks {
        tasks: engine.list_tasks(&actor).await?,
    }))
}

async fn show_task(
    State(engine): State<Engine>,
    signed: Signed,
    Path(task_id): Path<String>,
) -> Result<Json<TaskView>, ApiProblem> {
    let actor = signed.require(&[Role::Student])?;
    found(engine.find_task(&actor, &task_id).await?)
}

async fn list_submissions(
    State(engine): State<Engine>,
    signed: Signed,
    Path(task_id): Path<String>,
) -> Result<Json<Submissions>, ApiProblem> {
    let actor = signed.require(&[Role::Student])?;
    drop(found(engine.find_task(&actor, &task_id).await?)?);
    Ok(Json(Submissions {
        submissions: engine.list_submissions(&actor, &task_id).await?,
    }))
}

async fn show_submission(
    State(engine): State<Engine>,
    Signed(actor): Signed,
    Path(id): Path<String>,
) -> Result<Json<SubmissionView>, ApiProblem> {
    found(engine.find_submission(&actor, &id).await?)
}

/// Which action a key is for.
#[derive(Deserialize, utoipa::IntoParams)]
pub(super) struct RequestQuery {
    action: String,
}

async fn show_request(
    State(engine): State<Engine>,
    Signed(actor): Signed,
    Path(key): Path<String>,
    query: Result<Query<RequestQuery>, QueryRejection>,
) -> Result<Json<RequestView>, ApiProblem> {
    let Query(query) =
        query.map_err(|error| ApiProblem::new(ProblemCode::InvalidQuery, error.body_text()))?;
    let key = IdempotencyKey::from_text(&key)
        .map_err(|error| ApiProblem::new(ProblemCode::KeyInvalid, format!("{error}.")))?;
    if REGISTRY.find(&query.action).is_none() {
        return Err(ApiProblem::new(
            ProblemCode::InvalidQuery,
            "`action` is not the name of an action.",
        ));
    }
    found(engine.find_request(&actor, &query.action, &key).await?)
}

async fn show_points(
    State(engine): State<Engine>,
    signed: Signed,
) -> Result<Json<Points>, ApiProblem> {
    let actor = signed.require(&[Role::Student])?;
    Ok(Json(Points {
        balance: engine.points_balance(&actor).await?,
    }))
}

/// The thing, or 404 whether it is missing or somebody else's.
pub(super) fn found<T>(thing: Option<T>) -> Result<Json<T>, ApiProblem> {
    thing
        .map(Json)
        .ok_or_else(|| ApiProblem::plain(ProblemCode::NotFound))
}
