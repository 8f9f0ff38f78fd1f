//! What admins do about records that did not end, one by one and in bulk, and what ops and admins read of it.

use axum::{
    Extension, Json, Router,
    extract::{Path, Query, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use domain::{
    ProblemCode, Role,
    compensation::{CompensationAction, CompensationStatus, Decision},
    view::{
        AuditFilter, AuditPage, BulkAnswer, CompensationAnswer, CompensationPage, RecordFilter,
    },
};
use engine::{
    Actor, BulkError, BulkTarget, Compensate, CompensateError, Engine, Origin, Requester, TraceId,
};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    AppState,
    body::JsonBody,
    key::read_key,
    problem::ApiProblem,
    query::{check_list, checked, page},
    tasks::found,
};
use crate::auth::Signed;

/// Who acts.
const ACTORS: &[Role] = &[Role::Admin];
/// Who reads.
const READERS: &[Role] = &[Role::Ops, Role::Admin];

/// The routes, below the API's root.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/records/{id}/compensations", post(compensate))
        .route("/compensations", get(list).post(start_bulk))
        .route("/compensations/{id}/approval", post(decide))
        .route("/compensations/bulk/{id}", get(show_bulk))
        .route("/audit", get(list_audit))
}

/// The body of `POST /api/v1/records/{id}/compensations`.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompensationBody {
    action: CompensationAction,
    reason: String,
    expected_version: i64,
}

/// The body of `POST /api/v1/compensations/{id}/approval`.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionBody {
    decision: Decision,
    reason: String,
}

/// The body of `POST /api/v1/compensations`.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkBody {
    filter: Option<RecordFilter>,
    ids: Option<Vec<String>>,
    action: CompensationAction,
    reason: String,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    status: Option<CompensationStatus>,
    after: Option<String>,
    limit: Option<u32>,
}

async fn compensate(
    State(engine): State<Engine>,
    signed: Signed,
    Extension(origin): Extension<Origin>,
    Extension(trace): Extension<TraceId>,
    Path(record_id): Path<String>,
    headers: HeaderMap,
    body: Result<JsonBody<CompensationBody>, ApiProblem>,
) -> Result<Response, ApiProblem> {
    let actor = signed.require(ACTORS)?;
    let key = read_key(&headers)?;
    let JsonBody(body) = body?;
    let asked = Compensate {
        record_id,
        action: body.action,
        reason: body.reason,
        expected_version: Some(body.expected_version),
        key,
    };
    answer(
        engine
            .compensate(&requester(actor, origin, trace), asked)
            .await?,
    )
}

async fn decide(
    State(engine): State<Engine>,
    signed: Signed,
    Extension(origin): Extension<Origin>,
    Extension(trace): Extension<TraceId>,
    Path(id): Path<String>,
    body: Result<JsonBody<DecisionBody>, ApiProblem>,
) -> Result<Response, ApiProblem> {
    let actor = signed.require(ACTORS)?;
    let JsonBody(body) = body?;
    let requester = requester(actor, origin, trace);
    answer(
        engine
            .decide(&requester, &id, body.decision, &body.reason)
            .await?,
    )
}

async fn start_bulk(
    State(engine): State<Engine>,
    signed: Signed,
    Extension(origin): Extension<Origin>,
    Extension(trace): Extension<TraceId>,
    headers: HeaderMap,
    body: Result<JsonBody<BulkBody>, ApiProblem>,
) -> Result<(StatusCode, Json<BulkAnswer>), ApiProblem> {
    let actor = signed.require(ACTORS)?;
    let key = read_key(&headers)?;
    let JsonBody(body) = body?;
    let target = match (body.filter, body.ids) {
        (Some(filter), None) => {
            check_list(filter.limit, &[&filter.action, &filter.subject, &filter.q])?;
            BulkTarget::Filter(Box::new(filter))
        }
        (None, Some(ids)) => BulkTarget::Ids(ids),
        _ => {
            return Err(ApiProblem::new(
                ProblemCode::InvalidBody,
                "Send either `filter` or `ids`.",
            ));
        }
    };
    let requester = requester(actor, origin, trace);
    let started = engine.start_bulk(&requester, target, body.action, &body.reason, &key);
    let bulk = started.await?;
    Ok((StatusCode::ACCEPTED, Json(BulkAnswer { bulk })))
}

async fn show_bulk(
    State(engine): State<Engine>,
    signed: Signed,
    Path(id): Path<String>,
) -> Result<Json<BulkAnswer>, ApiProblem> {
    signed.require(READERS)?;
    found(engine.find_bulk(&id).await?.map(|bulk| BulkAnswer { bulk }))
}

async fn list(
    State(engine): State<Engine>,
    signed: Signed,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<CompensationPage>, ApiProblem> {
    signed.require(READERS)?;
    let query = checked(query)?;
    check_list(query.limit, &[])?;
    let listed = engine.list_compensations(query.status, query.after.as_deref(), query.limit);
    page(listed.await?)
}

async fn list_audit(
    State(engine): State<Engine>,
    signed: Signed,
    query: Result<Query<AuditFilter>, QueryRejection>,
) -> Result<Json<AuditPage>, ApiProblem> {
    signed.require(READERS)?;
    let filter = checked(query)?;
    check_list(
        filter.limit,
        &[&filter.actor, &filter.action, &filter.object],
    )?;
    page(engine.list_audit(&filter).await?)
}

fn requester(actor: Actor, origin: Origin, trace: TraceId) -> Requester {
    Requester {
        actor: Some(actor),
        origin: origin.0,
        trace_id: trace.0,
    }
}

/// 200, 202 while a second person has to decide, or the problem by which it was refused, with the record as it is.
fn answer(answer: CompensationAnswer) -> Result<Response, ApiProblem> {
    let refusal = answer.compensation.refusal.as_deref();
    if let Some(code) = refusal.and_then(|code| code.parse::<ProblemCode>().ok()) {
        let more = match serde_json::to_value(&answer) {
            Ok(Value::Object(more)) => more,
            _ => Map::new(),
        };
        return Err(ApiProblem::plain(code).with(more));
    }
    let status = if answer.compensation.status == CompensationStatus::AwaitingApproval {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(answer)).into_response())
}

impl From<CompensateError> for ApiProblem {
    fn from(error: CompensateError) -> Self {
        match error {
            CompensateError::Store(error) => error.into(),
            CompensateError::Forbidden => Self::plain(ProblemCode::Forbidden),
            CompensateError::NotFound => Self::plain(ProblemCode::NotFound),
            CompensateError::KeyReused => Self::plain(ProblemCode::KeyReused),
            CompensateError::InvalidReason => {
                Self::new(ProblemCode::InvalidBody, format!("`reason`: {error}."))
            }
            CompensateError::Nameless | CompensateError::SecondPersonNeeded => {
                Self::plain(ProblemCode::SecondPersonNeeded)
            }
            CompensateError::AlreadyDecided(_) => {
                Self::new(ProblemCode::AlreadyDecided, format!("{error}."))
            }
            CompensateError::Stopping => Self::unavailable(),
        }
    }
}

impl From<BulkError> for ApiProblem {
    fn from(error: BulkError) -> Self {
        match error {
            BulkError::Compensate(error) => error.into(),
            BulkError::InvalidId(_) => {
                Self::new(ProblemCode::InvalidBody, format!("`ids`: {error}."))
            }
            BulkError::InvalidSize => Self::new(ProblemCode::BulkTooLarge, format!("{error}.")),
        }
    }
}
