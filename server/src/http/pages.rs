//! The pages and their files.

use axum::Router;

use super::{AppState, Site};

/// The pages, their server functions and their files.
pub fn router(_state: &AppState, _site: &Site) -> Router<AppState> {
    Router::new()
}
