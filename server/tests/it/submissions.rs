//! The contract's key rules, bodies and headers of a submission.

use axum::body::Body;
use http::Method;
use sqlx::PgPool;

use crate::support::{World, fresh_submission, request};

const TASK: &str = "/api/v1/tasks/1/submissions";
const BODY: &str = r#"{"submit_version":1,"client_id":"phone","content":"my work"}"#;

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn headers_of_first_replayed_and_conflicting_answers(pool: PgPool) {
    let world = World::new(pool).await;
    let token = world.token("student1").await;
    let first = world.submit(&token, TASK, "a key", BODY).await;
    assert_eq!(first.status, 201);
    assert_eq!(first.header("idempotency-status"), Some("new"));
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(first.header("content-type"), Some("application/json"));
    let location = first.header("location").unwrap();
    assert_eq!(world.get(&token, location).await.json(), first.json());

    let again = world.submit(&token, TASK, "\"a key\"", BODY).await;
    assert_eq!((again.status, &again.body), (first.status, &first.body));
    assert_eq!(again.header("idempotency-status"), Some("reused"));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    for name in ["location", "content-type"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
    assert_ne!(
        again.header("traceparent"),
        first.header("traceparent"),
        "a replay has a trace of its own"
    );

    let mismatch = world
        .submit(&token, TASK, "a key", &BODY.replace("my work", "other"))
        .await;
    assert_eq!(
        (mismatch.status.as_u16(), mismatch.code().as_str()),
        (422, "key-reused")
    );
    assert_eq!(mismatch.header("idempotency-status"), Some("mismatch"));

    let same = world
        .submit(&token, TASK, "tablet", &BODY.replace("phone", "tablet"))
        .await;
    assert_eq!((same.status.as_u16(), same.json()), (200, first.json()));
    assert_eq!(
        same.header("idempotency-status"),
        Some("constraint-conflict")
    );

    let other = world
        .submit(&token, TASK, "laptop", &BODY.replace("my work", "other"))
        .await;
    assert_eq!(
        (other.status.as_u16(), other.code().as_str()),
        (409, "already-submitted")
    );
    assert_eq!(
        other.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(other.json()["submission"].as_str(), Some(location));
    assert_eq!(other.json()["type"], "/problems/already-submitted");
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_state_of_a_request_is_found_by_its_key_and_only_by_its_account(pool: PgPool) {
    let world = World::new(pool).await;
    let (token, stranger) = (world.token("student1").await, world.token("student2").await);
    world.submit(&token, TASK, "a/b c", BODY).await;
    world.submit(&token, TASK, "a/b c", BODY).await;
    world.engine.flush().await;
    let path = "/api/v1/requests/a%2Fb%20c?action=task_submit";
    let found = world.get(&token, path).await.json();
    assert_eq!(
        (&found["key"], &found["state"]),
        (&"a/b c".into(), &"SUCCEEDED".into())
    );
    assert_eq!(
        (&found["attempt"], &found["arrivals"]),
        (&1.into(), &2.into())
    );
    assert_eq!(found["response"]["status"], 201);
    assert_eq!(found["response"]["body"]["content"], "my work");
    assert_eq!(world.get(&stranger, path).await.status, 404);
    assert_eq!(
        world
            .get(&token, "/api/v1/requests/never?action=task_submit")
            .await
            .status,
        404
    );
    assert_eq!(
        world.get(&token, "/api/v1/requests/never").await.code(),
        "invalid-query"
    );
    assert_eq!(
        world
            .get(&token, "/api/v1/requests/never?action=cook")
            .await
            .code(),
        "invalid-query"
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_bad_request_is_told_what_to_mend_and_leaves_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let token = world.token("student1").await;
    let long = "k".repeat(256);
    for (key, code) in [
        ("", "key-missing"),
        ("\"\"", "key-missing"),
        ("\"open", "key-invalid"),
        ("a\tb", "key-invalid"),
        (&long, "key-invalid"),
    ] {
        let answer = world.submit(&token, TASK, key, BODY).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (400, code),
            "{key:?}"
        );
    }
    let bytes = request(Method::POST, TASK, &token)
        .header("idempotency-key", &b"\xff\xfe"[..])
        .header("content-type", "application/json")
        .body(Body::from(BODY))
        .unwrap();
    assert_eq!(world.send(bytes).await.code(), "key-invalid");
    let two = request(Method::POST, TASK, &token)
        .header("idempotency-key", "one")
        .header("idempotency-key", "one")
        .header("content-type", "application/json")
        .body(Body::from(BODY))
        .unwrap();
    assert_eq!(world.send(two).await.code(), "key-invalid");
    let none = request(Method::POST, TASK, &token)
        .header("content-type", "application/json")
        .body(Body::from(BODY))
        .unwrap();
    assert_eq!(world.send(none).await.code(), "key-missing");
    let deep = "[".repeat(100_000);
    for body in [
        "",
        "{",
        "[]",
        "null",
        BODY.replace('}', ",\"more\":1}").as_str(),
        BODY.replace("1,", "1.0,").as_str(),
        BODY.replace("1,", "\"1\",").as_str(),
        BODY.replace("1,", "0,").as_str(),
        BODY.replace("1,", "9999999999,").as_str(),
        BODY.replace("\"client_id\":\"phone\",", "").as_str(),
        BODY.replace("my work", "\\u0000").as_str(),
        BODY.replace("my work", "\\ud800").as_str(),
        BODY.replace("phone", "a\\u0000b").as_str(),
        BODY.replace("\"my work\"", "null").as_str(),
        format!("{BODY} {BODY}").as_str(),
        deep.as_str(),
    ] {
        let answer = world.submit(&token, TASK, "k", body).await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (400, "invalid-body"),
            "{shown}"
        );
        assert!(
            answer.json()["detail"].as_str().unwrap().len() > 5,
            "{shown}"
        );
    }
    let huge = BODY.replace("my work", &"x".repeat(1024 * 1024));
    assert_eq!(
        world.submit(&token, TASK, "k", &huge).await.code(),
        "body-too-large"
    );
    let plain = request(Method::POST, TASK, &token)
        .header("idempotency-key", "k")
        .body(Body::from(BODY))
        .unwrap();
    assert_eq!(world.send(plain).await.code(), "unsupported-media-type");
    for path in [
        "/api/v1/tasks/x/submissions",
        "/api/v1/tasks/01/submissions",
        "/api/v1/tasks/%00/submissions",
    ] {
        assert_eq!(
            world.submit(&token, path, "k", BODY).await.status,
            404,
            "{path}"
        );
    }
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        0
    );
    assert_eq!(world.count("SELECT count(*) FROM request_arrival").await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn twenty_parallel_requests_over_http_give_one_row_and_agree_with_the_panel(pool: PgPool) {
    let world = World::new(pool).await;
    let token = world.token("student1").await;
    let posts = (0..20).map(|_| world.submit(&token, TASK, "once", BODY));
    let answers = futures::future::join_all(posts).await;
    for answer in &answers {
        assert!(
            [200, 201, 202].contains(&answer.status.as_u16()),
            "{answer:?}"
        );
    }
    assert_eq!(
        answers
            .iter()
            .filter(|a| a.header("idempotency-status") == Some("new"))
            .count(),
        1
    );
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    world.engine.flush().await;
    let panel = world
        .get(&world.token("ops1").await, "/api/v1/panel?window=1h")
        .await
        .json();
    for numbers in [
        &panel["counters"],
        &panel["totals"],
        &panel["by_action"][0]["counters"],
    ] {
        let arrivals: i64 = [
            "new",
            "reused",
            "processing",
            "unknown",
            "mismatch",
            "constraint_conflict",
        ]
        .iter()
        .map(|name| numbers[name].as_i64().unwrap())
        .sum();
        assert_eq!(arrivals, 20);
    }
    for name in ["new", "reused", "processing"] {
        let told = answers
            .iter()
            .filter(|a| a.header("idempotency-status") == Some(name))
            .count();
        assert_eq!(panel["totals"][name].as_u64(), Some(told as u64), "{name}");
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_page_of_another_site_cannot_submit(pool: PgPool) {
    let world = World::new(pool).await;
    let token = world.token("student1").await;
    for (origin, site, status) in [
        ("http://evil.example", "cross-site", 403),
        ("http://evil.example", "", 403),
        ("http://localhost", "same-origin", 201),
    ] {
        let mut builder = request(Method::POST, TASK, &token)
            .header("host", "localhost")
            .header("origin", origin)
            .header("idempotency-key", "k")
            .header("content-type", "application/json");
        if !site.is_empty() {
            builder = builder.header("sec-fetch-site", site);
        }
        let answer = world
            .send(builder.body(Body::from(fresh_submission(1))).unwrap())
            .await;
        assert_eq!(answer.status.as_u16(), status, "{origin} {site}");
        if status == 403 {
            assert_eq!(answer.code(), "cross-site");
        }
    }
}
