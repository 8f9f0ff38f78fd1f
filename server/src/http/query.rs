//! Queries of lists: of the described form, or a problem that says what to mend.

use axum::{
    Json,
    extract::{Query, rejection::QueryRejection},
};
use domain::ProblemCode;

use super::problem::ApiProblem;

/// The longest page of a list.
const MAX_LIMIT: u32 = 200;

/// A query of the described form.
///
/// # Errors
/// [`ProblemCode::InvalidQuery`].
pub fn checked<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, ApiProblem> {
    query
        .map(|Query(query)| query)
        .map_err(|error| ApiProblem::new(ProblemCode::InvalidQuery, error.body_text()))
}

/// Checks what every list has: a limit within bounds, and texts that a database can hold.
///
/// # Errors
/// [`ProblemCode::InvalidQuery`].
pub fn check_list(limit: Option<u32>, texts: &[&Option<String>]) -> Result<(), ApiProblem> {
    let refuse = |detail: &str| Err(ApiProblem::new(ProblemCode::InvalidQuery, detail));
    if limit.is_some_and(|limit| !(1..=MAX_LIMIT).contains(&limit)) {
        return refuse("`limit` must be 1 to 200.");
    }
    let mut texts = texts.iter().copied().flatten();
    if texts.any(|text| text.contains('\0')) {
        return refuse("The NUL character is in no record.");
    }
    Ok(())
}

/// A page, or the problem that its cursor is none of ours.
///
/// # Errors
/// [`ProblemCode::InvalidQuery`].
pub fn page<T>(page: Option<T>) -> Result<Json<T>, ApiProblem> {
    page.map(Json).ok_or_else(|| {
        ApiProblem::new(
            ProblemCode::InvalidQuery,
            "`after` is no cursor of this list.",
        )
    })
}
