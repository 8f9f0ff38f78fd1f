//! `points_redeem` against a real provider that misbehaves: what is given, what is held, and what is never called twice.

use std::time::Duration;

use engine::{EngineConfig, RemoteConfig};
use serde_json::{Value, json};
use server::{
    http::limits::Limits,
    reward_provider::{Mode, Provider},
};
use sqlx::PgPool;
use tokio::net::TcpListener;

use crate::{
    process::{Server, count, until},
    support::{Answer, World},
};

/// How long the provider may take in these tests.
const TIMEOUT: Duration = Duration::from_millis(400);
pub(crate) const PATH: &str = "/api/v1/rewards/1/redemptions";
pub(crate) const BUY: &str = r#"{"client_id":"phone","sequence":1}"#;
const TERMINAL: &str = "SELECT count(*) FROM idempotency_record WHERE state IN ('SUCCEEDED', 'FAILED_FINAL', 'FAILED_RETRYABLE')";
/// Accounts whose balance is not the sum of their ledger.
pub(crate) const WRONG_BALANCES: &str =
    "SELECT count(*) FROM points_balance b
     WHERE b.balance <> (SELECT coalesce(sum(amount), 0) FROM points_entry e WHERE e.account_id = b.account_id)";

/// A provider on a port of its own.
pub(crate) struct Shop {
    pub(crate) provider: Provider,
    url: String,
}

impl Shop {
    pub(crate) async fn open(mode: Mode) -> Self {
        let provider = Provider::open(mode, TIMEOUT * 3, None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = provider.clone().router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { provider, url }
    }

    pub(crate) fn calls(&self) -> usize {
        self.provider.entries().len()
    }

    pub(crate) fn given(&self) -> usize {
        self.provider
            .entries()
            .iter()
            .filter(|entry| entry.given)
            .count()
    }
}

async fn world(pool: PgPool, shop: &Shop) -> World {
    let config = EngineConfig {
        reward: Some(RemoteConfig {
            url: shop.url.clone().into(),
            timeout: TIMEOUT,
        }),
        ..EngineConfig::default()
    };
    let world = World::with(pool, Limits::new(None, None), config).await;
    earn(&world.pool, 120).await;
    world
}

/// Gives both students points, with their lines in the ledger.
pub(crate) async fn earn(pool: &PgPool, points: i32) {
    sqlx::query(
        "WITH earned AS (
             INSERT INTO points_entry (account_id, amount, source_kind, source_id)
             SELECT id, $1, 'submission', -id FROM account WHERE role = 'student' RETURNING account_id, amount
         )
         INSERT INTO points_balance (account_id, balance) SELECT account_id, amount FROM earned",
    )
    .bind(points)
    .execute(pool)
    .await
    .unwrap();
}

async fn run(pool: &PgPool, sql: &'static str) {
    sqlx::query(sql).execute(pool).await.unwrap();
}

async fn balance(world: &World, token: &str) -> i64 {
    world.get(token, "/api/v1/points").await.json()["balance"]
        .as_i64()
        .unwrap()
}

