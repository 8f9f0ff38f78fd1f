//! Bodies: JSON of the described form, at most 1 MiB, or a problem that says what to mend.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
};
use domain::ProblemCode;
use http::{StatusCode, header::CONTENT_TYPE};
use serde::de::DeserializeOwned;

use super::problem::ApiProblem;

/// The largest body, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;

/// Extractor: the bytes of a body that is declared as JSON.
#[derive(Debug)]
pub struct JsonBytes(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for JsonBytes {
    type Rejection = ApiProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiProblem> {
        let declared = request
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        let kind = declared.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(ApiProblem::plain(ProblemCode::UnsupportedMediaType));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(unread)?;
        Ok(Self(bytes))
    }
}

fn unread(rejection: BytesRejection) -> ApiProblem {
    use axum::response::IntoResponse;
    if rejection.into_response().status() == StatusCode::PAYLOAD_TOO_LARGE {
        ApiProblem::plain(ProblemCode::BodyTooLarge)
    } else {
        ApiProblem::new(
            ProblemCode::InvalidBody,
            "The body did not arrive whole; nothing was stored.",
        )
    }
}

/// Extractor: a body of this form.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiProblem;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiProblem> {
        let JsonBytes(bytes) = JsonBytes::from_request(request, state).await?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| ApiProblem::new(ProblemCode::InvalidBody, error.to_string()))
    }
}
