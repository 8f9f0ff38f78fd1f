//! A server that dies at each commit point, or stands still: what its caller, another instance and the scanner make of it.

use sqlx::PgPool;

use crate::process::{Server, count, until};

const ROWS: &str = "SELECT count(*) FROM submission";
const POINTS: &str = "SELECT coalesce(sum(balance), 0)::bigint FROM points_balance";
const MESSAGES: &str = "SELECT count(*) FROM outbox";
const TERMINAL: &str =
    "SELECT count(*) FROM idempotency_record WHERE state IN ('SUCCEEDED', 'FAILED_FINAL')";
const PROCESSING: &str = "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'";
const UNDECIDED: &str = "SELECT count(*) FROM request_arrival WHERE outcome IS NULL";

/// Where the server dies, how many records it leaves PROCESSING and terminal, and the bucket of a retry.
const POINTS_OF_DEATH: &[(&str, i64, i64, &str)] = &[
    ("before_claim", 0, 0, "new"),
    ("after_claim", 1, 0, "new"),
    ("inside_finish", 1, 0, "new"),
    ("after_finish", 0, 1, "reused"),
    ("before_answer", 0, 1, "reused"),
];

async fn dies_at(pool: &PgPool, point: &str, processing: i64, terminal: i64) {
    let mut server = Server::start(pool, Some(point)).await;
    let token = server.sign_in("student1").await;
    assert!(
        server.submit(&token, "k1", "my work").await.is_none(),
        "{point}: the caller gets no answer"
    );
    server.ended().await;
    // What the backend of the dead process still did is over when its row lock is gone.
    until(pool, TERMINAL, terminal).await;
    until(pool, PROCESSING, processing).await;
}

async fn assert_one_effect(pool: &PgPool, point: &str) {
    assert_eq!(count(pool, ROWS).await, 1, "{point}: rows");
    assert_eq!(count(pool, POINTS).await, 10, "{point}: points");
    assert_eq!(count(pool, MESSAGES).await, 1, "{point}: messages");
    assert_eq!(
        count(pool, UNDECIDED).await,
        0,
        "{point}: undecided arrivals"
    );
}

async fn reset(pool: &PgPool) {
    sqlx::raw_sql(
        "TRUNCATE idempotency_record, request_arrival, outcome_counter, outbox, submission, points_entry, points_balance",
    )
    .execute(pool)
    .await
    .unwrap();
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_caller_who_retries_after_a_crash_gets_one_effect_and_the_truth(pool: PgPool) {
    for (point, processing, terminal, bucket) in POINTS_OF_DEATH {
        dies_at(&pool, point, *processing, *terminal).await;
        let server = Server::start(&pool, None).await;
        let token = server.sign_in("student1").await;
        let answer = server.submit(&token, "k1", "my work").await.unwrap();
        // The scanner may have been quicker than this caller; then the answer is a replay.
        assert_eq!(answer.status, 201, "{point}: {answer:?}");
        assert!(
            answer.bucket() == *bucket || answer.bucket() == "reused",
            "{point}: {answer:?}"
        );
        assert_eq!(answer.body["content"], "my work");
        assert_one_effect(&pool, point).await;
        drop(server);
        reset(&pool).await;
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_student_who_never_comes_back_after_a_crash_is_not_lost(pool: PgPool) {
    for (point, processing, terminal, _) in POINTS_OF_DEATH {
        dies_at(&pool, point, *processing, *terminal).await;
        let mut server = Server::start(&pool, None).await;
        until(&pool, TERMINAL, processing + terminal).await;
        if processing + terminal == 1 {
            assert_one_effect(&pool, point).await;
        }
        server.kill().await;
        reset(&pool).await;
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_paused_owner_writes_nothing_when_it_wakes_up_and_tells_its_caller_the_truth(
    pool: PgPool,
) {
    let paused = Server::start(&pool, None).await;
    let other = Server::start(&pool, None).await;
    let token = paused.sign_in("student1").await;
    // The owner's finish waits for this lock, between its claim and its guard.
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let first = paused.submit(&token, "k1", "my work");
    let meanwhile = async {
        until(&pool, PROCESSING, 1).await;
        paused.signal("STOP").await;
        until(
            &pool,
            "SELECT count(*) FROM idempotency_record WHERE lease_until < clock_timestamp()",
            1,
        )
        .await;
        // Another instance is asked: it fences, takes over and waits for the lock in its turn.
        let second = other.submit(&token, "k1", "my work");
        let release = async {
            until(
                &pool,
                "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING' AND epoch = 3",
                1,
            )
            .await;
            lock.commit().await.unwrap();
        };
        let (second, ()) = tokio::join!(second, release);
        until(&pool, TERMINAL, 1).await;
        paused.signal("CONT").await;
        second.unwrap()
    };
    let (first, second) = tokio::join!(first, meanwhile);
    let first = first.unwrap();
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.body, second.body);
    assert_eq!(
        count(&pool, "SELECT count(*) FROM submission WHERE epoch = 3").await,
        1,
        "the new epoch wrote it"
    );
    assert_one_effect(&pool, "paused").await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_was_in_flight_at_a_kill_ends_within_five_seconds_of_the_restart(pool: PgPool) {
    let mut server = Server::start(&pool, None).await;
    let token = server.sign_in("student1").await;
    sqlx::query(
        "INSERT INTO task (class_id, title, instructions, kind)
         SELECT class_id, title, instructions, 'assignment' FROM task, generate_series(1, 40) ORDER BY task.id LIMIT 40",
    )
    .execute(&pool)
    .await
    .unwrap();
    let tasks: Vec<i64> = sqlx::query_scalar("SELECT id FROM task ORDER BY id DESC LIMIT 40")
        .fetch_all(&pool)
        .await
        .unwrap();
    // All are claimed, and none can finish.
    let mut gate = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *gate)
        .await
        .unwrap();
    let body = serde_json::json!({ "submit_version": 1, "client_id": "wire", "content": "x" });
    let posts = async {
        let all = tasks.iter().map(async |task| {
            let path = format!("/api/v1/tasks/{task}/submissions");
            server
                .post(&token, &path, &format!("key {task}"), &body)
                .await
        });
        futures::future::join_all(all).await
    };
    tokio::select! {
        _ = posts => panic!("an answer came through a locked table"),
        () = until(&pool, PROCESSING, 40) => {}
    }
    server.kill().await;
    gate.commit().await.unwrap();
    let _server = Server::start(&pool, None).await;
    until(&pool, TERMINAL, 40).await;
    let late = "SELECT count(*) FROM idempotency_record
                WHERE updated_at > (SELECT max(started_at) FROM instance) + interval '5 seconds'";
    assert_eq!(count(&pool, late).await, 0);
    assert_eq!(count(&pool, ROWS).await, 40);
    assert_eq!(count(&pool, POINTS).await, 400);
}
