//! `POST` of every registered action: the key rules, the body, and the answer with its headers.

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    extract::{RawPathParams, State},
    response::{IntoResponse, Response},
    routing::post,
};
use domain::{ProblemCode, Role};
use engine::{Action, Answer, Arrival, Engine, REGISTRY, ReadError, TraceId};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER},
};

use super::{
    body::JsonBytes,
    key::read_key,
    problem::{ApiProblem, PROBLEM_JSON},
};
use crate::auth::Signed;

/// The longest wait that a caller may ask for.
const MAX_WAIT: Duration = Duration::from_secs(30);

pub(super) const IDEMPOTENCY_STATUS: HeaderName = HeaderName::from_static("idempotency-status");
pub(super) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// One route for each action in the registry.
pub fn router() -> Router<Engine> {
    REGISTRY.iter().fold(Router::new(), |router, action| {
        let submit = move |State(engine): State<Engine>,
                           signed: Signed,
                           axum::Extension(trace): axum::Extension<TraceId>,
                           parameters: RawPathParams,
                           headers: HeaderMap,
                           body: Result<JsonBytes, ApiProblem>| async move {
            submit(&engine, action, signed, trace, &parameters, &headers, body).await
        };
        router.route(action.route(), post(submit))
    })
}

async fn submit(
    engine: &Engine,
    action: &'static dyn Action,
    signed: Signed,
    trace: TraceId,
    parameters: &RawPathParams,
    headers: &HeaderMap,
    body: Result<JsonBytes, ApiProblem>,
) -> Result<Response, ApiProblem> {
    let actor = signed.require(&[Role::Student])?;
    let key = read_key(headers)?;
    let JsonBytes(body) = body?;
    let parameters: Vec<_> = parameters.iter().collect();
    let request = action
        .read(&parameters, &body)
        .map_err(|error| match error {
            ReadError::NoSuchRoute => ApiProblem::plain(ProblemCode::NotFound),
            ReadError::Body(detail) => ApiProblem::new(ProblemCode::InvalidBody, detail),
        })?;
    let arrival = Arrival {
        action: action.action_type(),
        key,
        command: request.command,
        client_id: request.client_id,
        trace_id: trace.0,
        wait: read_wait(headers),
    };
    let answer = engine.submit(&actor, arrival).await?;
    engine::crash::point("before_answer");
    Ok(respond(answer))
}

/// `Prefer: wait=N` (RFC 7240) in seconds, at most 30; anything else is no preference.
fn read_wait(headers: &HeaderMap) -> Duration {
    let preferences = headers
        .get_all(PREFER)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let seconds = preferences
        .flat_map(|value| value.split([',', ';']))
        .find_map(|preference| {
            let (name, seconds) = preference.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("wait")
                .then(|| seconds.trim().trim_matches('"').parse().ok())?
        });
    Duration::from_secs(seconds.unwrap_or(0)).min(MAX_WAIT)
}

fn respond(answer: Answer) -> Response {
    let json = HeaderValue::from_static("application/json");
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Body::from(answer.body)).into_response();
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        if answer.status >= 400 {
            PROBLEM_JSON
        } else {
            json
        },
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        IDEMPOTENCY_STATUS,
        HeaderValue::from_static(answer.bucket.header_value()),
    );
    if answer.replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    if let Some(location) = answer
        .location
        .and_then(|location| HeaderValue::from_str(&location).ok())
    {
        headers.insert(LOCATION, location);
    }
    if let Some(seconds) = answer.retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_and_bounded() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(PREFER, value.parse().unwrap());
            read_wait(&headers).as_secs()
        };
        for (value, seconds) in [
            ("wait=5", 5),
            ("respond-async, Wait = 7", 7),
            ("wait=900", 30),
            ("wait=-1", 0),
            ("wait", 0),
            ("other=3", 0),
        ] {
            assert_eq!(of(value), seconds, "{value}");
        }
    }
}
