//! The `Idempotency-Key` header, for every route that has one.

use domain::{IdempotencyKey, ProblemCode, key::InvalidKey};
use http::{HeaderMap, HeaderName};

use super::problem::ApiProblem;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The one `Idempotency-Key`.
///
/// # Errors
/// [`ProblemCode::KeyMissing`] or [`ProblemCode::KeyInvalid`].
pub fn read_key(headers: &HeaderMap) -> Result<IdempotencyKey, ApiProblem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let first = values
        .next()
        .ok_or_else(|| ApiProblem::plain(ProblemCode::KeyMissing))?;
    if values.next().is_some() {
        return Err(ApiProblem::new(
            ProblemCode::KeyInvalid,
            "There are two Idempotency-Key headers; send exactly one.",
        ));
    }
    IdempotencyKey::from_header(first.as_bytes()).map_err(|error| {
        let code = if error == InvalidKey::Empty {
            ProblemCode::KeyMissing
        } else {
            ProblemCode::KeyInvalid
        };
        ApiProblem::new(code, format!("{error}. {}", code.advice()))
    })
}
