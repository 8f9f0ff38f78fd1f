//! What a client, a load balancer and the panel are told while the front lock's store is away.

use std::{net::TcpListener, time::Duration};

use engine::{EngineConfig, FrontLockConfig, FrontLockOnFailure};
use server::http::limits::Limits;
use sqlx::PgPool;

use crate::support::World;

const TASK: &str = "/api/v1/tasks/1/submissions";
const BODY: &str = r#"{"submit_version":1,"client_id":"phone","content":"my work"}"#;

/// An application whose Redis is not there.
async fn without_redis(pool: PgPool, on_failure: FrontLockOnFailure) -> World {
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let config = EngineConfig {
        front_lock: Some(FrontLockConfig {
            url: format!("redis://:hunter2@127.0.0.1:{port}").into(),
            ttl: Duration::from_secs(5),
            on_failure,
        }),
        ..EngineConfig::default()
    };
    assert!(!format!("{config:?}").contains("hunter2"));
    World::with(pool, Limits::new(None, None), config).await
}

/// Both the panel and the readiness say what holds meanwhile.
async fn says(world: &World, health: &str) {
    let ready = world.get("", "/readyz").await;
    assert_eq!(ready.status, 200, "the database is there");
    assert_eq!(ready.json()["front_lock"], health);
    let panel = world
        .get(&world.token("ops1").await, "/api/v1/panel?window=5m")
        .await;
    assert_eq!(panel.json()["front_lock"], health);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn refused_new_keys_are_told_to_come_again(pool: PgPool) {
    let world = without_redis(pool, FrontLockOnFailure::Refuse).await;
    let token = world.token("student1").await;
    let refused = world.submit(&token, TASK, "k", BODY).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.code(), "front-lock-unavailable");
    assert_eq!(refused.header("retry-after"), Some("2"));
    assert_eq!(refused.header("idempotency-status"), None);
    let accepted = "SELECT count(*) FROM idempotency_record";
    assert_eq!(world.count(accepted).await, 0);
    says(&world, "refusing").await;
    let page = world.get("", "/problems/front-lock-unavailable").await;
    assert_eq!(page.status, 200);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn degraded_submissions_go_on(pool: PgPool) {
    let world = without_redis(pool, FrontLockOnFailure::Degrade).await;
    let token = world.token("student1").await;
    assert_eq!(world.submit(&token, TASK, "k", BODY).await.status, 201);
    says(&world, "degraded").await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn without_a_setting_there_is_none(pool: PgPool) {
    let world = World::new(pool).await;
    assert_eq!(world.get("", "/readyz").await.json()["front_lock"], "off");
}
