//! What nobody was told: found out from the provider, or left to people.

use serde_json::{Value, json};
use server::reward_provider::Mode;
use sqlx::PgPool;

use super::{
    BUY, PATH, Shop, TIMEOUT, WRONG_BALANCES, balance, scan_to_the_end, state, told, world,
};

const VERSION: &str = "SELECT version FROM idempotency_record";

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
    let version = world.count(VERSION).await;
    // One answer is no proof, nor are two at the same time.
    for _ in 0..2 {
        sqlx::query("UPDATE idempotency_record SET scan_after = now()")
            .execute(&world.pool)
            .await
            .unwrap();
        world.engine.scan_once().await.unwrap();
        assert_eq!(state(&world.pool, "k1").await, "UNKNOWN");
        // What changes nothing makes nobody's page stale.
        assert_eq!(world.count(VERSION).await, version);
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
