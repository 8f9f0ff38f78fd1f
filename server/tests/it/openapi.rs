//! The description of the API: whole, and true of real answers.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    roles::MATRIX,
    support::{World, fresh_submission, request},
};

/// The document's path for a path of the matrix.
fn documented<'a>(document: &'a Value, method: &str, path: &str) -> Option<&'a Value> {
    let path = path.split('?').next().unwrap_or(path);
    let fits = |pattern: &str| {
        let (pattern, path): (Vec<_>, Vec<_>) =
            (pattern.split('/').collect(), path.split('/').collect());
        pattern.len() == path.len()
            && pattern
                .iter()
                .zip(&path)
                .all(|(pattern, part)| pattern == part || pattern.starts_with('{'))
    };
    let paths = document["paths"].as_object()?;
    // A literal path counts before one with parameters.
    let mut found: Vec<_> = paths.iter().filter(|(pattern, _)| fits(pattern)).collect();
    found.sort_by_key(|(pattern, _)| pattern.matches('{').count());
    found
        .iter()
        .find_map(|(_, item)| item.get(method.to_ascii_lowercase()))
}

async fn document(world: &World) -> Value {
    let answer = world.get("", "/api/openapi.json").await;
    assert_eq!(answer.status, 200);
    answer.json()
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn every_route_of_the_matrix_is_described(pool: PgPool) {
    let document = document(&World::new(pool).await).await;
    let missing: Vec<_> = MATRIX
        .iter()
        .filter(|(_, path, _)| path.starts_with("/api/v1") || path.starts_with("/api/openapi"))
        .filter(|(method, path, _)| documented(&document, method, path).is_none())
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn every_described_route_is_in_the_matrix_or_is_told_why_not(pool: PgPool) {
    // Signing in has tests of its own; a stream never ends.
    const ELSEWHERE: &[&str] = &[
        "POST /api/v1/session",
        "DELETE /api/v1/session",
        "GET /api/v1/panel/events",
    ];
    let document = document(&World::new(pool).await).await;
    let mut missing: BTreeSet<String> = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            missing.insert(format!("{} {path}", method.to_ascii_uppercase()));
        }
    }
    for (method, path, _) in MATRIX {
        if let Some(operation) = documented(&document, method, path) {
            missing.retain(|route| {
                let (method, path) = route.split_once(' ').unwrap();
                documented(&document, method, path) != Some(operation)
            });
        }
    }
    missing.retain(|route| !ELSEWHERE.contains(&route.as_str()));
    assert!(missing.is_empty(), "{missing:#?}");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn real_answers_are_as_described(pool: PgPool) {
    let world = World::new(pool).await;
    let document = document(&world).await;
    let student = world.token("student1").await;
    let path = "/api/v1/tasks/1/submissions";
    let body = fresh_submission(1);
    let other = fresh_submission(1);
    for (key, body, status) in [
        ("k", &body, 201),
        ("k", &body, 201),
        ("k", &other, 422),
        ("k2", &body, 200),
        ("k3", &other, 409),
        ("", &body, 400),
    ] {
        let answer = world.submit(&student, path, key, body).await;
        assert_eq!(answer.status, status);
        check(&document, "POST", path, status, &answer.json());
    }
    let admin = world.token("admin1").await;
    let compensation =
        json!({ "action": "verify", "reason": "why", "expected_version": 2 }).to_string();
    let compensations = "/api/v1/records/1/compensations";
    let answer = world
        .submit(&admin, compensations, "c", &compensation)
        .await;
    check(
        &document,
        "POST",
        compensations,
        answer.status.as_u16(),
        &answer.json(),
    );
    for (who, path) in [
        ("student1", "/api/v1/session"),
        ("student1", "/api/v1/tasks"),
        ("student1", "/api/v1/tasks/1"),
        ("student1", "/api/v1/tasks/999"),
        ("student1", "/api/v1/submissions/1"),
        ("student1", "/api/v1/requests/k?action=task_submit"),
        ("student1", "/api/v1/requests/k?action=nothing"),
        ("student1", "/api/v1/points"),
        ("student1", "/api/v1/rewards"),
        ("student1", "/api/v1/redemptions"),
        ("student1", "/api/v1/panel"),
        ("teacher1", "/api/v1/classes"),
        ("teacher1", "/api/v1/classes/1/progress"),
        ("teacher1", "/api/v1/notifications"),
        ("parent1", "/api/v1/children"),
        ("parent1", "/api/v1/children/1/report"),
        ("ops1", "/api/v1/panel"),
        ("ops1", "/api/v1/records"),
        ("ops1", "/api/v1/records/1"),
        ("ops1", "/api/v1/arrivals"),
        ("ops1", "/api/v1/compensations"),
        ("ops1", "/api/v1/audit"),
        ("ops1", "/readyz"),
    ] {
        let token = world.token(who).await;
        let answer = world.get(&token, path).await;
        check(
            &document,
            "GET",
            path,
            answer.status.as_u16(),
            &answer.json(),
        );
    }
    let nobody = world.send(
        request(http::Method::GET, "/api/v1/tasks", "")
            .body(axum::body::Body::empty())
            .unwrap(),
    );
    check(&document, "GET", "/api/v1/tasks", 401, &nobody.await.json());
}

/// The status is described, and the body is of the described form.
fn check(document: &Value, method: &str, path: &str, status: u16, body: &Value) {
    let operation = documented(document, method, path).unwrap();
    let response = &operation["responses"][status.to_string()];
    assert!(
        response.is_object(),
        "{method} {path}: {status} is not described"
    );
    let content = response["content"].as_object().unwrap();
    let schema = &content.values().next().unwrap()["schema"];
    if !schema.is_object() {
        return;
    }
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "allOf": [schema],
        "components": document["components"],
    });
    let validator = jsonschema::validator_for(&whole).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(body)
        .map(|error| error.to_string())
        .collect();
    assert!(
        errors.is_empty(),
        "{method} {path} {status}: {errors:#?}\n{body:#}"
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn every_reference_leads_somewhere_and_the_page_shows_every_route(pool: PgPool) {
    let world = World::new(pool).await;
    let document = document(&world).await;
    let text = document.to_string();
    for part in text.split("\"$ref\":\"").skip(1) {
        let pointer = part.split('"').next().unwrap().trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    let docs = world.get("", "/api/docs").await;
    assert_eq!(docs.status, 200);
    let policy = docs.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe")
    );
    let page = String::from_utf8(docs.body.clone()).unwrap();
    assert!(!page.contains("<script") && !page.contains(" style="));
    for (method, path) in server::http::openapi::routes() {
        assert!(
            page.contains(&format!("<h3>{method} {path}</h3>")),
            "{method} {path}"
        );
    }
}
