//! Connections that are lost before, during and after a commit: one effect, and the right answer.

use std::time::Duration;

use domain::Bucket;
use engine::EngineConfig;
use sqlx::PgPool;

use crate::{
    defences::CLAIMS_WAIT,
    front_lock::submit_slowly,
    support::{World, arrival, in_time, insert_claim, start, submit},
    wire::{Cut, wired},
};

/// What the second look says and the claim does not.
const SECOND_LOOK: &str = "AS won, r.id";

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

/// Cuts at the bytes, and expects the first answer to be as if nothing had happened. Tells how many commits were asked for.
async fn survives(pool: PgPool, when: Cut, bytes: &str) -> usize {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let task = world.assignment().await;
    wire.take_seen();
    wire.cut(when, bytes);
    let answer = submit(&world, arrival("key-on-the-wire", &task, 1, "x"))
        .await
        .unwrap();
    let seen = wire.take_seen();
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
    seen.iter().filter(|text| *text == "COMMIT").count()
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

/// Somebody has cancelled the wait for a standby: the row is there, and maybe nowhere else. Whoever answers on the strength of it
/// has committed for himself after it.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_warning_at_a_commit_counts_as_lost(pool: PgPool) {
    let commits = survives(pool, Cut::Warn, "COMMIT").await;
    assert!(commits >= 2, "answered after {commits} commit");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_winner_that_is_purged_before_the_second_look_is_followed_by_a_new_claim(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let task = world.assignment().await;
    let mut winner = world.pool.begin().await.unwrap();
    insert_claim(&mut winner, "k", &task, "x", 0).await;
    wire.cut(Cut::Hold, SECOND_LOOK);
    let loser = submit_slowly(&world, &world.engine, &task).await;
    world.until(CLAIMS_WAIT, 1).await;
    winner.commit().await.unwrap();
    wire.until_cut().await;
    world.execute("DELETE FROM idempotency_record").await;
    wire.release();
    let loser = loser.await.unwrap();
    assert_eq!((loser.status, loser.bucket), (201, Bucket::New));
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
}

/// Postgres ends a transaction whose owner stands still, and so gives its records back.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_owner_that_stands_still_in_its_transaction_keeps_no_record_locked(pool: PgPool) {
    let config = EngineConfig {
        lease: Duration::from_secs(1),
        ..EngineConfig::default()
    };
    let other = start(&pool, config.clone()).await;
    let (world, wire) = wired(pool, config).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    // The effects' second statement never arrives.
    wire.cut(Cut::Hang, "submission.created");
    let still = submit_slowly(&world, &world.engine, &task).await;
    wire.until_cut().await;
    let taken_over = in_time(async {
        loop {
            let mut retry = arrival("k", &task, 1, "x");
            retry.wait = Duration::from_secs(5);
            // As long as it is locked there is no answer.
            if let Ok(answer) = other.submit(&student, retry).await {
                return answer;
            }
        }
    })
    .await;
    assert_eq!((taken_over.status, taken_over.bucket), (201, Bucket::New));
    assert!(!still.is_finished());
    still.abort();
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
}

/// Whoever sets up a database may have told it not to wait for its disk.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn effects_are_flushed_whatever_the_databases_default_is(pool: PgPool) {
    sqlx::raw_sql(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$;
         CREATE FUNCTION be_flushed() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF current_setting('synchronous_commit') <> 'on' THEN
                 RAISE EXCEPTION 'this commit is not flushed';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER tg_be_flushed BEFORE INSERT ON submission FOR EACH ROW EXECUTE FUNCTION be_flushed()",
    )
    .execute(&pool)
    .await
    .unwrap();
    // New connections take the default over.
    let (world, _wire) = wired(pool, EngineConfig::default()).await;
    let task = world.assignment().await;
    let answer = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    assert_eq!(answer.status, 201);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_conflict_whose_commit_answer_was_lost_is_still_told_as_a_conflict(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
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
    world.until(terminate, 1).await;
    lock.commit().await.unwrap();
    let answer = caller.await.unwrap();
    assert_eq!((answer.status, answer.bucket), (201, Bucket::New));
    one_effect(&world).await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn arrivals_whose_commit_answer_was_lost_are_written_again_and_counted_once(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let task = world.assignment().await;
    submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    let mut replay = arrival("k1", &task, 1, "x");
    replay.client_id = "device-of-the-replay".into();
    // The client's name goes over the wire twice: with the look-up, and when the arrival is recorded.
    wire.cut(Cut::After, "device-of-the-replay");
    submit(&world, replay.clone()).await.unwrap();
    wire.cut(Cut::After, "device-of-the-replay");
    world.engine.flush().await;
    assert!(wire.is_cut());
    let counters = world.counters().await;
    let expected = [("new", 1), ("reused", 1)];
    assert_eq!(counters, expected.map(|(name, n)| (name.to_owned(), n)));
    assert_eq!(world.count("SELECT count(*) FROM request_arrival").await, 2);
}
