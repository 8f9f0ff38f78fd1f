//! The scanner: whose turn it is, for how long it tries, and by what time it judges.

use sqlx::PgPool;

use crate::support::{World, arrival, submit};

const SUCCEEDED: &str = "SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'";

/// More than one scan takes, of an action that no process knows any more: nobody can end them.
async fn leave_hopeless(world: &World) {
    world
        .execute(
            "INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id, claim_token,
                                             owner_instance, claimed_at, lease_until, scan_after)
             SELECT 1, 'gone', 'hopeless ' || n, 'PROCESSING', decode(repeat('00', 32), 'hex'), '{}', 'trace', gen_random_uuid(), 0,
                    now() - interval '10 minutes', now() - interval '9 minutes', now() - interval '9 minutes'
             FROM generate_series(1, 60) AS n",
        )
        .await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn hopeless_records_do_not_starve_the_others(pool: PgPool) {
    let world = World::new(pool).await;
    leave_hopeless(&world).await;
    world
        .leave_dead_claim("k", &world.assignment().await, "x")
        .await;
    let full = world.engine.scan_once().await.unwrap();
    assert!(full < 60, "the test needs more than one scan takes");
    assert_eq!(world.count(SUCCEEDED).await, 0, "its turn comes later");
    // What was in vain has its next turn later, and so the others have theirs.
    assert_eq!(world.engine.scan_once().await.unwrap(), 61 - full);
    assert_eq!(world.count(SUCCEEDED).await, 1);
    assert_eq!(world.engine.scan_once().await.unwrap(), 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn records_are_taken_in_the_order_of_their_turns_whatever_their_age(pool: PgPool) {
    let world = World::new(pool).await;
    leave_hopeless(&world).await;
    world
        .leave_dead_claim("k", &world.assignment().await, "x")
        .await;
    world
        .execute("UPDATE idempotency_record SET scan_after = now() - interval '1 hour' WHERE idem_key = 'k'")
        .await;
    world.engine.scan_once().await.unwrap();
    assert_eq!(world.count(SUCCEEDED).await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_failed_too_often_waits_for_its_caller(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    world
        .execute("UPDATE idempotency_record SET state = 'FAILED_RETRYABLE', lease_until = NULL, scan_attempts = 16")
        .await;
    assert_eq!(world.engine.scan_once().await.unwrap(), 0);
    let answer = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    assert_eq!(answer.status, 201);
}

/// Midnight does not punish a crash.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_deadline_is_judged_at_the_time_of_the_arrival(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    world.leave_dead_claim("scanned", &task, "x").await;
    world.leave_dead_claim("retried", &practice, "x").await;
    world
        .execute(
            "UPDATE task SET closes_at = (SELECT max(created_at) FROM idempotency_record) + interval '1 microsecond'",
        )
        .await;
    let retried = submit(&world, arrival("retried", &practice, 1, "x"))
        .await
        .unwrap();
    assert_eq!(retried.status, 201);
    world.engine.scan_once().await.unwrap();
    assert_eq!(world.count(SUCCEEDED).await, 2);
    let late = submit(&world, arrival("late", &practice, 2, "x"))
        .await
        .unwrap();
    assert_eq!(late.status, 409);
}
