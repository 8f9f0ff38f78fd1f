//! The front lock with a real Redis: what it spares, and that whatever becomes of it changes no outcome.

use std::time::{Duration, Instant};

use domain::{
    Bucket, Defence,
    view::{FrontLockHealth, Window},
};
use engine::{Answer, Engine, EngineConfig, FrontLockConfig, FrontLockOnFailure, SubmitError};
use sqlx::{PgPool, Postgres, Transaction};
use tokio::task::JoinHandle;

use crate::{
    redis_server::RedisServer,
    support::{World, arrival, body, start, submit},
};

const ROWS: &str = "SELECT count(*) FROM submission";
const LIVE: &str = "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'";
const BY_FRONT_LOCK: &str = "SELECT count(*) FROM request_arrival WHERE defence = 'front_lock'";
/// Longer than any test may hold Redis up.
const LONG: Duration = Duration::from_secs(60);
/// Half of what a submission takes that waits for a silent Redis.
const HALF_A_TIMEOUT: Duration = Duration::from_millis(100);

/// The settings of an instance with a front lock.
pub(crate) fn behind(redis: &RedisServer, ttl: Duration) -> EngineConfig {
    config(redis, ttl, FrontLockOnFailure::Degrade)
}

fn config(redis: &RedisServer, ttl: Duration, on_failure: FrontLockOnFailure) -> EngineConfig {
    EngineConfig {
        front_lock: Some(FrontLockConfig {
            url: redis.url().into(),
            ttl,
            on_failure,
        }),
        ..EngineConfig::default()
    }
}

/// A first instance with a front lock.
pub(crate) async fn world(pool: PgPool, redis: &RedisServer, ttl: Duration) -> World {
    let engine = start(&pool, behind(redis, ttl)).await;
    World::with_engine(engine, pool).await
}

/// Lets no execution end until this is committed.
pub(crate) async fn hold_up(world: &World) -> Transaction<'static, Postgres> {
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    lock
}

/// Submits in the background.
pub(crate) async fn submit_slowly(
    world: &World,
    engine: &Engine,
    task: &str,
) -> JoinHandle<Answer> {
    let (engine, arrival) = (engine.clone(), arrival("k", task, 1, "x"));
    let student = world.actor("student1").await;
    tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
}

/// How often the two suspicions were counted.
pub(crate) async fn suspicions(world: &World, engine: &Engine) -> (i64, i64) {
    engine.flush().await;
    let totals = engine.panel(Window::OneHour).await.unwrap().totals;
    assert_eq!(world.count(ROWS).await, 1, "and one row");
    (
        totals.front_lock_expired_suspected,
        totals.front_lock_release_mismatch,
    )
}

