//! Connections that are lost before, during and after a commit: one effect, and the right answer.

use domain::Bucket;
use engine::{EngineConfig, Pools};
use sqlx::PgPool;

use crate::{
    support::{World, arrival, start_on, submit},
    wire::{Cut, Wire},
};

async fn wired(pool: PgPool) -> (World, Wire) {
    let wire = Wire::new(&pool).await;
    let pools = Pools {
        work: wire.pool.clone(),
        reading: pool.clone(),
    };
    let engine = start_on(pools, EngineConfig::default()).await;
    (World::with_engine(engine, pool).await, wire)
}

async fn one_effect(world: &World) {
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        1
    );
    assert_eq!(
        world
            .count("SELECT sum(balance)::bigint FROM points_balance")
            .await,
        10
    );
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 1);
    assert_eq!(world.counters().await, [("new".to_owned(), 1)]);
    assert_eq!(world.count("SELECT count(*) FROM request_arrival").await, 1);
}

/// Cuts at the bytes, and expects the first answer to be as if nothing had happened.
async fn survives(pool: PgPool, when: Cut, bytes: &str) {
    let (world, wire) = wired(pool).await;
    let task = world.assignment().await;
    wire.cut(when, bytes);
    let answer = submit(&world, arrival("key-on-the-wire", &task, 1, "x"))
        .await
        .unwrap();
    assert!(
        wire.is_cut(),
        "the cut did not happen, so nothing is proved"
    );
    assert_eq!(
        (answer.status, answer.bucket, answer.replayed),
        (201, Bucket::New, false)
    );
    one_effect(&world).await;
    let again = submit(&world, arrival("key-on-the-wire", &task, 1, "x"))
        .await
        .unwrap();
    assert_eq!(
        (again.status, again.bucket, &again.body),
        (201, Bucket::Reused, &answer.body)
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_claim_that_never_reached_postgres_is_made_again(pool: PgPool) {
    survives(pool, Cut::Before, "key-on-the-wire").await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_claim_whose_commit_answer_was_lost_is_known_as_ones_own(pool: PgPool) {
    survives(pool, Cut::After, "key-on-the-wire").await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_finish_that_was_lost_before_its_commit_is_made_again(pool: PgPool) {
    survives(pool, Cut::Before, "COMMIT").await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_finish_whose_commit_answer_was_lost_is_read_back_and_told_as_the_first_answer(
    pool: PgPool,
) {
    survives(pool, Cut::After, "COMMIT").await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_conflict_whose_commit_answer_was_lost_is_still_told_as_a_conflict(pool: PgPool) {
    let (world, wire) = wired(pool).await;
    let task = world.assignment().await;
    submit(&world, arrival("first", &task, 1, "x"))
        .await
        .unwrap();
    wire.cut(Cut::After, "COMMIT");
    let answer = submit(&world, arrival("second", &task, 1, "x"))
        .await
        .unwrap();
    assert!(wire.is_cut());
    assert_eq!(
        (answer.status, answer.bucket, answer.replayed),
        (200, Bucket::ConstraintConflict, false)
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_backend_that_is_terminated_in_the_middle_of_its_effects_is_replaced(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let student = world.actor("student1").await;
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE outbox IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let caller = {
        let (engine, arrival) = (world.engine.clone(), arrival("k1", &task, 1, "x"));
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INTO outbox%'";
    while world.count(terminate).await == 0 {
        tokio::task::yield_now().await;
    }
    lock.commit().await.unwrap();
    let answer = caller.await.unwrap();
    assert_eq!((answer.status, answer.bucket), (201, Bucket::New));
    one_effect(&world).await;
}
