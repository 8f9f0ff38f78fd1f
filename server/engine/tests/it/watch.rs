//! What is read to be watched, and that a claim becomes stuck once.

use std::sync::Arc;

use domain::RecordState;
use sqlx::PgPool;
use tokio::sync::Barrier;

use crate::support::{World, arrival, submit};

const TWO: [&str; 2] = ["k1", "k2"];

/// Leaves two claims that are alive and stuck: the scanner counts them and must not touch them.
async fn leave_stuck_owners(world: &World) {
    let task = world.assignment().await;
    for key in TWO {
        world.leave_dead_claim(key, &task, "x").await;
    }
    sqlx::query("UPDATE idempotency_record SET lease_until = now() + interval '1 hour'")
        .execute(&world.pool)
        .await
        .unwrap();
}

async fn became_stuck(world: &World) -> i64 {
    let watched = world.engine.watched().await.unwrap();
    watched.became_stuck.iter().map(|(_, n)| n).sum()
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_claim_becomes_stuck_once_however_often_and_by_how_many_instances_it_is_seen(
    pool: PgPool,
) {
    let world = World::new(pool).await;
    leave_stuck_owners(&world).await;
    assert_eq!(became_stuck(&world).await, 0);
    let together = Arc::new(Barrier::new(4));
    let mut scans = Vec::new();
    for _ in 0..4 {
        let (engine, together) = (world.another_instance().await, together.clone());
        scans.push(tokio::spawn(async move {
            together.wait().await;
            engine.scan_once().await.unwrap();
            engine.scan_once().await.unwrap()
        }));
    }
    for scan in scans {
        assert_eq!(scan.await.unwrap(), 0, "their owners are alive");
    }
    assert_eq!(became_stuck(&world).await, 2);
    assert_eq!(
        world
            .count(
                "SELECT count(*) FROM idempotency_record WHERE version = 1 AND state = 'PROCESSING'"
            )
            .await,
        2,
        "counting makes nobody's page stale"
    );
    // A later claim of the same record is another one.
    sqlx::query("UPDATE idempotency_record SET claimed_at = claimed_at + interval '1 minute' WHERE idem_key = 'k1'")
        .execute(&world.pool)
        .await
        .unwrap();
    world.engine.scan_once().await.unwrap();
    world.engine.scan_once().await.unwrap();
    assert_eq!(became_stuck(&world).await, 3);
    // What is purged stays counted.
    sqlx::query("DELETE FROM idempotency_record")
        .execute(&world.pool)
        .await
        .unwrap();
    assert_eq!(became_stuck(&world).await, 3);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_is_watched_is_what_stands_in_the_tables(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    for key in ["a", "a", "b"] {
        submit(&world, arrival(key, &practice, 1, "x"))
            .await
            .unwrap();
    }
    world.leave_dead_claim("k1", &task, "x").await;
    world.engine.flush().await;
    let watched = world.engine.watched().await.unwrap();
    let counter = |name: &str| {
        let rows = watched.counters.iter();
        rows.filter(|(action, of, _)| action == "task_submit" && of == name)
            .map(|row| row.2)
            .sum::<i64>()
    };
    assert_eq!(
        (
            counter("new"),
            counter("reused"),
            counter("constraint_conflict")
        ),
        (1, 1, 1)
    );
    let [unfinished] = &watched.unfinished[..] else {
        panic!("{watched:?}")
    };
    assert_eq!(unfinished.state, RecordState::Processing);
    assert_eq!((unfinished.records, unfinished.stuck), (1, 1));
    assert!((595.0..900.0).contains(&unfinished.oldest_seconds));
    assert_eq!((watched.queues.undelivered, watched.queues.dead), (1, 0));
    let finished = world.engine.count_finished().await.unwrap();
    assert_eq!(
        finished,
        [("task_submit".into(), RecordState::Succeeded, 2)]
    );
}
