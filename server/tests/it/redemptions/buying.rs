//! A reward is bought once, and what is refused is not paid for.

use serde_json::json;
use server::reward_provider::Mode;
use sqlx::PgPool;

use super::{BUY, PATH, Shop, WRONG_BALANCES, balance, run, told, world};
use crate::process::until;

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
