//! `/metrics`: names, numbers, and what it does while the store is away.

use std::{collections::BTreeSet, num::NonZeroU32, process::Stdio};

use axum::body::Body;
use http::Method;
use server::http::limits::Limits;
use sqlx::PgPool;
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    process::in_time,
    support::{Answer, World, fresh_submission, request},
};

/// The nine counters of the articles.
const NINE: &[&str] = &[
    "idempotency_new_request_total",
    "idempotency_reused_result_total",
    "idempotency_processing_hit_total",
    "idempotency_unknown_state_total",
    "idempotency_record_stuck_total",
    "duplicate_business_constraint_total",
    "redis_lock_expired_suspected_total",
    "redis_lock_release_mismatch_total",
    "request_timeout_after_success_total",
];

async fn page(world: &World) -> String {
    let answer = scrape(world).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    String::from_utf8(answer.body).unwrap()
}

async fn scrape(world: &World) -> Answer {
    let ask = request(Method::GET, "/metrics", "")
        .body(Body::empty())
        .unwrap();
    world.send(ask).await
}

/// The value of one series.
fn value(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find(|line| {
        line.strip_prefix(series)
            .is_some_and(|rest| rest.starts_with(' '))
    })?;
    line.rsplit(' ').next()?.parse().ok()
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn every_series_is_there_from_the_start(pool: PgPool) {
    let world = World::new(pool).await;
    let page = page(&world).await;
    for action in engine::Engine::action_names() {
        for name in NINE {
            let series = format!("{name}{{action=\"{action}\"}}");
            assert_eq!(value(&page, &series), Some(0.0), "{series}");
        }
        for state in [
            "PROCESSING",
            "UNKNOWN",
            "FAILED_RETRYABLE",
            "SUCCEEDED",
            "FAILED_FINAL",
        ] {
            let series = format!("idempotency_records{{action=\"{action}\",state=\"{state}\"}}");
            assert_eq!(value(&page, &series), Some(0.0), "{series}");
        }
        for name in ["request", "claim", "finish", "verification"] {
            let series =
                format!("idempotency_{name}_duration_seconds_count{{action=\"{action}\"}}");
            assert!(value(&page, &series).is_some(), "{series}");
        }
    }
    let route = "POST /api/v1/tasks/{task_id}/submissions";
    for series in [
        format!("yici_http_requests_total{{route=\"{route}\",status=\"5xx\"}}"),
        format!("yici_http_request_duration_seconds_count{{route=\"{route}\"}}"),
        "yici_pool_connections{pool=\"work\",state=\"used\"}".to_owned(),
        "yici_scanner_heartbeat_timestamp_seconds".to_owned(),
        "yici_relay_messages_total{result=\"dead\"}".to_owned(),
        "yici_outbox_oldest_undelivered_seconds".to_owned(),
        "process_open_fds".to_owned(),
    ] {
        assert!(value(&page, &series).is_some(), "{series}");
    }
    assert_eq!(value(&page, "yici_store_up"), Some(1.0));
}

/// Names, kinds and help are what dashboards and rules rely on.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn names_kinds_and_help_are_as_written_down(pool: PgPool) {
    let world = World::new(pool).await;
    let page = page(&world).await;
    // What the operating system tells of a process differs from one to the next.
    let lines: BTreeSet<&str> = page
        .lines()
        .filter(|line| line.starts_with("# ") && !line.contains(" process_"))
        .collect();
    let seen = lines
        .into_iter()
        .fold(String::new(), |all, line| all + line + "\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/metrics_page.txt");
    if std::env::var_os("YICI_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(path, &seen).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert_eq!(
        seen, written,
        "run with YICI_WRITE_SNAPSHOTS=1 if this is meant"
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_counters_are_the_panels_on_every_instance(pool: PgPool) {
    let world = World::new(pool).await;
    let (student, ops) = (world.token("student1").await, world.token("ops1").await);
    let path = "/api/v1/tasks/1/submissions";
    let body = fresh_submission(1);
    for (key, body) in [
        ("k", &body),
        ("k", &body),
        ("k", &fresh_submission(1)),
        ("k2", &body),
    ] {
        world.submit(&student, path, key, body).await;
    }
    world.engine.flush().await;
    let panel = world.get(&ops, "/api/v1/panel").await.json();
    let another = World::beside(&world).await;
    for page in [page(&world).await, page(&another).await] {
        for (metric, name) in [
            ("idempotency_new_request_total", "new"),
            ("idempotency_reused_result_total", "reused"),
            ("idempotency_key_mismatch_total", "mismatch"),
            ("duplicate_business_constraint_total", "constraint_conflict"),
        ] {
            let shown = value(&page, &format!("{metric}{{action=\"task_submit\"}}"));
            assert_eq!(shown, panel["totals"][name].as_f64(), "{metric}");
            assert_eq!(shown, Some(1.0), "{metric}");
        }
        let records = "idempotency_records{action=\"task_submit\",state=\"SUCCEEDED\"}";
        assert_eq!(value(&page, records), Some(2.0));
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn labels_are_few_and_none_is_an_id(pool: PgPool) {
    let world = World::new(pool).await;
    let student = world.token("student1").await;
    let key = "a-key-that-nobody-may-see";
    let body = fresh_submission(1);
    world
        .submit(&student, "/api/v1/tasks/1/submissions", key, &body)
        .await;
    world
        .get(
            &student,
            &format!("/api/v1/requests/{key}?action=task_submit"),
        )
        .await;
    world.get(&student, "/api/v1/nothing/of/the/kind").await;
    world.get(&student, "/some/page").await;
    let page = page(&world).await;
    assert!(!page.contains(key) && !page.contains("student1") && !page.contains("nothing/of"));
    let allowed = [
        "action", "state", "route", "status", "result", "pool", "le", "version",
    ];
    let series: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
    for line in &series {
        let Some((_, labels)) = line.split_once('{') else {
            continue;
        };
        let (labels, _) = labels.rsplit_once('}').unwrap();
        for label in labels.split("\",") {
            let (name, _) = label.split_once('=').unwrap();
            assert!(allowed.contains(&name), "{line}");
        }
    }
    assert!(series.len() < 3000, "{}", series.len());
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn nobody_who_scrapes_is_limited(pool: PgPool) {
    let one = NonZeroU32::new(1);
    let world = World::with_limits(pool, Limits::new(one, one)).await;
    for _ in 0..50 {
        assert_eq!(scrape(&world).await.status, 200);
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn while_the_store_is_away_the_last_values_stay_and_say_so(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let fresh = World::beside(&world).await;
    let student = world.token("student1").await;
    let body = fresh_submission(1);
    world
        .submit(&student, "/api/v1/tasks/1/submissions", "k", &body)
        .await;
    let before = page(&world).await;
    let new = "idempotency_new_request_total{action=\"task_submit\"}";
    assert_eq!(value(&before, new), Some(1.0));
    pool.close().await;
    // A page is good for a second; until then it is the same one.
    let after = in_time(async {
        loop {
            let after = page(&world).await;
            if value(&after, "yici_store_up") == Some(0.0) {
                break after;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(value(&after, new), Some(1.0));
    assert!(value(&after, "yici_store_read_age_seconds").unwrap() >= 1.0);
    let never_read = scrape(&fresh).await;
    assert_eq!(never_read.status, 503);
    let never_read = String::from_utf8(never_read.body).unwrap();
    assert!(never_read.contains("store"), "{never_read}");
}

/// Where there is no promtool, `make test` says so.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn promtool_finds_nothing_to_mend(pool: PgPool) {
    let world = World::new(pool).await;
    let page = page(&world).await;
    let spawned = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut promtool = match spawned {
        Ok(promtool) => promtool,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => panic!("{error}"),
    };
    let mut stdin = promtool.stdin.take().unwrap();
    stdin.write_all(page.as_bytes()).await.unwrap();
    drop(stdin);
    let output = promtool.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}
