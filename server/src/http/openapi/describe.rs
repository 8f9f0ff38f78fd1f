//! The routes as OpenAPI writes them.

use serde_json::{Map, Value, json};

use super::{
    routes::{Holds, ROUTES, Route, Who},
    shapes,
};

/// What the whole API has in common.
pub(super) const INTRODUCTION: &str = "\
One business intent, one effect, one answer. A request that changes something carries an `Idempotency-Key`: 1 to 255 printable \
ASCII characters that name the intent. Repeat it unchanged in every retry, and the effect happens once. Errors are problems \
(RFC 9457) with a `code`; `/problems` explains each. Ids are strings, times are RFC 3339 in UTC.";

/// Tags in the order of the page.
const TAGS: &[(&str, &str)] = &[
    ("session", "Signing in"),
    ("tasks", "Tasks and what is handed in"),
    ("rewards", "Points and rewards"),
    ("reports", "What teachers and parents read"),
    ("panel", "What ops see"),
    ("compensations", "What admins do"),
    ("watching", "Watching, and this description"),
];

pub(super) fn tags() -> Value {
    let tag =
        |(name, description): &(&str, &str)| json!({ "name": name, "description": description });
    TAGS.iter().map(tag).collect()
}

pub(super) fn paths() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.to_ascii_lowercase()] = operation(route);
    }
    paths.into()
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "tags": [route.tag],
        "summary": route.summary,
        "operationId": operation_id(route),
        "parameters": parameters(route),
        "responses": responses(route),
        "security": match route.who {
            Who::Anybody => json!([]),
            Who::Signed | Who::Roles(_) => json!([{ "token": [] }, { "session": [] }]),
        },
    });
    if let Who::Roles(roles) = route.who {
        let roles: Vec<&str> = roles.iter().map(AsRef::as_ref).collect();
        operation["description"] =
            format!("For accounts of the role {}.", roles.join(" or ")).into();
    }
    if let Some(body) = route.body {
        operation["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": { "$ref": body.reference() } } },
        });
    }
    operation
}

/// The method and the path's words.
fn operation_id(route: &Route) -> String {
    let words = route
        .path
        .split(['/', '.', '{', '}'])
        .filter(|word| !word.is_empty() && *word != "api" && *word != "v1");
    let method = route.method.to_ascii_lowercase();
    std::iter::once(method.as_str())
        .chain(words)
        .collect::<Vec<_>>()
        .join("_")
}

fn parameters(route: &Route) -> Value {
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if let Some(Value::Array(query)) = route.query.map(|query| query()) {
        parameters.extend(query);
    }
    if route.keyed {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": true,
            "description": "Names the intent; the same in every retry.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" },
        }));
    }
    if route.arrival {
        parameters.push(json!({
            "name": "Prefer", "in": "header", "required": false,
            "description": "`wait=N`: wait up to N seconds, at most 30, for an execution that runs already.",
            "schema": { "type": "string" },
        }));
    }
    parameters.into()
}

fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    for (status, words, holds) in route.answers {
        let mut response = json!({ "description": words });
        match holds {
            Holds::Nothing => {}
            Holds::Json(shape) => {
                response["content"] =
                    json!({ "application/json": { "schema": { "$ref": shape.reference() } } });
            }
            Holds::Text(kind) => response["content"] = json!({ *kind: {} }),
        }
        if route.arrival {
            response["headers"] = json!({
                "Idempotency-Status": {
                    "description": "The bucket of this arrival.",
                    "schema": { "enum": ["new", "reused", "processing", "unknown", "mismatch", "constraint-conflict"] },
                },
                "Idempotent-Replayed": { "description": "`true` for the stored answer of before.", "schema": { "type": "string" } },
            });
        }
        responses.insert(status.to_string(), response);
    }
    for status in refusals(route) {
        responses.entry(status.to_string()).or_insert_with(|| {
            json!({
                "description": words(status),
                "content": { "application/problem+json": { "schema": { "$ref": shapes::PROBLEM.reference() } } },
            })
        });
    }
    responses.into()
}

/// Its own, and those of its kind.
fn refusals(route: &Route) -> Vec<u16> {
    let mut statuses = route.refusals.to_vec();
    match route.who {
        Who::Anybody => {}
        Who::Signed => statuses.extend([401, 429, 503]),
        Who::Roles(_) => statuses.extend([401, 403, 429, 503]),
    }
    if matches!(route.path, "/metrics" | "/readyz" | "/api/v1/session") {
        statuses.push(503);
    }
    statuses.sort_unstable();
    statuses
}

fn words(status: u16) -> &'static str {
    match status {
        400 => "The request is not as described.",
        401 => "Nobody is signed in.",
        403 => "The role does not permit this.",
        404 => "Nothing here that this account may see.",
        409 => "It cannot be done as things stand.",
        413 => "The body is too large.",
        415 => "The body must be JSON.",
        422 => "The key was used for another request, or the evidence forbids it.",
        429 => "Too many requests; see `Retry-After`.",
        503 => "Not now; repeat with the same key after `Retry-After`.",
        _ => "A problem.",
    }
}
