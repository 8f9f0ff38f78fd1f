//! What a running server tells: traces at a receiver, and its log.

use std::{sync::Arc, sync::Mutex};

use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::process::{Server, until};

/// Everything that was sent to the receiver.
#[derive(Clone, Default)]
struct Received {
    spans: Arc<Mutex<Vec<Value>>>,
    hooks: Arc<Mutex<Vec<String>>>,
}

impl Received {
    /// The spans of this name.
    fn named(&self, name: &str) -> Vec<Value> {
        let spans = self.spans.lock().unwrap();
        spans
            .iter()
            .filter(|span| span["name"] == name)
            .cloned()
            .collect()
    }

    fn one(&self, name: &str, trace: &str) -> Value {
        let mut spans = self.named(name);
        spans.retain(|span| span["traceId"] == trace);
        assert_eq!(
            spans.len(),
            1,
            "{name} in {trace}: {:#?}",
            self.spans.lock().unwrap()
        );
        spans.remove(0)
    }
}

/// A receiver of traces (`/v1/traces`) and of messages (`/hook`); answers its address.
async fn receiver() -> (Received, String) {
    async fn traces(State(received): State<Received>, Json(body): Json<Value>) -> Json<Value> {
        let mut spans = received.spans.lock().unwrap();
        for resource in body["resourceSpans"].as_array().unwrap() {
            for scope in resource["scopeSpans"].as_array().unwrap() {
                spans.extend(scope["spans"].as_array().unwrap().iter().cloned());
            }
        }
        Json(json!({}))
    }
    async fn hook(State(received): State<Received>, headers: HeaderMap) {
        let parent = headers["traceparent"].to_str().unwrap().to_owned();
        received.hooks.lock().unwrap().push(parent);
    }
    let received = Received::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new()
        .route("/v1/traces", post(traces))
        .route("/hook", post(hook))
        .with_state(received.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (received, format!("http://{address}"))
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a str {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found
        .and_then(|found| found["value"]["stringValue"].as_str())
        .unwrap_or_default()
}

const SUBMIT: &str = "POST /api/v1/tasks/{task_id}/submissions";
const PATH: &str = "/api/v1/tasks/1/submissions";

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_trace_goes_from_the_caller_through_the_execution_to_the_message_and_a_replay_links_to_it(
    pool: PgPool,
) {
    let (received, endpoint) = receiver().await;
    let hook = format!("{endpoint}/hook");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("YICI_WEBHOOK_URL", hook.as_str()),
        ("YICI_LOG_FORMAT", "json"),
        ("RUST_LOG", "info,sqlx=warn"),
    ];
    let mut server = Server::start_logged(&pool, &variables).await;
    let token = server.sign_in("student1").await;
    let body = json!({ "submit_version": 1, "client_id": "wire", "content": "x" });
    let first = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{first}-b7ad6b7169203331-01");
    let headers = [("traceparent", parent.as_str())];
    let answer = server
        .post_with(&token, PATH, "k", &body, &headers)
        .await
        .unwrap();
    assert_eq!(answer.status, 201);
    let told = answer.headers["traceparent"].to_str().unwrap().to_owned();
    let again = server.post(&token, PATH, "k", &body).await.unwrap();
    assert_eq!(again.bucket(), "reused");
    let second = again.headers["traceparent"].to_str().unwrap()[3..35].to_owned();
    assert_ne!(second, first);
    until(
        &pool,
        "SELECT count(*) FROM outbox WHERE delivered_at IS NOT NULL",
        1,
    )
    .await;
    server.stop().await;

    let request = received.one(SUBMIT, first);
    assert_eq!(request["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(told[36..52], *request["spanId"].as_str().unwrap());
    assert_eq!(request["kind"], 2, "a server's");
    assert_eq!(
        (
            attribute(&request, "outcome"),
            attribute(&request, "defence")
        ),
        ("new", "none")
    );
    let execute = received.one("execute", first);
    assert_eq!(execute["parentSpanId"], request["spanId"]);
    let replay = received.one(SUBMIT, &second);
    assert_eq!(attribute(&replay, "outcome"), "reused");
    let link = &replay["links"][0];
    assert_eq!(
        (&link["traceId"], &link["spanId"]),
        (&execute["traceId"], &execute["spanId"])
    );
    let deliver = received.one("deliver", first);
    assert_eq!(deliver["parentSpanId"], execute["spanId"]);
    let hooks = received.hooks.lock().unwrap().clone();
    let expected = format!("00-{first}-{}-01", deliver["spanId"].as_str().unwrap());
    assert_eq!(hooks, [expected]);
    let text = format!("{:?}", received.spans.lock().unwrap());
    assert!(!text.contains(&token), "no token is in any span");
    // Log and traces side by side: neither takes lines or spans from the other.
    let log = server.log();
    assert_eq!(log.matches(r#""message":"arrival""#).count(), 2, "{log}");
    assert!(log.contains(r#""message":"serving""#), "{log}");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_the_scanner_ends_goes_on_in_the_trace_of_the_process_that_died(pool: PgPool) {
    let mut dying = Server::start(&pool, Some("after_claim")).await;
    let token = dying.sign_in("student1").await;
    let body = json!({ "submit_version": 1, "client_id": "wire", "content": "x" });
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let headers = [("traceparent", parent.as_str())];
    assert!(
        dying
            .post_with(&token, PATH, "k", &body, &headers)
            .await
            .is_none()
    );
    dying.ended().await;

    let (received, endpoint) = receiver().await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("RUST_LOG", "info,sqlx=warn"),
    ];
    let mut server = Server::start_with(&pool, &variables).await;
    until(
        &pool,
        "SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'",
        1,
    )
    .await;
    server.stop().await;
    let recover = received.one("recover", trace);
    let execute = received.one("execute", trace);
    assert_eq!(execute["parentSpanId"], recover["spanId"]);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_log_has_a_line_for_each_arrival_and_each_failure_and_no_secret(pool: PgPool) {
    let variables = [("YICI_LOG_FORMAT", "json"), ("RUST_LOG", "debug")];
    let mut server = Server::start_logged(&pool, &variables).await;
    let token = server.sign_in("student1").await;
    let client = reqwest::Client::new();
    let key = "task_submit:1:2:1:a-key-in-full";
    let secret = "the words that a student hands in";
    let body =
        |content: &str| json!({ "submit_version": 1, "client_id": "wire", "content": content });
    for (content, bucket) in [
        (secret, "new"),
        (secret, "reused"),
        ("other words", "mismatch"),
    ] {
        let answer = server
            .post(&token, PATH, key, &body(content))
            .await
            .unwrap();
        assert_eq!(answer.bucket(), bucket);
    }
    let base = server.base().to_owned();
    let wrong = json!({ "username": "student1", "password": "hunter2-the-password" });
    let posts = client
        .post(format!("{base}/api/v1/session"))
        .json(&wrong)
        .send()
        .await
        .unwrap();
    assert_eq!(posts.status(), 401);
    for path in [
        format!("/api/v1/requests/{key}?action=task_submit"),
        format!("/nothing/{key}?token={token}"),
    ] {
        client
            .get(format!("{base}{path}"))
            .bearer_auth(&token)
            .send()
            .await
            .unwrap();
    }
    // The reading of points fails; the rest does not.
    sqlx::query("ALTER TABLE points_balance RENAME TO hidden")
        .execute(&pool)
        .await
        .unwrap();
    let failed = client
        .get(format!("{base}/api/v1/points"))
        .bearer_auth(&token)
        .send()
        .await
        .unwrap();
    assert_eq!(failed.status(), 500);
    let problem: Value = failed.json().await.unwrap();
    sqlx::query("ALTER TABLE hidden RENAME TO points_balance")
        .execute(&pool)
        .await
        .unwrap();
    server.stop().await;

    let log = server.log();
    for hidden in [
        secret,
        "other words",
        "a-key-in-full",
        "hunter2",
        token.as_str(),
    ] {
        let line = log.lines().find(|line| line.contains(hidden));
        assert!(line.is_none(), "{hidden} is in the log: {line:?}");
    }
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let arrivals: Vec<_> = lines
        .iter()
        .filter(|line| line["message"] == "arrival")
        .collect();
    let told: Vec<_> = arrivals
        .iter()
        .map(|line| {
            (
                line["outcome"].as_str().unwrap(),
                line["defence"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("new", "none"),
            ("reused", "record"),
            ("mismatch", "record")
        ]
    );
    let hash = domain::IdempotencyKey::from_text(key).unwrap().hash();
    for line in arrivals {
        assert_eq!(line["key_hash"], hash.as_str());
        assert_eq!(line["action"], "task_submit");
        assert!(line["duration_ms"].as_f64().unwrap() > 0.0);
        assert_eq!(line["trace_id"].as_str().unwrap().len(), 32);
    }
    let failures: Vec<_> = lines
        .iter()
        .filter(|line| line["level"] == "ERROR")
        .collect();
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert_eq!(failures[0]["trace_id"], problem["trace_id"]);
    let chain = failures[0]["error"].as_array().unwrap();
    assert!(
        chain.len() >= 2
            && chain
                .iter()
                .any(|cause| cause.as_str().unwrap().contains("points_balance")),
        "{chain:?}"
    );
}
