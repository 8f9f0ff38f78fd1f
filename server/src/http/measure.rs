//! How long each route takes, and how often it fails. Labels are the documented routes and a few words, whatever is asked for.

use std::{collections::HashMap, sync::OnceLock, time::Instant};

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::StatusCode;
use metrics::{counter, histogram};

use super::openapi;
use crate::telemetry::recorder::{HTTP_ANSWERS, HTTP_SECONDS};

/// What no documented route is.
const OTHERS: [&str; 4] = ["page", "server function", "file", "other"];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Middleware: measures each answer.
pub async fn measure(request: Request, next: Next) -> Response {
    let route = route(&request);
    let begun = Instant::now();
    let response = next.run(request).await;
    histogram!(HTTP_SECONDS, "route" => route).record(begun.elapsed());
    let class = class(response.status());
    counter!(HTTP_ANSWERS, "route" => route, "status" => class).increment(1);
    response
}

/// Makes every series be there at 0.
pub fn begin() {
    for route in labels().values().copied().chain(OTHERS) {
        drop(histogram!(HTTP_SECONDS, "route" => route));
        for class in &CLASSES[1..] {
            counter!(HTTP_ANSWERS, "route" => route, "status" => *class).increment(0);
        }
    }
}

/// The label of each documented route.
fn labels() -> &'static HashMap<(&'static str, &'static str), &'static str> {
    static LABELS: OnceLock<HashMap<(&'static str, &'static str), &'static str>> = OnceLock::new();
    LABELS.get_or_init(|| {
        openapi::routes()
            .map(|(method, path)| {
                let label: &'static str = format!("{method} {path}").leak();
                ((method, path), label)
            })
            .collect()
    })
}

fn route(request: &Request) -> &'static str {
    let Some(path) = request.extensions().get::<MatchedPath>() else {
        return "page";
    };
    let path = path.as_str();
    if let Some(label) = labels().get(&(request.method().as_str(), path)) {
        return label;
    }
    match path {
        _ if path.starts_with("/api/fn/") => "server function",
        _ if path.starts_with("/api/") => "other",
        _ if path.starts_with("/pkg") || path.starts_with("/favicon") => "file",
        _ => "page",
    }
}

fn class(status: StatusCode) -> &'static str {
    CLASSES
        .get(usize::from(status.as_u16() / 100).saturating_sub(1))
        .copied()
        .unwrap_or("5xx")
}
