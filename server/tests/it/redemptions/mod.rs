//! `points_redeem` against a real provider that misbehaves: what is given, what is held, and what is never called twice.

use std::time::Duration;

use engine::{EngineConfig, RemoteConfig};
use server::{
    http::limits::Limits,
    reward_provider::{Mode, Provider},
};
use sqlx::PgPool;
use tokio::net::TcpListener;

use crate::{
    process::Server,
    support::{Answer, World},
};

mod buying;
mod crashes;
mod deciding;
mod finding_out;

/// How long the provider may take in these tests.
const TIMEOUT: Duration = Duration::from_millis(400);
const PATH: &str = "/api/v1/rewards/1/redemptions";
const BUY: &str = r#"{"client_id":"phone","sequence":1}"#;
const TERMINAL: &str = "SELECT count(*) FROM idempotency_record WHERE state IN ('SUCCEEDED', 'FAILED_FINAL', 'FAILED_RETRYABLE')";
/// Accounts whose balance is not the sum of their ledger.
const WRONG_BALANCES: &str =
    "SELECT count(*) FROM points_balance b
     WHERE b.balance <> (SELECT coalesce(sum(amount), 0) FROM points_entry e WHERE e.account_id = b.account_id)";

/// A provider on a port of its own.
struct Shop {
    provider: Provider,
    url: String,
}

impl Shop {
    async fn open(mode: Mode) -> Self {
        let provider = Provider::open(mode, TIMEOUT * 3, None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = provider.clone().router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { provider, url }
    }

    fn calls(&self) -> usize {
        self.provider.entries().len()
    }

    fn given(&self) -> usize {
        self.provider
            .entries()
            .iter()
            .filter(|entry| entry.given)
            .count()
    }
}

/// A server over the wire whose provider is `shop`.
async fn server(pool: &PgPool, shop: &Shop, variable: Option<(&str, &str)>) -> Server {
    let mut variables = vec![
        ("YICI_REWARD_URL", shop.url.as_str()),
        ("YICI_REWARD_TIMEOUT_MS", "400"),
    ];
    variables.extend(variable);
    Server::start_with(pool, &variables).await
}

async fn reset(pool: &PgPool) {
    sqlx::raw_sql(
        "TRUNCATE idempotency_record, request_arrival, outcome_counter, outbox, redemption, redemption_hold, redemption_call,
                  redemption_probe, points_entry, points_balance",
    )
    .execute(pool)
    .await
    .unwrap();
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
async fn earn(pool: &PgPool, points: i32) {
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
