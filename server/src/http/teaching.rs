//! What teachers do over the API: new tasks, and one more version for a student.

use axum::{
    Json, Router,
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::post,
};
use domain::{
    Bucket, ProblemCode, Role,
    teaching::{NewTask, ReopeningBody},
    view::{AssignedTask, TaskView},
};
use engine::{Assigned, Engine};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::{
    AppState,
    actions::{IDEMPOTENCY_STATUS, IDEMPOTENT_REPLAYED},
    body::JsonBody,
    key::read_key,
    problem::ApiProblem,
    tasks::found,
};
use crate::auth::Signed;

/// The routes, below the API's root.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/tasks", post(assign_task))
        .route("/tasks/{task_id}/reopening", post(reopen_task))
}

async fn assign_task(
    State(engine): State<Engine>,
    signed: Signed,
    headers: HeaderMap,
    body: Result<JsonBody<NewTask>, ApiProblem>,
) -> Result<Response, ApiProblem> {
    let actor = signed.require(&[Role::Teacher])?;
    let key = read_key(&headers)?;
    let JsonBody(new) = body?;
    let (status, bucket, task) = match engine.assign_task(&actor, &key, new).await? {
        Assigned::New(task) => (StatusCode::CREATED, Bucket::New, task),
        Assigned::Reused(task) => (StatusCode::CREATED, Bucket::Reused, task),
        Assigned::Exists(task) => (StatusCode::OK, Bucket::ConstraintConflict, task),
        Assigned::KeyReused => {
            let problem = ApiProblem::plain(ProblemCode::KeyReused);
            return Ok((status_header(Bucket::Mismatch), problem).into_response());
        }
        Assigned::NoSuchClass => return Err(ApiProblem::plain(ProblemCode::NotFound)),
        Assigned::Invalid(invalid) => {
            return Err(ApiProblem::new(
                ProblemCode::InvalidBody,
                format!("{invalid}."),
            ));
        }
    };
    Ok(respond(status, bucket, &task))
}

fn respond(status: StatusCode, bucket: Bucket, task: &AssignedTask) -> Response {
    let mut response = (status, status_header(bucket), Json(task)).into_response();
    if bucket == Bucket::Reused {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, yes);
    }
    response
}

fn status_header(bucket: Bucket) -> [(http::HeaderName, &'static str); 1] {
    [(IDEMPOTENCY_STATUS, bucket.header_value())]
}

async fn reopen_task(
    State(engine): State<Engine>,
    signed: Signed,
    Path(task_id): Path<String>,
    body: Result<JsonBody<ReopeningBody>, ApiProblem>,
) -> Result<Json<TaskView>, ApiProblem> {
    let actor = signed.require(&[Role::Teacher])?;
    let JsonBody(body) = body?;
    let task = engine
        .reopen_task(&actor, &task_id, &body.student_id, None)
        .await?;
    found(task)
}
