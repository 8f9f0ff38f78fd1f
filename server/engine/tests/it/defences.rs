//! Mechanisms that something behind them makes up for, so that no outcome tells whether they are there: what they do is looked at
//! itself.

use std::time::Duration;

use domain::{Bucket, Fingerprint, action::TASK_SUBMIT};
use engine::{EngineConfig, Pools};
use serde_json::json;
use sqlx::PgPool;

use crate::{
    front_lock::{hold_up, submit_slowly},
    support::{World, arrival, start, start_on, submit},
    wire::{Cut, Wire},
};

/// Without the lock a verification could fence an owner in the middle of its effects, which the finish would have to undo.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn effects_keep_their_record_locked_until_they_are_committed(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    let mut held = world.pool.begin().await.unwrap();
    // The effects have begun when they come here.
    sqlx::query("LOCK TABLE points_entry IN EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    let owner = {
        let (engine, arrival) = (world.engine.clone(), arrival("k", &task, 1, "x"));
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    let inside = "SELECT count(*) FROM pg_locks
                  WHERE relation = 'points_entry'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                    AND NOT granted";
    let free = "SELECT count(*) FROM (SELECT FROM idempotency_record FOR UPDATE SKIP LOCKED) free";
    loop {
        // An owner that waits too long lets go and begins again, so it must have been inside before and after.
        if world.count(inside).await == 1 {
            let free = world.count(free).await;
            if world.count(inside).await == 1 {
                assert_eq!(free, 0);
                break;
            }
        }
    }
    held.commit().await.unwrap();
    assert_eq!(owner.await.unwrap().status, 201);
}

/// Without `ON CONFLICT` the loser's set would be aborted, and without the second look it would find nothing; both are made up for
/// by repeating it.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_loser_of_a_race_for_a_claim_looks_once_more_and_meets_no_error(pool: PgPool) {
    let wire = Wire::new(&pool).await;
    let pools = Pools {
        work: wire.pool.clone(),
        reading: pool.clone(),
    };
    let engine = start_on(pools, EngineConfig::default()).await;
    let world = World::with_engine(engine, pool).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    let student = world.actor("student1").await;
    submit(&world, arrival("warm", &practice, 1, "x"))
        .await
        .unwrap();
    world.engine.flush().await;
    wire.take_seen();

    let command = json!({ "task_id": task, "submit_version": 1, "content": "x" });
    let fingerprint = Fingerprint::of(TASK_SUBMIT, &command).unwrap();
    let mut winner = world.pool.begin().await.unwrap();
    sqlx::query(
        "INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id, claim_token,
                                         owner_instance, lease_until)
         VALUES ($1, 'task_submit', 'k', 'PROCESSING', $2, $3, 'trace', gen_random_uuid(), 0, now() + interval '1 hour')",
    )
    .bind(student.id)
    .bind(fingerprint.as_bytes().as_slice())
    .bind(command)
    .execute(&mut *winner)
    .await
    .unwrap();
    let loser = {
        let (engine, arrival) = (world.engine.clone(), arrival("k", &task, 1, "x"));
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    let waits = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%uk_idem_key%'";
    world.until(waits, 1).await;
    winner.commit().await.unwrap();
    assert_eq!(loser.await.unwrap().bucket, Bucket::Processing);
    // The claim and the second look; the arrival is written behind the answer.
    let seen = wire.take_seen();
    assert_eq!(seen[..2], ["execute", "execute"], "{seen:?}");
    assert!(
        seen.len() <= 3 && !seen.contains(&"error".to_owned()),
        "{seen:?}"
    );
}

/// A record that was set back by hand, after half of what its submission brings was lost: the other half is not doubled.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_repair_adds_what_is_missing_and_doubles_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let first = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    for lose in [
        "DELETE FROM outbox",
        "WITH lost AS (DELETE FROM points_entry) DELETE FROM points_balance",
    ] {
        sqlx::query(lose).execute(&world.pool).await.unwrap();
        sqlx::query(
            "UPDATE idempotency_record
             SET state = 'PROCESSING', lease_until = clock_timestamp(), response_status = NULL, response_body = NULL,
                 response_location = NULL, expires_at = NULL",
        )
        .execute(&world.pool)
        .await
        .unwrap();
        let mut retry = arrival("k", &task, 1, "x");
        retry.wait = Duration::from_secs(20);
        let retry = submit(&world, retry).await.unwrap();
        assert_eq!((retry.status, &retry.location), (201, &first.location));
        for (sql, expected) in [
            ("SELECT count(*) FROM submission", 1),
            ("SELECT count(*) FROM outbox", 1),
            ("SELECT sum(amount)::bigint FROM points_entry", 10),
            ("SELECT sum(balance)::bigint FROM points_balance", 10),
        ] {
            assert_eq!(world.count(sql).await, expected, "after {lose}: {sql}");
        }
    }
}

