//! The relay: to readers inside, and to a webhook that fails as webhooks do.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, extract::State, routing::post};
use engine::{EngineConfig, RemoteConfig};
use http::{HeaderMap, StatusCode};
use server::http::limits::Limits;
use sqlx::PgPool;
use tokio::net::TcpListener;

use crate::{
    process::{Server, count, until},
    support::{World, fresh_submission},
};

const TIMEOUT: Duration = Duration::from_millis(300);
const DELIVERED: &str = "SELECT count(*) FROM outbox WHERE delivered_at IS NOT NULL";
const DUE_NOW: &str = "UPDATE outbox SET next_attempt_at = now()";

/// What the webhook does with one delivery.
#[derive(Debug, Clone, Copy)]
enum Behaviour {
    Take,
    Answer(u16),
    Hang,
    Cut,
}

#[derive(Default)]
struct Seen {
    next: VecDeque<Behaviour>,
    /// Key, traceparent and body of each delivery.
    deliveries: Vec<(String, String, String)>,
}

#[derive(Clone, Default)]
struct Hook(Arc<Mutex<Seen>>);

impl Hook {
    async fn open(behaviours: &[Behaviour]) -> (Self, String) {
        let hook = Self::default();
        hook.0.lock().unwrap().next.extend(behaviours);
        let router = Router::new()
            .route("/hook", post(take))
            .with_state(hook.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (hook, url)
    }

    fn deliveries(&self) -> Vec<(String, String, String)> {
        self.0.lock().unwrap().deliveries.clone()
    }
}

async fn take(State(hook): State<Hook>, headers: HeaderMap, body: String) -> StatusCode {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let behaviour = {
        let mut seen = hook.0.lock().unwrap();
        seen.deliveries
            .push((text("idempotency-key"), text("traceparent"), body));
        seen.next.pop_front().unwrap_or(Behaviour::Take)
    };
    match behaviour {
        Behaviour::Take => StatusCode::NO_CONTENT,
        Behaviour::Answer(status) => StatusCode::from_u16(status).unwrap(),
        Behaviour::Hang => {
            tokio::time::sleep(TIMEOUT * 10).await;
            StatusCode::NO_CONTENT
        }
        // Ends the connection's task without a word.
        Behaviour::Cut => std::panic::resume_unwind(Box::new("cut")),
    }
}

fn config(url: &str) -> EngineConfig {
    EngineConfig {
        webhook: Some(RemoteConfig {
            url: url.to_owned().into(),
            timeout: TIMEOUT,
        }),
        ..EngineConfig::default()
    }
}

async fn submit(world: &World, n: usize) {
    let token = world.token("student1").await;
    let practice: i64 = sqlx::query_scalar("SELECT min(id) FROM task WHERE kind = 'practice'")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    let path = format!("/api/v1/tasks/{practice}/submissions");
    for attempt in 1..=n {
        let body = fresh_submission(u32::try_from(attempt).unwrap());
        let answer = world
            .submit(&token, &path, &format!("key {attempt}"), &body)
            .await;
        assert_eq!(answer.status, 201);
    }
}

async fn run(pool: &PgPool, sql: &'static str) {
    sqlx::query(sql).execute(pool).await.unwrap();
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn without_a_webhook_messages_reach_their_readers_once(pool: PgPool) {
    let world = World::new(pool).await;
    submit(&world, 3).await;
    let (one, two) = (world.engine.clone(), world.another_instance().await);
    let (first, second) = tokio::join!(one.relay_once(), two.relay_once());
    assert_eq!(first.unwrap() + second.unwrap(), 3);
    assert_eq!(world.engine.relay_once().await.unwrap(), 0);
    assert_eq!(world.count(DELIVERED).await, 3);
    for reader in ["teacher1", "parent1"] {
        let token = world.token(reader).await;
        let told = world.get(&token, "/api/v1/notifications").await.json();
        let told = told["notifications"].as_array().unwrap().clone();
        assert_eq!(told.len(), 3, "{reader}");
        assert_eq!(told[0]["student"], "student1");
        assert_eq!(told[0]["topic"], "submission.created");
        assert!(told[0]["title"].as_str().unwrap().contains("practice"));
    }
    assert_eq!(world.count("SELECT count(*) FROM notification").await, 6);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_a_webhook_fails_to_take_is_delivered_again_under_the_same_key(pool: PgPool) {
    let failures = [
        Behaviour::Answer(500),
        Behaviour::Cut,
        Behaviour::Hang,
        Behaviour::Answer(404),
        Behaviour::Answer(302),
    ];
    let (hook, url) = Hook::open(&failures).await;
    let world = World::with(pool, Limits::new(None, None), config(&url)).await;
    submit(&world, 1).await;
    for attempt in 1..=failures.len() {
        assert_eq!(
            world.engine.relay_once().await.unwrap(),
            1,
            "attempt {attempt}"
        );
        // Not before its pause is over.
        assert_eq!(world.engine.relay_once().await.unwrap(), 0);
        let (attempts, error): (i32, Option<String>) =
            sqlx::query_as("SELECT attempts, last_error FROM outbox")
                .fetch_one(&world.pool)
                .await
                .unwrap();
        assert_eq!(attempts, i32::try_from(attempt).unwrap());
        assert!(
            error.is_some_and(|error| !error.contains("127.0.0.1")),
            "an address may hold a secret"
        );
        run(&world.pool, DUE_NOW).await;
    }
    assert_eq!(world.count(DELIVERED).await, 0);
    world.engine.relay_once().await.unwrap();
    assert_eq!(world.count(DELIVERED).await, 1);
    let deliveries = hook.deliveries();
    assert_eq!(deliveries.len(), failures.len() + 1);
    let record_trace: String = sqlx::query_scalar("SELECT trace_id FROM idempotency_record")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    for (key, traceparent, body) in &deliveries {
        assert_eq!((key, body), (&deliveries[0].0, &deliveries[0].2));
        assert!(traceparent.contains(&record_trace));
    }
    assert_eq!(world.count("SELECT count(*) FROM notification").await, 2);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn two_relays_at_once_deliver_each_message_once(pool: PgPool) {
    let (hook, url) = Hook::open(&[]).await;
    let world = World::with(pool, Limits::new(None, None), config(&url)).await;
    submit(&world, 40).await;
    let other = World::with(world.pool.clone(), Limits::new(None, None), config(&url)).await;
    let (one, two) = tokio::join!(world.engine.relay_once(), other.engine.relay_once());
    assert_eq!(one.unwrap() + two.unwrap(), 40);
    let mut keys: Vec<_> = hook
        .deliveries()
        .into_iter()
        .map(|delivery| delivery.0)
        .collect();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), hook.deliveries().len()), (40, 40));
    assert_eq!(world.count(DELIVERED).await, 40);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_crash_between_delivery_and_mark_delivers_again_and_records_once(pool: PgPool) {
    let (hook, url) = Hook::open(&[]).await;
    let webhook = [
        ("YICI_WEBHOOK_URL", url.as_str()),
        ("YICI_WEBHOOK_TIMEOUT_MS", "100"),
    ];
    let dying = [webhook[0], webhook[1], ("YICI_CRASH_AT", "after_delivery")];
    let mut server = Server::start_with(&pool, &dying).await;
    let token = server.sign_in("student1").await;
    // Its caller may get an answer or not: the relay runs behind it.
    let _ = server.submit(&token, "k1", "my work").await;
    server.ended().await;
    assert_eq!(hook.deliveries().len(), 1);
    assert_eq!(count(&pool, DELIVERED).await, 0);
    // The dead relay's claim runs out by itself; nobody has to wait for it here.
    run(&pool, "UPDATE outbox SET claimed_until = now()").await;
    let _server = Server::start_with(&pool, &webhook).await;
    until(&pool, DELIVERED, 1).await;
    let deliveries = hook.deliveries();
    assert_eq!(deliveries.len(), 2);
    assert_eq!(deliveries[0].0, deliveries[1].0);
    assert_eq!(count(&pool, "SELECT count(*) FROM notification").await, 2);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_dead_letter_is_kept_and_an_admin_lets_it_be_tried_again_once(pool: PgPool) {
    let (hook, url) = Hook::open(&[Behaviour::Answer(500)]).await;
    let world = World::with(pool, Limits::new(None, None), config(&url)).await;
    submit(&world, 1).await;
    run(&world.pool, "UPDATE outbox SET attempts = 15").await;
    world.engine.relay_once().await.unwrap();
    assert_eq!(
        world
            .count("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL")
            .await,
        1
    );
    run(&world.pool, DUE_NOW).await;
    assert_eq!(
        world.engine.relay_once().await.unwrap(),
        0,
        "nobody tries a dead letter"
    );
    // Its record is never purged meanwhile.
    run(
        &world.pool,
        "UPDATE idempotency_record SET expires_at = now() - interval '1 h'",
    )
    .await;
    world.engine.purge_once().await.unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        1
    );
    let messages = world.engine.find_record("1").await.unwrap().unwrap().outbox;
    assert!(messages[0].dead_at.is_some());
    let admin = world.token("admin1").await;
    let replay = async |key: &str, body: &str| {
        world
            .submit(&admin, "/api/v1/outbox/1/replay", key, body)
            .await
    };
    assert_eq!(replay("a", r#"{"reason":" "}"#).await.status, 400);
    assert_eq!(
        replay("b", r#"{"reason":"the hook is back"}"#).await.status,
        204
    );
    let again = replay("c", r#"{"reason":"the hook is back"}"#).await;
    assert_eq!(
        (again.status.as_u16(), again.code().as_str()),
        (409, "not-dead")
    );
    let missing = world
        .submit(&admin, "/api/v1/outbox/99/replay", "d", r#"{"reason":"x"}"#)
        .await;
    assert_eq!(missing.status, 404);
    world.engine.relay_once().await.unwrap();
    assert_eq!(
        (world.count(DELIVERED).await, hook.deliveries().len()),
        (1, 2)
    );
    let audited: Vec<(String, String)> = sqlx::query_as(
        "SELECT object, detail ->> 'outcome' FROM audit_entry WHERE action = 'outbox.replay' ORDER BY id",
    )
    .fetch_all(&world.pool)
    .await
    .unwrap();
    let expected = [("outbox/1", "applied"), ("outbox/1", "refused")];
    assert_eq!(
        audited,
        expected.map(|(object, outcome)| (object.to_owned(), outcome.to_owned()))
    );
    // Delivered at last, and its record too may go.
    world.engine.purge_once().await.unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        0
    );
}
