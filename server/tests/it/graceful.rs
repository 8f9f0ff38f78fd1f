//! A server that is told to stop: not ready, then drained, and nothing that it took is lost.

use std::{
    sync::Arc,
    sync::atomic::{AtomicI64, AtomicUsize, Ordering},
};

use serde_json::json;
use sqlx::PgPool;
use tokio::sync::Mutex;

use crate::process::{Server, count, in_time, until};

const PROCESSING: &str = "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'";
/// Enough that clients are still at it when the server has stopped.
const TASKS: i64 = 20_000;
const CLIENTS: usize = 8;

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_runs_is_answered_while_nobody_is_sent_here_any_more(pool: PgPool) {
    let mut server = Server::start(&pool, None).await;
    let token = server.sign_in("student1").await;
    let mut gate = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *gate)
        .await
        .unwrap();
    let ready = format!("{}/readyz", server.base());
    let answer = server.submit(&token, "k", "my work");
    let meanwhile = async {
        until(&pool, PROCESSING, 1).await;
        assert_eq!(reqwest::get(&ready).await.unwrap().status(), 200);
        server.signal("TERM").await;
        let detail: serde_json::Value = in_time(async {
            loop {
                let answer = reqwest::get(&ready).await.expect("it still tells");
                if answer.status() == 503 {
                    break answer.json().await.unwrap();
                }
            }
        })
        .await;
        let expected = json!({ "ready": false, "database": true, "migrated": true, "draining": true, "front_lock": "off" });
        assert_eq!(detail, expected);
        gate.commit().await.unwrap();
    };
    let (answer, ()) = tokio::join!(answer, meanwhile);
    let answer = answer.unwrap();
    assert_eq!((answer.status, answer.bucket()), (201, "new"));
    server.ended_well().await;
    assert_eq!(count(&pool, PROCESSING).await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_stop_under_load_loses_no_answer_and_refuses_nothing_that_it_took(pool: PgPool) {
    let variables = [("YICI_RATE_LIMIT_PER_ACCOUNT", "0")];
    let mut server = Server::start_with(&pool, &variables).await;
    let token = server.sign_in("student1").await;
    sqlx::query(
        "INSERT INTO task (class_id, title, instructions, kind)
         SELECT class_id, title, instructions, 'assignment'
         FROM (SELECT * FROM task ORDER BY id LIMIT 1) t, generate_series(1, $1)",
    )
    .bind(TASKS)
    .execute(&pool)
    .await
    .unwrap();
    let first: i64 = count(&pool, "SELECT max(id) FROM task").await - TASKS + 1;
    let next = Arc::new(AtomicI64::new(first));
    let answered = Arc::new(AtomicUsize::new(0));
    let unanswered = Arc::new(Mutex::new(Vec::new()));
    let clients = (0..CLIENTS).map(|_| {
        let (next, answered, unanswered) = (next.clone(), answered.clone(), unanswered.clone());
        let (server, token) = (&server, &token);
        async move {
            let mut acknowledged = Vec::new();
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                let key = format!("key {task}");
                let body = json!({ "submit_version": 1, "client_id": "wire", "content": "x" });
                let path = format!("/api/v1/tasks/{task}/submissions");
                match server.post(token, &path, &key, &body).await {
                    Some(answer) => {
                        assert_eq!(answer.status, 201, "{answer:?}");
                        answered.fetch_add(1, Ordering::Relaxed);
                        acknowledged.push(key);
                    }
                    None => {
                        unanswered.lock().await.push(key);
                        return acknowledged;
                    }
                }
            }
        }
    });
    let load = futures::future::join_all(clients);
    let stop = async {
        in_time(async {
            while answered.load(Ordering::Relaxed) < 50 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        })
        .await;
        server.signal("TERM").await;
    };
    let (acknowledged, ()) = tokio::join!(load, stop);
    server.ended_well().await;
    let acknowledged: Vec<String> = acknowledged.into_iter().flatten().collect();
    let done: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM idempotency_record r JOIN submission s ON s.task_id = (r.request ->> 'task_id')::bigint
         WHERE r.state = 'SUCCEEDED' AND r.idem_key = ANY($1)",
    )
    .bind(&acknowledged)
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(done, i64::try_from(acknowledged.len()).unwrap());
    // Whoever got no answer was not taken: there is no trace of it.
    let unanswered = unanswered.lock().await;
    assert_eq!(unanswered.len(), CLIENTS);
    let taken: i64 =
        sqlx::query_scalar("SELECT count(*) FROM idempotency_record WHERE idem_key = ANY($1)")
            .bind(&*unanswered)
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(taken, 0);
    assert_eq!(count(&pool, PROCESSING).await, 0);
    assert_eq!(
        count(
            &pool,
            "SELECT count(*) FROM request_arrival WHERE outcome IS NULL"
        )
        .await,
        0
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_cannot_be_done_before_the_process_ends_is_done_by_another(pool: PgPool) {
    let mut server = Server::start(&pool, None).await;
    let token = server.sign_in("student1").await;
    let mut gate = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *gate)
        .await
        .unwrap();
    {
        // The caller does not wait for it, so no request is left to drain.
        let answer = server.submit(&token, "k", "my work");
        tokio::select! {
            answer = answer => panic!("nothing can be answered yet: {answer:?}"),
            () = until(&pool, PROCESSING, 1) => {}
        }
    }
    server.signal("TERM").await;
    server.ended_well().await;
    let unfinished =
        "SELECT count(*) FROM idempotency_record WHERE state IN ('PROCESSING', 'FAILED_RETRYABLE')";
    assert_eq!(count(&pool, unfinished).await, 1);
    gate.rollback().await.unwrap();
    let _other = Server::start(&pool, None).await;
    until(
        &pool,
        "SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'",
        1,
    )
    .await;
    assert_eq!(count(&pool, "SELECT count(*) FROM submission").await, 1);
}