async fn state(pool: &PgPool, key: &str) -> String {
    sqlx::query_scalar("SELECT state FROM idempotency_record WHERE idem_key = $1")
        .bind(key)
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Scans until nothing is PROCESSING or UNKNOWN, as the scanner does over a longer time.
async fn scan_to_the_end(world: &World) {
    let ended = async {
        while world
            .count(
                "SELECT count(*) FROM idempotency_record WHERE state IN ('PROCESSING', 'UNKNOWN')",
            )
            .await
            > 0
        {
            sqlx::query("UPDATE idempotency_record SET scan_after = now(), scan_attempts = 0")
                .execute(&world.pool)
                .await
                .unwrap();
            world.engine.scan_once().await.unwrap();
            tokio::time::sleep(TIMEOUT / 4).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended)
        .await
        .unwrap();
}

fn told(answer: &Answer) -> (u16, &str) {
    (
        answer.status.as_u16(),
        answer.header("idempotency-status").unwrap_or_default(),
    )
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_reward_is_bought_once_and_the_ledger_says_so(pool: PgPool) {
    let shop = Shop::open(Mode::Ok).await;
    let world = world(pool, &shop).await;
    let token = world.token("student1").await;
    let first = world.submit(&token, PATH, "k1", BUY).await;
    assert_eq!(told(&first), (201, "new"));
    let location = first.header("location").unwrap().to_owned();
    assert_eq!(world.get(&token, &location).await.json(), first.json());
    assert_eq!(
        (
            first.json()["sequence"].as_i64(),
            first.json()["points"].as_i64()
        ),
        (Some(1), Some(50))
    );
    let again = world.submit(&token, PATH, "k1", BUY).await;
    assert_eq!((told(&again), &again.body), ((201, "reused"), &first.body));
    let tablet = world
        .submit(&token, PATH, "k2", r#"{"client_id":"tablet","sequence":1}"#)
        .await;
    assert_eq!(
        (told(&tablet), &tablet.body),
        ((200, "constraint-conflict"), &first.body)
    );
    let other = world
        .submit(&token, PATH, "k1", r#"{"client_id":"phone","sequence":2}"#)
        .await;
    assert_eq!(told(&other), (422, "mismatch"));
    let entries = shop.provider.entries();
    assert_eq!(entries.len(), 1);
    assert!(entries[0].key.ends_with(":k1"), "{entries:?}");
    let trace = first
        .header("traceparent")
        .map(|parent| parent[3..35].to_owned());
    let sent = entries[0].traceparent.as_deref().unwrap();
    assert_eq!(sent.len(), 55);
    assert!(
        trace.is_none_or(|trace| sent.contains(&trace)),
        "the trace goes on: {sent}"
    );
    assert_eq!(balance(&world, &token).await, 70);
    let rewards = world.get(&token, "/api/v1/rewards").await.json();
    assert_eq!(rewards["rewards"][0]["next_sequence"], 2);
    let second = world
        .submit(&token, PATH, "k3", r#"{"client_id":"phone","sequence":2}"#)
        .await;
    assert_eq!(told(&second), (201, "new"));
    assert_eq!(balance(&world, &token).await, 20);
    assert_eq!(world.count(WRONG_BALANCES).await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_a_rule_refuses_is_never_sent(pool: PgPool) {
    let shop = Shop::open(Mode::Ok).await;
    let world = world(pool, &shop).await;
    let token = world.token("student1").await;
    let cases = [
        (
            "/api/v1/rewards/3/redemptions",
            BUY,
            409,
            "insufficient-points",
        ),
        (
            "/api/v1/rewards/99/redemptions",
            BUY,
            404,
            "reward-not-found",
        ),
        (
            PATH,
            r#"{"client_id":"phone","sequence":2}"#,
            409,
            "sequence-not-current",
        ),
    ];
    for (at, (path, body, status, code)) in cases.into_iter().enumerate() {
        for bucket in ["new", "reused"] {
            let answer = world.submit(&token, path, &format!("k{at}"), body).await;
            assert_eq!(
                (told(&answer), answer.code().as_str()),
                ((status, bucket), code)
            );
        }
    }
    for (path, body) in [
        (PATH, r#"{"client_id":"phone","sequence":0}"#),
        (PATH, r#"{"client_id":"phone","sequence":1.0}"#),
        (PATH, r#"{"client_id":"phone"}"#),
        (PATH, r#"{"client_id":"phone","sequence":1,"points":0}"#),
    ] {
        assert_eq!(
            world.submit(&token, path, "bad", body).await.code(),
            "invalid-body",
            "{body}"
        );
    }
    assert_eq!(
        world
            .submit(&token, "/api/v1/rewards/x/redemptions", "bad", BUY)
            .await
            .status,
        404
    );
    assert_eq!(shop.calls(), 0);
    assert_eq!(balance(&world, &token).await, 120);
    assert_eq!(world.count("SELECT count(*) FROM redemption_hold").await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_refusal_by_the_provider_gives_the_points_back(pool: PgPool) {
    let shop = Shop::open(Mode::Refuse).await;
    let world = world(pool, &shop).await;
    let token = world.token("student1").await;
    for bucket in ["new", "reused"] {
        let answer = world.submit(&token, PATH, "k1", BUY).await;
        assert_eq!(
            (told(&answer), answer.code().as_str()),
            ((409, bucket), "reward-refused")
        );
    }
    assert_eq!((shop.calls(), balance(&world, &token).await), (1, 120));
    shop.provider.set_mode(Mode::Ok);
    assert_eq!(
        told(&world.submit(&token, PATH, "k1:2", BUY).await),
        (201, "new")
    );
    assert_eq!(
        (
            balance(&world, &token).await,
            world.count(WRONG_BALANCES).await
        ),
        (70, 0)
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_answer_that_is_lost_after_the_gift_is_found_out_and_never_sent_again(pool: PgPool) {
    for mode in [Mode::LoseAnswer, Mode::Slow, Mode::ErrorAfter] {
        let shop = Shop::open(mode).await;
        let world = world(pool.clone(), &shop).await;
        let token = world.token("student1").await;
        let first = world.submit(&token, PATH, "k1", BUY).await;
        assert_eq!(told(&first), (202, "unknown"), "{mode:?}");
        assert!(first.header("retry-after").is_some());
        assert_eq!(
            first.header("location"),
            Some("/api/v1/requests/k1?action=points_redeem")
        );
        assert_eq!(state(&world.pool, "k1").await, "UNKNOWN", "{mode:?}");
        assert_eq!(
            balance(&world, &token).await,
            70,
            "{mode:?}: the points are held"
        );
        // Another device, another key, while it is undecided.
        let tablet = world.submit(&token, PATH, "k2", BUY).await;
        assert_eq!(
            (told(&tablet), tablet.code().as_str()),
            ((409, "constraint-conflict"), "redemption-in-progress")
        );
        assert_eq!(shop.calls(), 1, "{mode:?}");
        // The same key again starts the question at once.
        let retry = world.submit(&token, PATH, "k1", BUY).await;
        assert!(["unknown", "reused"].contains(&told(&retry).1), "{mode:?}");
        scan_to_the_end(&world).await;
        let done = world.submit(&token, PATH, "k1", BUY).await;
        assert_eq!(told(&done), (201, "reused"), "{mode:?}");
        assert_eq!(
            (shop.calls(), shop.given(), balance(&world, &token).await),
            (1, 1, 70),
            "{mode:?}"
        );
        assert_eq!(world.count(WRONG_BALANCES).await, 0);
        assert_eq!(world.count("SELECT count(*) FROM redemption").await, 1);
        assert_eq!(
            world
                .count("SELECT count(*) FROM outbox WHERE topic = 'redemption.created'")
                .await,
            1
        );
        sqlx::raw_sql(
            "TRUNCATE idempotency_record, request_arrival, outcome_counter, outbox, redemption, redemption_hold, redemption_call,
                      redemption_probe, points_entry, points_balance",
        )
        .execute(&world.pool)
        .await
        .unwrap();
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn two_answers_not_found_far_enough_apart_give_the_points_back_and_let_it_run_again(
    pool: PgPool,
) {
    let shop = Shop::open(Mode::Error).await;
    let world = world(pool, &shop).await;
    let token = world.token("student1").await;
    assert_eq!(
        told(&world.submit(&token, PATH, "k1", BUY).await),
        (202, "unknown")
    );
    // One answer is no proof, nor are two at the same time.
    for _ in 0..2 {
        sqlx::query("UPDATE idempotency_record SET scan_after = now()")
            .execute(&world.pool)
            .await
            .unwrap();
        world.engine.scan_once().await.unwrap();
        assert_eq!(state(&world.pool, "k1").await, "UNKNOWN");
    }
    scan_to_the_end(&world).await;
    assert_eq!(state(&world.pool, "k1").await, "FAILED_RETRYABLE");
    assert_eq!((shop.calls(), balance(&world, &token).await), (1, 120));
    let apart: f64 = sqlx::query_scalar(
        "SELECT (max(asked_ms) - min(answered_ms))::float8 FROM redemption_probe WHERE finding = 'not_found'",
    )
    .fetch_one(&world.pool)
    .await
    .unwrap();
    assert!(apart >= 2.0 * TIMEOUT.as_secs_f64() * 1000.0);
    // The scanner never calls by itself.
    world.engine.scan_once().await.unwrap();
    assert_eq!(shop.calls(), 1);
    shop.provider.set_mode(Mode::Ok);
    assert_eq!(
        told(&world.submit(&token, PATH, "k1", BUY).await),
        (201, "new")
    );
    assert_eq!(
        (shop.calls(), shop.given(), balance(&world, &token).await),
        (2, 1, 70)
    );
    assert_eq!(world.count(WRONG_BALANCES).await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_nobody_can_find_out_waits_for_two_people(pool: PgPool) {
    let shop = Shop::open(Mode::Down).await;
    let world = world(pool, &shop).await;
    let (one, two) = (world.token("admin1").await, world.token("admin2").await);
    for (student, key, action, balance_after, end) in [
        ("student1", "k1", "complete", 70, "SUCCEEDED"),
        ("student2", "k2", "fail", 120, "FAILED_FINAL"),
    ] {
        let token = world.token(student).await;
        assert_eq!(
            told(&world.submit(&token, PATH, key, BUY).await),
            (202, "unknown")
        );
        world.engine.scan_once().await.unwrap();
        let record: Value = world
            .get(&one, &format!("/api/v1/records?q={key}"))
            .await
            .json()["records"][0]
            .clone();
        let (id, version) = (record["id"].as_str().unwrap(), &record["version"]);
        let path = format!("/api/v1/records/{id}/compensations");
        let body = |action: &str| {
            json!({ "action": action, "reason": "asked the shop by phone", "expected_version": version }).to_string()
        };
        for forbidden in ["release", "re_execute"] {
            let answer = world
                .submit(&one, &path, &format!("{key} {forbidden}"), &body(forbidden))
                .await;
            assert_eq!(
                (answer.status.as_u16(), answer.code().as_str()),
                (422, "evidence-forbids"),
                "{forbidden}"
            );
            assert_eq!(
                answer.json()["compensation"]["evidence"]["finding"],
                "not_known"
            );
        }
        let asked = world
            .submit(&one, &path, &format!("{key} {action}"), &body(action))
            .await;
        assert_eq!(asked.status, 202);
        assert_eq!(asked.json()["compensation"]["status"], "awaiting_approval");
        assert_eq!(state(&world.pool, key).await, "UNKNOWN");
        let approval = format!(
            "/api/v1/compensations/{}/approval",
            asked.json()["compensation"]["id"].as_str().unwrap()
        );
        let approve = r#"{"decision":"approve","reason":"heard it too"}"#;
        let own = world.submit(&one, &approval, "x", approve).await;
        assert_eq!(
            (own.status.as_u16(), own.code().as_str()),
            (403, "second-person-needed")
        );
        let done = world.submit(&two, &approval, "x", approve).await;
        assert_eq!(
            (
                done.status.as_u16(),
                done.json()["record"]["state"].as_str()
            ),
            (200, Some(end))
        );
        assert_eq!(balance(&world, &token).await, balance_after);
    }
    assert_eq!(shop.calls(), 2);
    assert_eq!(world.count(WRONG_BALANCES).await, 0);
    assert_eq!(world.count("SELECT count(*) FROM redemption").await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_answer_that_comes_after_the_points_came_back_is_a_debt_and_no_second_call(
    pool: PgPool,
) {
    let shop = Shop::open(Mode::Error).await;
    let world = world(pool, &shop).await;
    let token = world.token("student1").await;
    world.submit(&token, PATH, "k1", BUY).await;
    scan_to_the_end(&world).await;
    assert_eq!(
        (
            state(&world.pool, "k1").await,
            balance(&world, &token).await
        ),
        ("FAILED_RETRYABLE".into(), 120)
    );
    // The paused owner's answer, kept as evidence.
    sqlx::query("UPDATE redemption_call SET answer = 'done'")
        .execute(&world.pool)
        .await
        .unwrap();
    sqlx::query("UPDATE idempotency_record SET scan_after = now()")
        .execute(&world.pool)
        .await
        .unwrap();
    world.engine.scan_once().await.unwrap();
    assert_eq!(
        (
            state(&world.pool, "k1").await,
            balance(&world, &token).await
        ),
        ("SUCCEEDED".into(), 70)
    );
    assert_eq!((shop.calls(), world.count(WRONG_BALANCES).await), (1, 0));
    assert_eq!(
        told(&world.submit(&token, PATH, "k1", BUY).await),
        (201, "reused")
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn twenty_keys_for_one_sequence_at_once_are_one_call(pool: PgPool) {
    let shop = Shop::open(Mode::Ok).await;
    let world = world(pool, &shop).await;
    run(&world.pool, "UPDATE points_entry SET amount = 1000").await;
    run(&world.pool, "UPDATE points_balance SET balance = 1000").await;
    let token = world.token("student1").await;
    // Several rounds: the keys that come while another one's call finishes must see its end or its hold.
    for sequence in 1..=8 {
        let keys: Vec<String> = (0..20).map(|n| format!("k{sequence} {}", n / 2)).collect();
        let body = json!({ "client_id": "phone", "sequence": sequence }).to_string();
        let all = keys
            .iter()
            .map(|key| world.submit(&token, PATH, key, &body));
        let answers = futures::future::join_all(all).await;
        let succeeded = answers.iter().filter(|a| told(a) == (201, "new")).count();
        assert_eq!(succeeded, 1, "{sequence}");
        for answer in &answers {
            assert!(
                [200, 201, 202, 409].contains(&answer.status.as_u16()),
                "{answer:?}"
            );
        }
        assert_eq!(shop.calls(), sequence, "{sequence}");
        let left = 1000 - 50 * i64::try_from(sequence).unwrap();
        assert_eq!(balance(&world, &token).await, left);
    }
    assert_eq!(world.count(WRONG_BALANCES).await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_key_that_comes_while_another_ones_purchase_is_being_written_sees_it(pool: PgPool) {
    let shop = Shop::open(Mode::Ok).await;
    let world = world(pool, &shop).await;
    let token = world.token("student1").await;
    // The first purchase has spent its hold and cannot commit yet.
    let mut gate = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE outcome_counter IN EXCLUSIVE MODE")
        .execute(&mut *gate)
        .await
        .unwrap();
    let waiting = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
                   WHERE NOT l.granted AND a.datname = current_database()";
    let first = world.submit(&token, PATH, "k1", BUY);
    let second = async {
        until(&world.pool, waiting, 1).await;
        let second = world.submit(&token, PATH, "k2", BUY);
        let open = async {
            until(&world.pool, waiting, 2).await;
            gate.commit().await.unwrap();
        };
        tokio::join!(second, open).0
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(told(&first), (201, "new"));
    assert_eq!(
        (told(&second), &second.body),
        ((200, "constraint-conflict"), &first.body)
    );
    assert_eq!((shop.calls(), balance(&world, &token).await), (1, 70));
    assert_eq!(world.count(WRONG_BALANCES).await, 0);
}

/// A server over the wire whose provider is `shop`.
pub(crate) async fn server(pool: &PgPool, shop: &Shop, variable: Option<(&str, &str)>) -> Server {
    let mut variables = vec![
        ("YICI_REWARD_URL", shop.url.as_str()),
        ("YICI_REWARD_TIMEOUT_MS", "400"),
    ];
    variables.extend(variable);
    Server::start_with(pool, &variables).await
}

pub(crate) async fn reset(pool: &PgPool) {
    sqlx::raw_sql(
        "TRUNCATE idempotency_record, request_arrival, outcome_counter, outbox, redemption, redemption_hold, redemption_call,
                  redemption_probe, points_entry, points_balance",
    )
    .execute(pool)
    .await
    .unwrap();
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_crash_at_any_step_with_any_provider_gives_one_reward_and_a_true_ledger(pool: PgPool) {
    let body: Value = serde_json::from_str(BUY).unwrap();
    for mode in [Mode::Ok, Mode::LoseAnswer, Mode::Error] {
        for point in [
            "after_claim",
            "before_call",
            "after_call",
            "inside_finish",
            "after_finish",
        ] {
            let case = format!("{mode:?} {point}");
            let shop = Shop::open(mode).await;
            let mut dying = server(&pool, &shop, Some(("YICI_CRASH_AT", point))).await;
            earn(&pool, 120).await;
            let token = dying.sign_in("student1").await;
            assert!(
                dying.post(&token, PATH, "k1", &body).await.is_none(),
                "{case}"
            );
            dying.ended().await;
            let calls = shop.calls();
            // The provider is well again; the next process reconciles, and the student retries until it is decided.
            let next = server(&pool, &shop, None).await;
            until(&pool, TERMINAL, 1).await;
            assert_eq!(shop.calls(), calls, "{case}: called without its caller");
            shop.provider.set_mode(Mode::Ok);
            let token = next.sign_in("student1").await;
            let answer = next.post(&token, PATH, "k1", &body).await.unwrap();
            assert_eq!(answer.status, 201, "{case}: {answer:?}");
            assert_eq!(shop.given(), 1, "{case}");
            assert_eq!(
                count(&pool, "SELECT count(*) FROM redemption").await,
                1,
                "{case}"
            );
            assert_eq!(count(&pool, WRONG_BALANCES).await, 0, "{case}");
            assert_eq!(
                count(&pool, "SELECT min(balance) FROM points_balance").await,
                70,
                "{case}"
            );
            assert_eq!(
                count(
                    &pool,
                    "SELECT count(*) FROM redemption_hold WHERE state = 'open'"
                )
                .await,
                0,
                "{case}"
            );
            drop(next);
            reset(&pool).await;
        }
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_owner_paused_around_its_call_neither_gives_twice_nor_lies(pool: PgPool) {
    let body: Value = serde_json::from_str(BUY).unwrap();
    for (point, given_while_paused, decided) in [
        (
            "before_call",
            0,
            "SELECT count(*) FROM idempotency_record WHERE state = 'FAILED_RETRYABLE'",
        ),
        (
            "after_call",
            1,
            "SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'",
        ),
    ] {
        let shop = Shop::open(Mode::Ok).await;
        let paused = server(&pool, &shop, Some(("YICI_PAUSE_AT", point))).await;
        earn(&pool, 120).await;
        let token = paused.sign_in("student1").await;
        let waiting = paused.post(&token, PATH, "k1", &body);
        let meanwhile = async {
            until(&pool, "SELECT count(*) FROM redemption_call", 1).await;
            // Another instance finds the lease over, fences it, and asks the provider.
            let other = server(&pool, &shop, None).await;
            until(&pool, decided, 1).await;
            assert_eq!(shop.given(), given_while_paused, "{point}");
            paused.signal("CONT").await;
            other
        };
        let (late, other) = tokio::join!(waiting, meanwhile);
        let late = late.unwrap();
        assert!([201, 202].contains(&late.status), "{point}: {late:?}");
        assert!(shop.given() <= 1, "{point}: the owner that woke up called");
        let token = other.sign_in("student1").await;
        let answer = other.post(&token, PATH, "k1", &body).await.unwrap();
        assert_eq!(answer.status, 201, "{point}: {answer:?}");
        assert_eq!(shop.given(), 1, "{point}");
        assert_eq!(
            count(&pool, "SELECT count(*) FROM redemption").await,
            1,
            "{point}"
        );
        assert_eq!(count(&pool, WRONG_BALANCES).await, 0, "{point}");
        assert_eq!(
            count(&pool, "SELECT min(balance) FROM points_balance").await,
            70,
            "{point}"
        );
        drop((paused, other));
        reset(&pool).await;
    }
}
