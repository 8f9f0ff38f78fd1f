//! Every error answer is a problem (RFC 9457) and is written in one place, which knows the trace.

use axum::{
    body::Body,
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::{
    ProblemCode,
    problem::{OUTAGE_RETRY_AFTER_SECONDS, Problem},
};
use engine::{StoreError, SubmitError, TraceId};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use serde::Serialize;
use serde_json::{Map, Value};

/// The media type of problems.
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A problem on its way out; [`render`] writes its body.
#[derive(Debug, Clone)]
pub struct ApiProblem {
    code: ProblemCode,
    detail: String,
    retry_after: Option<u32>,
    more: Option<Box<Map<String, Value>>>,
}

impl ApiProblem {
    /// A problem with what happened this time.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            retry_after: None,
            more: None,
        }
    }

    /// A problem whose advice says it all.
    pub fn plain(code: ProblemCode) -> Self {
        Self::new(code, code.advice())
    }

    /// Nothing is accepted now: the store is away, or this process is stopping.
    pub fn unavailable() -> Self {
        Self::plain(ProblemCode::StoreUnavailable).retry_after(OUTAGE_RETRY_AFTER_SECONDS)
    }

    /// The same, with members of its own (RFC 9457, extension members).
    #[must_use]
    pub fn with(self, more: Map<String, Value>) -> Self {
        Self {
            more: Some(Box::new(more)),
            ..self
        }
    }

    /// The same, with the seconds to wait.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }
}

impl From<StoreError> for ApiProblem {
    fn from(error: StoreError) -> Self {
        if error.is_passing() {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the store is away"
            );
            return Self::unavailable();
        }
        tracing::error!(error = &error as &dyn std::error::Error, "a request failed");
        Self::plain(ProblemCode::Internal)
    }
}

impl From<SubmitError> for ApiProblem {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Store(error) => error.into(),
            SubmitError::UnknownAction => Self::plain(ProblemCode::NotFound),
            SubmitError::InvalidCommand(detail) => Self::new(ProblemCode::InvalidBody, detail),
            SubmitError::NoProvider => Self::plain(ProblemCode::RewardsUnavailable),
            SubmitError::FrontLockUnavailable => Self::plain(ProblemCode::FrontLockUnavailable)
                .retry_after(OUTAGE_RETRY_AFTER_SECONDS),
            SubmitError::Stopping => Self::unavailable(),
        }
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() =
            StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Middleware: writes the body of each problem, and makes problems of the bare errors of routers and layers.
pub async fn render(request: Request, next: Next) -> Response {
    let trace_id = request
        .extensions()
        .get::<TraceId>()
        .map(|trace| trace.0.clone())
        .unwrap_or_default();
    let mut response = next.run(request).await;
    let problem = match response.extensions_mut().remove::<ApiProblem>() {
        Some(problem) => problem,
        None => match bare(&response) {
            Some(code) => ApiProblem::plain(code),
            None => return response,
        },
    };
    let body = ProblemBody {
        problem: Problem::new(problem.code, problem.detail, trace_id),
        more: problem.more,
    };
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, PROBLEM_JSON);
    parts
        .headers
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Response::from_parts(
        parts,
        Body::from(serde_json::to_vec(&body).unwrap_or_default()),
    )
}

/// A problem with its own members beside those of all.
#[derive(Serialize)]
struct ProblemBody {
    #[serde(flatten)]
    problem: Problem,
    #[serde(flatten)]
    more: Option<Box<Map<String, Value>>>,
}

/// What an error without our body means.
fn bare(response: &Response) -> Option<ProblemCode> {
    let json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| {
        kind == PROBLEM_JSON
            || kind.as_bytes().starts_with(b"application/json")
            || kind.as_bytes().starts_with(b"text/html")
    });
    if json {
        return None;
    }
    match response.status() {
        StatusCode::FORBIDDEN => Some(ProblemCode::CrossSite),
        StatusCode::NOT_FOUND => Some(ProblemCode::NotFound),
        StatusCode::METHOD_NOT_ALLOWED => Some(ProblemCode::MethodNotAllowed),
        StatusCode::PAYLOAD_TOO_LARGE => Some(ProblemCode::BodyTooLarge),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Some(ProblemCode::UnsupportedMediaType),
        StatusCode::INTERNAL_SERVER_ERROR => Some(ProblemCode::Internal),
        _ => None,
    }
}
