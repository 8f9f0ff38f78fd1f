//! Two people decide about a redemption while its owner, a real process, is paused around its call: whoever wakes up late neither calls
//! nor changes what was decided.

use serde_json::{Value, json};
use server::reward_provider::Mode;
use sqlx::PgPool;

use super::{BUY, PATH, Shop, WRONG_BALANCES, earn, reset, server};
use crate::process::{Server, count, until};

const UNKNOWN: &str = "SELECT count(*) FROM idempotency_record WHERE state = 'UNKNOWN'";
const OPEN_HOLDS: &str = "SELECT count(*) FROM redemption_hold WHERE state = 'open'";

/// One admin asks, the other one approves.
async fn decide(server: &Server, pool: &PgPool, action: &str) {
    let (id, version): (i64, i64) = sqlx::query_as("SELECT id, version FROM idempotency_record")
        .fetch_one(pool)
        .await
        .unwrap();
    let (one, two) = (
        server.sign_in("admin1").await,
        server.sign_in("admin2").await,
    );
    let path = format!("/api/v1/records/{id}/compensations");
    let body = json!({ "action": action, "reason": "asked the shop by phone", "expected_version": version });
    let asked = server
        .post(&one, &path, &format!("ask to {action}"), &body)
        .await
        .unwrap();
    assert_eq!(asked.status, 202, "{asked:?}");
    let path = format!(
        "/api/v1/compensations/{}/approval",
        asked.body["compensation"]["id"].as_str().unwrap()
    );
    let body = json!({ "decision": "approve", "reason": "heard it too" });
    let done = server
        .post(&two, &path, &format!("approve to {action}"), &body)
        .await
        .unwrap();
    assert_eq!(done.status, 200, "{done:?}");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_two_people_decide_holds_when_the_paused_owner_wakes_up(pool: PgPool) {
    let body: Value = serde_json::from_str(BUY).unwrap();
    // Where the owner is paused, what people say, how often the provider gave, what is left of the points, what the caller is told.
    for (point, action, given, left, status) in [
        ("before_call", "fail", 0, 120, 409),
        ("after_call", "complete", 1, 70, 201),
    ] {
        let shop = Shop::open(Mode::Ok).await;
        let paused = server(&pool, &shop, Some(("YICI_PAUSE_AT", point))).await;
        earn(&pool, 120).await;
        let token = paused.sign_in("student1").await;
        let waiting = paused.post(&token, PATH, "k1", &body);
        let meanwhile = async {
            until(&pool, "SELECT count(*) FROM redemption_call", 1).await;
            if given > 0 {
                while shop.given() < given {
                    tokio::task::yield_now().await;
                }
            }
            // From now on the provider tells nobody anything.
            shop.provider.set_mode(Mode::Down);
            let other = server(&pool, &shop, None).await;
            until(&pool, UNKNOWN, 1).await;
            decide(&other, &pool, action).await;
            shop.provider.set_mode(Mode::Ok);
            paused.signal("CONT").await;
            other
        };
        let (late, other) = tokio::join!(waiting, meanwhile);
        let late = late.unwrap();
        let token = other.sign_in("student1").await;
        let again = other.post(&token, PATH, "k1", &body).await.unwrap();
        assert_eq!(again.status, status, "{point}: {again:?}");
        assert_eq!(
            (late.status, &late.body["code"]),
            (status, &again.body["code"]),
            "{point}: the owner that woke up says what was decided"
        );
        assert_eq!((shop.calls(), shop.given()), (given, given), "{point}");
        let bought = count(&pool, "SELECT count(*) FROM redemption").await;
        assert_eq!(usize::try_from(bought).unwrap(), given, "{point}");
        let balance = count(&pool, "SELECT min(balance) FROM points_balance").await;
        assert_eq!(balance, left, "{point}");
        assert_eq!(count(&pool, WRONG_BALANCES).await, 0, "{point}");
        assert_eq!(count(&pool, OPEN_HOLDS).await, 0, "{point}");
        drop((paused, other));
        reset(&pool).await;
    }
}
