//! The description of the API: `GET /api/openapi.json` (OpenAPI 3.1) and `GET /api/docs`, which shows it. Anybody may read both.
//!
//! The schemas are those of the types that are really answered; the list of routes is `routes`, and a test walks it.

use std::sync::OnceLock;

use axum::{
    Router,
    response::{Html, IntoResponse, Response},
    routing::get,
};
use http::{
    HeaderName,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};
use serde_json::{Value, json};

use super::AppState;

mod describe;
mod page;
mod routes;
mod shapes;

/// The routes of the documentation.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/api/openapi.json", get(show))
        .route("/api/docs", get(docs))
}

/// Method and path of each documented route.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    routes::ROUTES
        .iter()
        .map(|route| (route.method, route.path))
}

/// The document.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Yici",
                "version": env!("CARGO_PKG_VERSION"),
                "description": describe::INTRODUCTION,
                "license": { "name": "MIT", "identifier": "MIT" },
            },
            "servers": [{ "url": "/" }],
            "tags": describe::tags(),
            "paths": describe::paths(),
            "components": {
                "schemas": shapes::components(),
                "securitySchemes": {
                    "token": { "type": "http", "scheme": "bearer" },
                    "session": { "type": "apiKey", "in": "cookie", "name": crate::auth::SESSION_COOKIE },
                },
            },
        })
    })
}

const CACHED: (HeaderName, &str) = (CACHE_CONTROL, "public, max-age=300");

async fn show() -> Response {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| document().to_string());
    ([(CONTENT_TYPE, "application/json"), CACHED], text.as_str()).into_response()
}

async fn docs() -> Response {
    static PAGE: OnceLock<String> = OnceLock::new();
    let page = PAGE.get_or_init(|| page::render(document()));
    // The style is in the page, and permitted by its hash: the page needs no file and no script.
    let policy = (CONTENT_SECURITY_POLICY, page::policy());
    let headers = [(CACHED.0, CACHED.1.to_owned()), policy];
    (headers, Html(page.as_str())).into_response()
}
