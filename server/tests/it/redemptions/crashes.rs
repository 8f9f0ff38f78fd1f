//! Processes that die or stand still around the call.

use serde_json::Value;
use server::reward_provider::Mode;
use sqlx::PgPool;

use super::{BUY, PATH, Shop, TERMINAL, WRONG_BALANCES, earn, reset, server};
use crate::process::{count, until};

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