/// The record would say the same a moment later; while it is still being made, only the flight can.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn another_request_under_the_key_is_refused_while_the_first_still_runs_here(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    let held = hold_up(&world).await;
    let first = submit_slowly(&world, &world.engine, &task).await;
    world
        .until("SELECT count(*) FROM idempotency_record", 1)
        .await;
    let same = arrival("k", &task, 1, "x");
    let same = world.engine.submit(&student, same).await.unwrap();
    assert_eq!((same.status, same.bucket), (202, Bucket::Processing));
    let mut other = arrival("k", &task, 1, "y");
    other.wait = Duration::from_secs(60);
    let other = world.engine.submit(&student, other).await.unwrap();
    assert_eq!((other.status, other.bucket), (422, Bucket::Mismatch));
    held.commit().await.unwrap();
    assert_eq!(first.await.unwrap().status, 201);
    world.engine.flush().await;
    let refused = "SELECT count(*) FROM request_arrival WHERE outcome = 'mismatch' AND defence = 'in_flight' AND NOT same_content";
    assert_eq!(world.count(refused).await, 1);
}

/// What hangs here past its lease may have been done elsewhere long ago: whoever waits for it asks the database then.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn whoever_joined_an_execution_that_hangs_is_not_held_longer_than_its_lease(pool: PgPool) {
    let wire = Wire::new(&pool).await;
    let pools = Pools {
        work: wire.pool.clone(),
        reading: pool.clone(),
    };
    let config = EngineConfig {
        lease: Duration::from_secs(1),
        ..EngineConfig::default()
    };
    let world = World::with_engine(start_on(pools, config).await, pool).await;
    let task = world.assignment().await;
    // The finish never reaches Postgres, and its connection never breaks.
    wire.cut(Cut::Hang, "idle_in_transaction_session_timeout");
    let hanging = submit_slowly(&world, &world.engine, &task).await;
    while !wire.is_cut() {
        tokio::task::yield_now().await;
    }
    let mut patient = arrival("k", &task, 1, "x");
    patient.wait = Duration::from_secs(60);
    let patient = submit(&world, patient).await.unwrap();
    assert_eq!((patient.status, patient.bucket), (201, Bucket::New));
    assert!(!hanging.is_finished());
    hanging.abort();
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
}

/// A verification that did not wait would look before the owner's commit and decide after it.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_verification_waits_for_an_owner_that_is_just_committing(pool: PgPool) {
    let config = EngineConfig {
        lease: Duration::from_secs(1),
        ..EngineConfig::default()
    };
    let other = start(&pool, config.clone()).await;
    let world = World::with_engine(start(&pool, config).await, pool).await;
    let task = world.assignment().await;
    let mut held = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE points_entry IN EXCLUSIVE MODE")
        .execute(&mut *held)
        .await
        .unwrap();
    let owner = submit_slowly(&world, &world.engine, &task).await;
    world
        .until(
            "SELECT count(*) FROM idempotency_record WHERE lease_until <= clock_timestamp()",
            1,
        )
        .await;
    let retry = submit_slowly(&world, &other, &task).await;
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                 AND query LIKE '%idempotency_record%' AND query NOT LIKE '%points_entry%' AND query NOT LIKE '%guard%'";
    world.until(waits, 1).await;
    held.commit().await.unwrap();
    let (owner, retry) = (owner.await.unwrap(), retry.await.unwrap());
    assert_eq!(retry.status, 201);
    // An owner whose patience with the lock ends just now was overtaken instead.
    assert!([201, 202].contains(&owner.status), "{owner:?}");
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
}

/// A second owner would fence the first one, whose work would be for nothing.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn of_two_who_take_a_record_over_at_the_same_moment_one_does(pool: PgPool) {
    let world = World::new(pool).await;
    let other = world.another_instance().await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    sqlx::query("UPDATE idempotency_record SET state = 'FAILED_RETRYABLE', lease_until = NULL")
        .execute(&world.pool)
        .await
        .unwrap();
    let mut held = world.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM idempotency_record FOR UPDATE")
        .execute(&mut *held)
        .await
        .unwrap();
    let one = submit_slowly(&world, &world.engine, &task).await;
    let two = submit_slowly(&world, &other, &task).await;
    let wait = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                AND query LIKE '%past_claim%'";
    world.until(wait, 2).await;
    held.commit().await.unwrap();
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    for answer in [&one, &two] {
        assert!([201, 202].contains(&answer.status), "{answer:?}");
    }
    world
        .until(
            "SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'",
            1,
        )
        .await;
    assert_eq!(
        world
            .count("SELECT attempt::bigint FROM idempotency_record")
            .await,
        2
    );
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
}
