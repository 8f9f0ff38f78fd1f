//! Compensations over HTTP and from the command line, and what a crash in their middle leaves.

use axum::body::Body;
use domain::{Fingerprint, action::TASK_SUBMIT};
use engine::MIGRATOR;
use http::Method;
use serde_json::{Value, json};
use sqlx::{ConnectOptions, PgPool};
use tokio::process::Command;

use crate::{
    process::{Server, count, in_time, until},
    support::{Answer, World, request},
};

/// Leaves `n` records as processes do that died right after their claims, each of a task of its own.
async fn leave_dead_claims(pool: &PgPool, n: i32, state: &str) {
    for _ in 0..n {
        let task: i64 = sqlx::query_scalar(
            "INSERT INTO task (class_id, title, instructions, kind)
             SELECT class_id, title, instructions, 'assignment' FROM task ORDER BY id LIMIT 1 RETURNING id",
        )
        .fetch_one(pool)
        .await
        .unwrap();
        let command = json!({ "task_id": task.to_string(), "submit_version": 1, "content": "x" });
        let fingerprint = Fingerprint::of(TASK_SUBMIT, &command).unwrap();
        sqlx::query(
            "INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id, claim_token,
                                             owner_instance, claimed_at, lease_until, scan_attempts)
             SELECT id, 'task_submit', 'key ' || $1, $4, $2, $3, 'trace', gen_random_uuid(), 0, now() - interval '10 minutes',
                    CASE WHEN $4 = 'PROCESSING' THEN now() - interval '9 minutes' END,
                    -- The scanner has given up: only a person acts.
                    1000
             FROM account WHERE name = 'student1'",
        )
        .bind(task)
        .bind(fingerprint.as_bytes().as_slice())
        .bind(command)
        .bind(state)
        .execute(pool)
        .await
        .unwrap();
    }
}

