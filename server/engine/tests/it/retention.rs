//! For how long what is finished is kept, and what is never purged.

use std::time::Duration;

use domain::{IdempotencyKey, compensation::CompensationAction};
use engine::{BulkTarget, EngineConfig};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{
    compensate::{ask, find, requester},
    support::{World, arrival, in_time, start, submit},
};

const RECORDS: &str = "SELECT count(*) FROM idempotency_record";

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_is_finished_is_kept_for_as_long_as_is_set_from_its_end_on(pool: PgPool) {
    let config = EngineConfig {
        retention: Duration::from_secs(7 * 3600),
        ..EngineConfig::default()
    };
    let world = World::with_engine(start(&pool, config).await, pool).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    world.leave_dead_claim("verified", &practice, "x").await;
    world.write_behind(&practice, 1, "x").await;
    world
        .leave_dead_claim("failed by a person", &task, "x")
        .await;
    for (key, task, version) in [
        ("done", &task, 1),
        ("refused", &task, 9),
        ("verified", &practice, 1),
    ] {
        submit(&world, arrival(key, task, version, "x"))
            .await
            .unwrap();
    }
    let admin = requester(&world, "admin1").await;
    world
        .execute("DELETE FROM submission WHERE record_id = (SELECT id FROM idempotency_record WHERE idem_key = 'done')")
        .await;
    let record = find(&world, "failed by a person").await;
    world
        .engine
        .compensate(&admin, ask(&record, CompensationAction::Fail))
        .await
        .unwrap();
    let kept = "SELECT count(*) FROM idempotency_record
                WHERE state IN ('SUCCEEDED', 'FAILED_FINAL') AND round(extract(epoch FROM expires_at - updated_at)) = 7 * 3600";
    assert_eq!(world.count(kept).await, 4);
    world
        .execute("UPDATE outbox SET delivered_at = now()")
        .await;
    world.engine.purge_once().await.unwrap();
    assert_eq!(world.count(kept).await, 4);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_a_running_bulk_still_has_to_do_is_kept(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    world
        .execute("UPDATE idempotency_record SET state = 'FAILED_RETRYABLE', lease_until = NULL, expires_at = now()")
        .await;
    let (id, _) = find(&world, "k").await;
    let admin = requester(&world, "admin1").await;
    let target = BulkTarget::Ids(vec![id.to_string()]);
    let key = IdempotencyKey::from_text("b").unwrap();
    world
        .engine
        .start_bulk(&admin, target, CompensationAction::Verify, "outage", &key)
        .await
        .unwrap();
    world.engine.purge_once().await.unwrap();
    assert_eq!(world.count(RECORDS).await, 1);
    let stopping = CancellationToken::new();
    assert!(world.engine.run_bulk_once(&stopping).await.unwrap());
    world.engine.purge_once().await.unwrap();
    assert_eq!(world.count(RECORDS).await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_purge_takes_a_small_set_and_waits_for_nobody(pool: PgPool) {
    let world = World::new(pool).await;
    world
        .execute(
            "INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id, claim_token,
                                             owner_instance, response_status, response_body, expires_at)
             SELECT 1, 'task_submit', 'k' || n, 'SUCCEEDED', decode(repeat('00', 32), 'hex'), '{}', 'trace', gen_random_uuid(), 0,
                    201, '{}', now() - make_interval(secs => 1000 - n)
             FROM generate_series(1, 600) AS n",
        )
        .await;
    let mut busy = world.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM idempotency_record WHERE idem_key = 'k1' FOR UPDATE")
        .execute(&mut *busy)
        .await
        .unwrap();
    for left in [100, 1] {
        in_time(world.engine.purge_once()).await.unwrap();
        assert_eq!(world.count(RECORDS).await, left);
    }
    busy.commit().await.unwrap();
    world.engine.purge_once().await.unwrap();
    assert_eq!(world.count(RECORDS).await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn nothing_that_outlives_a_record_refers_to_it(pool: PgPool) {
    let refers = "SELECT string_agg(conrelid::regclass || '.' || conname, ', ') FROM pg_constraint
                  WHERE contype = 'f' AND confrelid = 'idempotency_record'::regclass";
    let refers: Option<String> = sqlx::query_scalar(refers).fetch_one(&pool).await.unwrap();
    assert_eq!(refers, None);
}
