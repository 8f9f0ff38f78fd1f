//! Mechanisms that something behind them makes up for, so that no outcome tells whether they are there: what they do is looked at
//! itself.

use std::time::Duration;

use domain::Bucket;
use engine::EngineConfig;
use sqlx::PgPool;

use crate::{
    front_lock::{hold_up, submit_slowly},
    support::{World, arrival, in_time, insert_claim, start, submit},
    wire::{Cut, wired},
};

/// Claims that wait for somebody else's. What Postgres shows of a statement is its first 1024 bytes.
pub(crate) const CLAIMS_WAIT: &str = "SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'WITH input AS %idem_key%'";

/// Verifications that wait for a record's lock.
const LOCKS_WAIT: &str = "SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE'";

/// How a finish begins, and nothing else.
pub(crate) const FINISH_BEGINS: &str = "idle_in_transaction_session_timeout";

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
    in_time(async {
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
    })
    .await;
    held.commit().await.unwrap();
    assert_eq!(owner.await.unwrap().status, 201);
}

/// Without `ON CONFLICT` the loser's set would be aborted, which is made up for by repeating it.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_loser_of_a_race_for_a_claim_looks_once_more_and_meets_no_error(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    submit(&world, arrival("warm", &practice, 1, "x"))
        .await
        .unwrap();
    world.engine.flush().await;
    wire.take_seen();

    let mut winner = world.pool.begin().await.unwrap();
    insert_claim(&mut winner, "k", &task, "x", 0).await;
    let loser = submit_slowly(&world, &world.engine, &task).await;
    world.until(CLAIMS_WAIT, 1).await;
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

/// Nobody's connection is taken while he waits, and Postgres is asked nothing.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn whoever_joins_an_execution_asks_the_database_nothing(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    wire.cut(Cut::Hold, FINISH_BEGINS);
    let first = submit_slowly(&world, &world.engine, &task).await;
    wire.until_cut().await;
    wire.take_seen();
    let duplicates: Vec<_> = (0..40)
        .map(|_| {
            let (engine, student) = (world.engine.clone(), student.clone());
            let mut arrival = arrival("k", &task, 1, "x");
            arrival.wait = Duration::from_secs(20);
            tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
        })
        .collect();
    // Whatever they ask for is on its way when these have come back.
    for _ in 0..3 {
        world.count("SELECT 1::bigint").await;
    }
    assert_eq!(wire.take_seen(), Vec::<String>::new());
    assert_eq!(wire.pool.size() as usize - wire.pool.num_idle(), 1);
    wire.release();
    assert_eq!(first.await.unwrap().status, 201);
    for duplicate in duplicates {
        let answer = duplicate.await.unwrap();
        assert_eq!((answer.status, answer.bucket), (201, Bucket::Reused));
    }
    world.engine.flush().await;
    let joined = "SELECT count(*) FROM request_arrival WHERE defence = 'in_flight'";
    assert_eq!(world.count(joined).await, 40);
}

/// What hangs here past its lease may have been done elsewhere long ago: whoever waits for it asks the database then.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn whoever_joined_an_execution_that_hangs_is_not_held_longer_than_its_lease(pool: PgPool) {
    let config = EngineConfig {
        lease: Duration::from_secs(2),
        ..EngineConfig::default()
    };
    let other = start(&pool, config.clone()).await;
    let (world, wire) = wired(pool, config).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    // The finish never reaches Postgres, and its connection never breaks.
    wire.cut(Cut::Hang, FINISH_BEGINS);
    let hanging = submit_slowly(&world, &world.engine, &task).await;
    wire.until_cut().await;
    let mut patient = arrival("k", &task, 1, "x");
    patient.wait = Duration::from_secs(60);
    let joined = {
        let (engine, student) = (world.engine.clone(), student.clone());
        tokio::spawn(async move { engine.submit(&student, patient).await.unwrap() })
    };
    // Another instance takes over before this one trusts itself no more, or it would do so itself.
    world
        .execute("UPDATE idempotency_record SET lease_until = clock_timestamp()")
        .await;
    let elsewhere = submit_slowly(&world, &other, &task).await.await.unwrap();
    assert_eq!((elsewhere.status, elsewhere.bucket), (201, Bucket::New));
    let joined = joined.await.unwrap();
    assert_eq!((joined.status, &joined.body), (201, &elsewhere.body));
    assert!(!hanging.is_finished());
    hanging.abort();
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
}

/// A verification that did not wait would look before the owner's commit and decide after it.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_verification_waits_for_an_owner_that_is_just_committing(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    // The owner is behind its guard and has written its effect.
    let mut owner = world.pool.begin().await.unwrap();
    for effect in [
        "SELECT FROM idempotency_record FOR UPDATE",
        "INSERT INTO submission (task_id, student_id, submit_version, content, record_id, epoch)
         SELECT (request ->> 'task_id')::bigint, subject_id, 1, 'x', id, epoch FROM idempotency_record",
    ] {
        sqlx::query(effect).execute(&mut *owner).await.unwrap();
    }
    let retry = submit_slowly(&world, &world.engine, &task).await;
    world.until(LOCKS_WAIT, 1).await;
    owner.commit().await.unwrap();
    let retry = retry.await.unwrap();
    // Its own work is what is found; without waiting it would be run again, and be a conflict.
    assert_eq!((retry.status, retry.bucket), (201, Bucket::Reused));
    assert_eq!(
        world
            .count("SELECT attempt::bigint FROM idempotency_record")
            .await,
        1
    );
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
                AND query LIKE 'WITH ended AS %'";
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

/// Between a look at an expired lease and the lock somebody may have taken over, and works.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_verification_leaves_alone_what_was_taken_over_while_it_waited(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    let mut taking = world.pool.begin().await.unwrap();
    sqlx::query(
        "UPDATE idempotency_record SET epoch = 3, version = 4, attempt = 2, claim_token = gen_random_uuid(),
                                       lease_until = clock_timestamp() + interval '1 hour'",
    )
    .execute(&mut *taking)
    .await
    .unwrap();
    let retry = submit_slowly(&world, &world.engine, &task).await;
    world.until(LOCKS_WAIT, 1).await;
    taking.commit().await.unwrap();
    let retry = retry.await.unwrap();
    assert_eq!((retry.status, retry.bucket), (202, Bucket::Processing));
    let untouched = "SELECT count(*) FROM idempotency_record WHERE epoch = 3 AND version = 4";
    assert_eq!(world.count(untouched).await, 1);
}