async fn post(world: &World, token: &str, path: &str, key: &str, body: &Value) -> Answer {
    let request = request(Method::POST, path, token)
        .header("idempotency-key", key)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    world.send(request).await
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn an_admin_verifies_then_does_what_was_proposed(pool: PgPool) {
    let world = World::new(pool).await;
    leave_dead_claims(&world.pool, 1, "UNKNOWN").await;
    let token = world.token("admin1").await;
    let path = "/api/v1/records/1/compensations";
    let body = |action: &str, version: i64| json!({ "action": action, "reason": "ticket 7", "expected_version": version });

    let verified = post(&world, &token, path, "look", &body("verify", 1)).await;
    assert_eq!(verified.status, 200);
    let answer = verified.json();
    assert_eq!(answer["compensation"]["status"], "proposed");
    assert_eq!(answer["compensation"]["evidence"]["finding"], "absent");
    assert_eq!(answer["compensation"]["evidence"]["proposed"], "re_execute");
    assert_eq!(
        (
            answer["record"]["state"].as_str(),
            answer["record"]["version"].as_i64()
        ),
        (Some("UNKNOWN"), Some(1))
    );

    let forbidden = post(&world, &token, path, "no", &body("complete", 1)).await;
    assert_eq!(
        (forbidden.status.as_u16(), forbidden.code().as_str()),
        (422, "evidence-forbids")
    );
    assert_eq!(
        forbidden.json()["compensation"]["evidence"]["permitted"],
        json!(["release", "re_execute", "fail"])
    );
    let stale = post(&world, &token, path, "old", &body("fail", 9)).await;
    assert_eq!(
        (stale.status.as_u16(), stale.code().as_str()),
        (409, "stale")
    );
    assert_eq!(stale.json()["record"]["version"], 1);
    assert_eq!(
        stale.header("content-type"),
        Some("application/problem+json")
    );

    let done = post(&world, &token, path, "do", &body("re_execute", 1)).await;
    assert_eq!(
        (
            done.status.as_u16(),
            done.json()["record"]["state"].as_str()
        ),
        (200, Some("SUCCEEDED"))
    );
    let again = post(&world, &token, path, "do", &body("re_execute", 1)).await;
    assert_eq!((again.status, again.json()), (done.status, done.json()));
    let reused = post(&world, &token, path, "do", &body("fail", 1)).await;
    assert_eq!(
        (reused.status.as_u16(), reused.code().as_str()),
        (422, "key-reused")
    );
    let late = post(&world, &token, path, "late", &body("fail", 4)).await;
    assert_eq!(
        (late.status.as_u16(), late.code().as_str()),
        (409, "already-terminal")
    );
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);

    let audit = world.get(&token, "/api/v1/audit?limit=2").await.json();
    assert_eq!(audit["entries"].as_array().unwrap().len(), 2);
    assert_eq!(audit["entries"][0]["action"], "compensation.fail");
    assert_eq!(audit["entries"][0]["object"], "record/1");
    assert_eq!(audit["entries"][0]["detail"]["outcome"], "refused");
    let next = format!(
        "/api/v1/audit?limit=200&after={}",
        audit["next"].as_str().unwrap()
    );
    assert_eq!(
        world.get(&token, &next).await.json()["entries"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let of_action = world
        .get(
            &token,
            "/api/v1/audit?action=compensation.verify&actor=admin1",
        )
        .await
        .json();
    assert_eq!(of_action["entries"].as_array().unwrap().len(), 1);
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn what_is_not_as_described_is_refused_before_anything_is_kept(pool: PgPool) {
    let world = World::new(pool).await;
    leave_dead_claims(&world.pool, 1, "UNKNOWN").await;
    let token = world.token("admin1").await;
    let path = "/api/v1/records/1/compensations";
    let good = json!({ "action": "fail", "reason": "r", "expected_version": 1 });
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    let cases = [
        (path, with("action", json!("delete")), 400, "invalid-body"),
        (path, with("reason", json!("  ")), 400, "invalid-body"),
        (path, with("reason", json!("a\u{0}b")), 400, "invalid-body"),
        (
            path,
            with("expected_version", json!(1.5)),
            400,
            "invalid-body",
        ),
        (path, with("extra", json!(1)), 400, "invalid-body"),
        (
            path,
            json!({ "action": "fail", "reason": "r" }),
            400,
            "invalid-body",
        ),
        (
            "/api/v1/records/99/compensations",
            good.clone(),
            404,
            "not-found",
        ),
        (
            "/api/v1/records/x/compensations",
            good.clone(),
            404,
            "not-found",
        ),
        (
            "/api/v1/compensations/1/approval",
            json!({ "decision": "approve", "reason": "r" }),
            404,
            "not-found",
        ),
        (
            "/api/v1/compensations",
            json!({ "action": "fail", "reason": "r" }),
            400,
            "invalid-body",
        ),
        (
            "/api/v1/compensations",
            json!({ "ids": ["1"], "filter": {}, "action": "fail", "reason": "r" }),
            400,
            "invalid-body",
        ),
        (
            "/api/v1/compensations",
            json!({ "ids": ["one"], "action": "fail", "reason": "r" }),
            400,
            "invalid-body",
        ),
        (
            "/api/v1/compensations",
            json!({ "ids": [], "action": "fail", "reason": "r" }),
            422,
            "bulk-too-large",
        ),
        (
            "/api/v1/compensations",
            json!({ "filter": { "status": "x" }, "action": "fail", "reason": "r" }),
            400,
            "invalid-body",
        ),
    ];
    for (path, body, status, code) in cases {
        let answer = post(&world, &token, path, "k", &body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (status, code),
            "{path} {body}"
        );
    }
    let without_key = request(Method::POST, path, &token)
        .header("content-type", "application/json")
        .body(Body::from(good.to_string()))
        .unwrap();
    assert_eq!(world.send(without_key).await.code(), "key-missing");
    assert_eq!(world.count("SELECT count(*) FROM compensation").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM bulk").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM audit_entry").await, 0);
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn a_compensation_cut_by_a_crash_is_wholly_there_or_not_at_all(pool: PgPool) {
    let applied = "SELECT count(*) FROM compensation_log WHERE event = 'applied' AND compensation_id IS NOT NULL";
    for (point, committed) in [("inside_compensation", 0), ("after_compensation", 1)] {
        let mut server = Server::start(&pool, Some(point)).await;
        leave_dead_claims(&pool, 1, "UNKNOWN").await;
        let token = server.sign_in("admin1").await;
        let path = "/api/v1/records/1/compensations";
        let body = json!({ "action": "re_execute", "reason": "ticket 7", "expected_version": 1 });
        assert!(
            server.post(&token, path, "do", &body).await.is_none(),
            "{point}"
        );
        server.ended().await;
        until(&pool, applied, committed).await;
        // The same click again, at a new process.
        let server = Server::start(&pool, None).await;
        let token = server.sign_in("admin1").await;
        let answer = server.post(&token, path, "do", &body).await.unwrap();
        assert_eq!(answer.status, 200, "{point}: {answer:?}");
        assert_eq!(answer.body["compensation"]["status"], "applied", "{point}");
        // What the dead process had claimed and not run, the scanner runs when the lease is over.
        sqlx::query("UPDATE idempotency_record SET scan_attempts = 0")
            .execute(&pool)
            .await
            .unwrap();
        until(
            &pool,
            "SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'",
            1,
        )
        .await;
        assert_eq!(count(&pool, applied).await, 1, "{point}");
        assert_eq!(
            count(&pool, "SELECT count(*) FROM submission").await,
            1,
            "{point}"
        );
        drop(server);
        sqlx::raw_sql(
            "ALTER TABLE compensation_log DISABLE TRIGGER USER; ALTER TABLE audit_entry DISABLE TRIGGER USER;
             TRUNCATE idempotency_record, request_arrival, outcome_counter, outbox, submission, points_entry, points_balance,
                      compensation, compensation_log, audit_entry RESTART IDENTITY;
             ALTER TABLE compensation_log ENABLE TRIGGER USER; ALTER TABLE audit_entry ENABLE TRIGGER USER",
        )
        .execute(&pool)
        .await
        .unwrap();
    }
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn a_bulk_of_500_goes_on_after_a_kill_and_does_nothing_twice(pool: PgPool) {
    let mut server = Server::start(&pool, None).await;
    leave_dead_claims(&pool, 500, "UNKNOWN").await;
    let token = server.sign_in("admin1").await;
    let body = json!({ "filter": { "stuck": true }, "action": "re_execute", "reason": "outage of Monday" });
    let started = server
        .post(&token, "/api/v1/compensations", "b1", &body)
        .await
        .unwrap();
    assert_eq!(
        (started.status, started.body["bulk"]["total"].as_i64()),
        (202, Some(500))
    );
    let some = async {
        while count(
            &pool,
            "SELECT count(*) FROM bulk_item WHERE outcome IS NOT NULL",
        )
        .await
            < 100
        {
            tokio::task::yield_now().await;
        }
    };
    in_time(some).await;
    server.kill().await;
    let left = count(
        &pool,
        "SELECT count(*) FROM bulk_item WHERE outcome IS NULL",
    )
    .await;
    assert!(left > 0, "it was killed in the middle");
    let server = Server::start(&pool, None).await;
    until(
        &pool,
        "SELECT count(*) FROM bulk WHERE finished_at IS NOT NULL",
        1,
    )
    .await;
    // What was claimed and not run when it was killed, the scanner ends.
    sqlx::query("UPDATE idempotency_record SET scan_attempts = 0 WHERE state <> 'SUCCEEDED'")
        .execute(&pool)
        .await
        .unwrap();
    until(
        &pool,
        "SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'",
        500,
    )
    .await;
    assert_eq!(count(&pool, "SELECT count(*) FROM submission").await, 500);
    assert_eq!(count(&pool, "SELECT count(*) FROM points_entry").await, 500);
    assert_eq!(
        count(
            &pool,
            "SELECT count(*) FROM bulk_item WHERE outcome = 'applied'"
        )
        .await,
        500
    );
    let by_people = "SELECT count(*) FROM compensation_log WHERE event = 'applied' AND compensation_id IS NOT NULL";
    assert_eq!(count(&pool, by_people).await, 500);
    let token = server.sign_in("admin1").await;
    let again = server
        .post(&token, "/api/v1/compensations", "b1", &body)
        .await
        .unwrap();
    assert_eq!(
        (
            again.body["bulk"]["status"].as_str(),
            again.body["bulk"]["done"].as_i64()
        ),
        (Some("done"), Some(500))
    );
}

#[sqlx::test(migrator = "MIGRATOR")]
async fn the_command_line_lists_and_compensates_through_the_same_function(pool: PgPool) {
    let world = World::new(pool).await;
    leave_dead_claims(&world.pool, 2, "UNKNOWN").await;
    let run = async |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_server"))
            .args(arguments)
            .env(
                "DATABASE_URL",
                world.pool.connect_options().to_url_lossy().as_str(),
            )
            .env("RUST_LOG", "error")
            .output()
            .await
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (status, listed, _) = run(&["records", "--stuck"]).await;
    assert_eq!((status, listed.lines().count()), (Some(0), 3), "{listed}");
    assert!(
        listed.contains("key 5") && listed.contains("UNKNOWN") && listed.contains("student1"),
        "{listed}"
    );
    let (_, page, _) = run(&["records", "--state", "unknown", "--limit", "1", "--json"]).await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(page["records"].as_array().unwrap().len(), 1);
    assert!(page["next"].is_string());

    let act = [
        "compensate",
        "1",
        "--action",
        "re_execute",
        "--reason",
        "ticket 7",
        "--as",
        "admin1",
        "--key",
        "c1",
    ];
    for _ in 0..2 {
        let (status, report, error) = run(&act).await;
        assert_eq!(status, Some(0), "{error}");
        assert!(
            report.contains("re_execute of record 1 is applied") && report.contains("SUCCEEDED"),
            "{report}"
        );
    }
    let (status, _, error) = run(&[
        "compensate",
        "2",
        "--action",
        "complete",
        "--reason",
        "ticket 7",
    ])
    .await;
    assert_eq!(status, Some(1));
    assert!(error.contains("evidence-forbids"), "{error}");
    let (status, _, error) = run(&[
        "compensate",
        "2",
        "--action",
        "fail",
        "--reason",
        "x",
        "--as",
        "ops1",
    ])
    .await;
    assert_eq!(status, Some(1));
    assert!(error.contains("no admin"), "{error}");
    let (status, _, _) = run(&["compensate", "2", "--action", "burn", "--reason", "x"]).await;
    assert_eq!(status, Some(2));
    assert_eq!(world.count("SELECT count(*) FROM compensation").await, 2);
    assert_eq!(
        world
            .count("SELECT count(*) FROM audit_entry WHERE detail ->> 'from' = 'command line'")
            .await,
        2
    );
}