async fn until_health(engine: &Engine, health: FrontLockHealth) {
    let reached = async {
        while engine.front_lock_health() != health {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, reached).await.unwrap();
    assert_eq!(
        engine.panel(Window::FiveMinutes).await.unwrap().front_lock,
        health
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_loser_of_the_lock_is_answered_by_the_record(pool: PgPool) {
    let redis = RedisServer::start().await;
    let world = world(pool, &redis, LONG).await;
    let other = start(&world.pool, behind(&redis, LONG)).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    let lock = hold_up(&world).await;
    let winner = submit_slowly(&world, &world.engine, &task).await;
    world.until(LIVE, 1).await;

    let same = other
        .submit(&student, arrival("k", &task, 1, "x"))
        .await
        .unwrap();
    let changed = other
        .submit(&student, arrival("k", &task, 1, "y"))
        .await
        .unwrap();
    assert_eq!((same.status, same.bucket), (202, Bucket::Processing));
    assert_eq!((changed.status, changed.bucket), (422, Bucket::Mismatch));
    let mut patient = arrival("k", &task, 1, "x");
    patient.wait = LONG;
    let patient = {
        let (other, student) = (other.clone(), student.clone());
        tokio::spawn(async move { other.submit(&student, patient).await.unwrap() })
    };
    // Another subject's lock is another lock.
    let stranger = world.actor("student2").await;
    let strange = {
        let (other, arrival) = (other.clone(), arrival("k", &task, 1, "x"));
        tokio::spawn(async move { other.submit(&stranger, arrival).await.unwrap() })
    };
    world.until(LIVE, 2).await;
    lock.commit().await.unwrap();
    let (winner, patient) = (winner.await.unwrap(), patient.await.unwrap());
    assert_eq!((winner.status, patient.status), (201, 201));
    assert_eq!(body(&winner)["id"], body(&patient)["id"]);
    assert_eq!(strange.await.unwrap().bucket, Bucket::New);
    other.flush().await;
    assert_eq!(world.count(BY_FRONT_LOCK).await, 3);
    assert_eq!(Defence::FrontLock.as_ref(), "front_lock");
    redis.until_free().await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_lock_whose_holder_died_holds_nobody_up(pool: PgPool) {
    let redis = RedisServer::start().await;
    let world = world(pool, &redis, LONG).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    let held = hold_up(&world).await;
    let first = submit_slowly(&world, &world.engine, &task).await;
    let name = redis.lock().await;
    held.commit().await.unwrap();
    first.await.unwrap();
    redis.until_free().await;

    // Died before it claimed: no record, and a lock for a minute.
    sqlx::query("DELETE FROM idempotency_record")
        .execute(&world.pool)
        .await
        .unwrap();
    redis.run::<()>(&format!("SET {name} dead PX 60000")).await;
    let retry = submit(&world, arrival("k", &practice, 1, "x"))
        .await
        .unwrap();
    assert_eq!((retry.status, retry.bucket), (201, Bucket::New));

    // Died after it claimed: a record whose lease is over.
    sqlx::query("DELETE FROM idempotency_record")
        .execute(&world.pool)
        .await
        .unwrap();
    world.leave_dead_claim("k", &task, "x").await;
    let retry = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    assert_eq!(retry.status, 200, "verified at once: the row is there");
    assert_eq!(redis.run::<String>(&format!("GET {name}")).await, "dead");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_lock_is_renewed_while_its_work_runs(pool: PgPool) {
    let redis = RedisServer::start().await;
    let ttl = Duration::from_millis(400);
    let world = world(pool, &redis, ttl).await;
    let task = world.assignment().await;
    let held = hold_up(&world).await;
    let slow = submit_slowly(&world, &world.engine, &task).await;
    let name = redis.lock().await;
    let token: String = redis.run(&format!("GET {name}")).await;
    let begun = Instant::now();
    while begun.elapsed() < ttl * 4 {
        assert_eq!(redis.run::<String>(&format!("GET {name}")).await, token);
        tokio::time::sleep(ttl / 20).await;
    }
    held.commit().await.unwrap();
    assert_eq!(slow.await.unwrap().status, 201);
    redis.until_free().await;
    assert_eq!(suspicions(&world, &world.engine).await, (0, 0));
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_flush_in_the_middle_changes_nothing_but_a_counter(pool: PgPool) {
    let redis = RedisServer::start().await;
    let world = world(pool, &redis, LONG).await;
    let other = start(&world.pool, behind(&redis, LONG)).await;
    let task = world.assignment().await;
    let held = hold_up(&world).await;
    let slow = submit_slowly(&world, &world.engine, &task).await;
    redis.lock().await;
    world.until(LIVE, 1).await;
    redis.run::<()>("FLUSHALL").await;
    redis.run::<()>("SCRIPT FLUSH").await;
    let second = submit_slowly(&world, &other, &task).await.await.unwrap();
    assert_eq!(second.bucket, Bucket::Processing);
    held.commit().await.unwrap();
    assert_eq!(slow.await.unwrap().status, 201);
    redis.until_free().await;
    world.engine.stop(LONG).await;
    assert_eq!(suspicions(&world, &world.engine).await, (1, 0));
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_silent_redis_costs_one_time_out_and_is_noticed_when_it_answers_again(pool: PgPool) {
    let redis = RedisServer::start().await;
    let world = world(pool, &redis, LONG).await;
    let practice = world.practice().await;
    redis.pause();
    let mut begun = Instant::now();
    for attempt in 1..=21 {
        let key = format!("attempt {attempt}");
        let answer = submit(&world, arrival(&key, &practice, attempt, "x"))
            .await
            .unwrap();
        assert_eq!(answer.status, 201);
        if attempt == 1 {
            assert_eq!(world.engine.front_lock_health(), FrontLockHealth::Degraded);
            begun = Instant::now();
        }
    }
    let rest = begun.elapsed();
    assert!(
        rest < HALF_A_TIMEOUT * 20,
        "they waited for Redis: {rest:?}"
    );
    until_health(&world.engine, FrontLockHealth::Degraded).await;
    redis.resume();
    until_health(&world.engine, FrontLockHealth::Ok).await;
    assert_eq!(world.count(ROWS).await, 21);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_redis_that_takes_no_writes_is_away(pool: PgPool) {
    let redis = RedisServer::start().await;
    let world = world(pool, &redis, LONG).await;
    let practice = world.practice().await;
    let mut attempt = 0;
    // Out of memory; a replica, as after a failover; paused by an operator.
    for (broken, mended) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
        ("CLIENT PAUSE 60000 WRITE", "CLIENT UNPAUSE"),
    ] {
        until_health(&world.engine, FrontLockHealth::Ok).await;
        redis.run::<()>(broken).await;
        attempt += 1;
        let answer = submit(&world, arrival(broken, &practice, attempt, "x"))
            .await
            .unwrap();
        assert_eq!(answer.status, 201, "{broken}");
        until_health(&world.engine, FrontLockHealth::Degraded).await;
        redis.run::<()>(mended).await;
    }
    until_health(&world.engine, FrontLockHealth::Ok).await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn where_it_is_set_to_refuse_only_new_keys_are_refused(pool: PgPool) {
    let mut redis = RedisServer::start().await;
    let refusing = config(&redis, LONG, FrontLockOnFailure::Refuse);
    let engine = start(&pool, refusing).await;
    let world = World::with_engine(engine, pool).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    let first = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    redis.kill();

    let again = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    assert_eq!((&again.body, again.replayed), (&first.body, true));
    let changed = submit(&world, arrival("k", &task, 1, "y")).await.unwrap();
    assert_eq!(changed.bucket, Bucket::Mismatch);
    let refused = submit(&world, arrival("new", &practice, 1, "x")).await;
    assert!(matches!(refused, Err(SubmitError::FrontLockUnavailable)));
    let accepted = "SELECT count(*) FROM idempotency_record WHERE idem_key = 'new'";
    assert_eq!(world.count(accepted).await, 0);
    until_health(&world.engine, FrontLockHealth::Refusing).await;

    redis.start_again().await;
    until_health(&world.engine, FrontLockHealth::Ok).await;
    let taken = submit(&world, arrival("new", &practice, 1, "x"))
        .await
        .unwrap();
    assert_eq!(taken.status, 201);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_redis_that_is_not_there_at_the_start_is_found_later(pool: PgPool) {
    let mut redis = RedisServer::start().await;
    redis.kill();
    let world = world(pool, &redis, LONG).await;
    assert_eq!(world.engine.front_lock_health(), FrontLockHealth::Degraded);
    let task = world.assignment().await;
    let first = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    assert_eq!(first.status, 201);
    redis.start_again().await;
    until_health(&world.engine, FrontLockHealth::Ok).await;
}
