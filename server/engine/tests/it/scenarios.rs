//! The test scenarios of the two articles that this is built from, each as a test that bears its name.
//!
//! Those about the Redis lock are here twice: with the front lock, and with what the engine itself relies on, the lease.

use std::time::Duration;

use domain::Bucket;
use sqlx::PgPool;

use crate::{
    front_lock::{behind, hold_up, submit_slowly, suspicions, world},
    redis_server::RedisServer,
    support::{World, arrival, body, start, submit},
};

const ROWS: &str = "SELECT count(*) FROM submission";
const BALANCE: &str = "SELECT sum(balance)::bigint FROM points_balance";

/// Article 1, test 1 (并发测试): two identical keys at once, one execution. Article 2: 两个实例并发处理同一幂等键.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn two_instances_process_the_same_key_at_once(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    let other = world.another_instance().await;
    let mut request = arrival("k", &task, 1, "x");
    request.wait = Duration::from_secs(20);
    let (one, two) = tokio::join!(
        world.engine.submit(&student, request.clone()),
        other.submit(&student, request)
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(body(&one)["id"], body(&two)["id"]);
    let mut buckets = [one.bucket, two.bucket];
    buckets.sort_unstable();
    assert_eq!(buckets, [Bucket::New, Bucket::Reused]);
    assert_eq!(
        (world.count(ROWS).await, world.count(BALANCE).await),
        (1, 10)
    );
}

/// Article 1, test 2 (重试测试), and article 2: 同一幂等键连续提交两次.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_same_key_twice_in_a_row_gets_the_first_result(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let first = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    let second = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    assert_eq!(
        (second.bucket, &second.body, second.status),
        (Bucket::Reused, &first.body, first.status)
    );
    assert_eq!(
        (world.count(ROWS).await, world.count(BALANCE).await),
        (1, 10)
    );
}

/// Article 1, test 3 (超时测试), and article 2: 客户端超时但后端已成功.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_client_timed_out_but_the_server_had_succeeded(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    let caller = {
        let (engine, arrival) = (world.engine.clone(), arrival("k", &task, 1, "x"));
        tokio::spawn(async move { engine.submit(&student, arrival).await })
    };
    // The caller gives up while the server works; the work goes on.
    world
        .until("SELECT count(*) FROM idempotency_record", 1)
        .await;
    caller.abort();
    world
        .until(
            "SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'",
            1,
        )
        .await;
    // The row is there a moment before the process has heard of its commit.
    let mut retry = arrival("k", &task, 1, "x");
    retry.wait = Duration::from_secs(10);
    let retry = submit(&world, retry).await.unwrap();
    assert_eq!(
        (retry.status, retry.bucket, retry.replayed),
        (201, Bucket::Reused, true)
    );
    assert_eq!(
        (world.count(ROWS).await, world.count(BALANCE).await),
        (1, 10)
    );
}

/// Article 1, test 4 (崩溃恢复测试), and article 2: 幂等记录长期 PROCESSING.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_record_that_stays_processing_is_seen_as_stuck_and_recovered(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    let stuck = domain::view::RecordFilter {
        stuck: Some(true),
        ..Default::default()
    };
    let seen = world.engine.list_records(&stuck).await.unwrap().unwrap();
    assert_eq!(
        seen.records
            .iter()
            .map(|r| r.key.as_str())
            .collect::<Vec<_>>(),
        ["k"]
    );
    let panel = world
        .engine
        .panel(domain::view::Window::OneHour)
        .await
        .unwrap();
    assert_eq!((panel.gauges.stuck, panel.gauges.processing), (1, 1));
    assert!(panel.gauges.oldest_stuck_seconds >= 600);
    world.engine.scan_once().await.unwrap();
    assert_eq!(
        world
            .engine
            .list_records(&stuck)
            .await
            .unwrap()
            .unwrap()
            .records,
        []
    );
    assert_eq!(
        world
            .engine
            .panel(domain::view::Window::OneHour)
            .await
            .unwrap()
            .gauges
            .stuck,
        0
    );
    assert_eq!(
        (world.count(ROWS).await, world.count(BALANCE).await),
        (1, 10)
    );
}

/// Article 2: 应用在提交后崩溃. The business row is there, the record never heard of it.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_application_crashed_after_it_had_written(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    world.write_behind(&task, 1, "x").await;
    let retry = submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    assert_eq!((retry.status, retry.bucket), (200, Bucket::Reused));
    assert_eq!(
        (world.count(ROWS).await, world.count(BALANCE).await),
        (1, 10)
    );
}

/// Article 2: 数据库唯一冲突. The constraint stops a writer that goes past everything else.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_unique_constraint_stops_a_second_business_row(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    let error = sqlx::query("INSERT INTO submission (task_id, student_id, submit_version, content) SELECT task_id, student_id, submit_version, 'y' FROM submission")
        .execute(&world.pool)
        .await
        .unwrap_err();
    assert_eq!(
        error.as_database_error().unwrap().constraint(),
        Some("uk_task_student_version")
    );
    assert_eq!(world.count(ROWS).await, 1);
}

/// Article 2: 同一业务不同 requestId.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_same_business_under_another_key(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    submit(&world, arrival("phone", &task, 1, "x"))
        .await
        .unwrap();
    let same = submit(&world, arrival("tablet", &task, 1, "x"))
        .await
        .unwrap();
    let other = submit(&world, arrival("laptop", &task, 1, "y"))
        .await
        .unwrap();
    assert_eq!((same.status, other.status), (200, 409));
    assert_eq!(
        (same.bucket, other.bucket),
        (Bucket::ConstraintConflict, Bucket::ConstraintConflict)
    );
    assert_eq!(world.count(ROWS).await, 1);
    // Where the business permits many, the attempt's number makes each an intent of its own.
    for attempt in 1..=2 {
        let key = format!("attempt {attempt}");
        assert_eq!(
            submit(&world, arrival(&key, &practice, attempt, "x"))
                .await
                .unwrap()
                .status,
            201
        );
    }
}

/// Article 2: 业务执行超过 Redis TTL. The lock is free again while its work runs, another instance takes it, and the record
/// stops it.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_redis_locks_ttl_runs_out_while_the_work_runs(pool: PgPool) {
    let redis = RedisServer::start().await;
    // Redis stands still for longer than the lock lives, so no renewal arrives in time.
    let ttl = Duration::from_millis(300);
    let world = world(pool, &redis, ttl).await;
    let task = world.assignment().await;
    let work = hold_up(&world).await;
    let slow = submit_slowly(&world, &world.engine, &task).await;
    let name = redis.lock().await;
    world
        .until("SELECT count(*) FROM idempotency_record", 1)
        .await;
    redis.pause();
    tokio::time::sleep(ttl * 2).await;
    redis.resume();
    assert!(!redis.run::<bool>(&format!("EXISTS {name}")).await);

    let other = start(&world.pool, behind(&redis, ttl)).await;
    let second = submit_slowly(&world, &other, &task).await.await.unwrap();
    assert_eq!((second.status, second.bucket), (202, Bucket::Processing));
    work.commit().await.unwrap();
    assert_eq!(slow.await.unwrap().status, 201);
    redis.until_free().await;
    world.engine.stop(Duration::from_secs(20)).await;
    assert_eq!(suspicions(&world, &world.engine).await, (1, 0));
    assert_eq!(world.count(BALANCE).await, 10);
}

/// Article 2: 旧请求恢复后释放锁. What it would release is somebody else's by now, and stays.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_old_request_that_recovers_does_not_release_the_new_ones_lock(pool: PgPool) {
    let redis = RedisServer::start().await;
    let ttl = Duration::from_secs(60);
    let world = world(pool, &redis, ttl).await;
    let task = world.assignment().await;
    let work = hold_up(&world).await;
    let old = submit_slowly(&world, &world.engine, &task).await;
    let name = redis.lock().await;
    redis.run::<()>(&format!("DEL {name}")).await;
    redis
        .run::<()>(&format!("SET {name} new NX PX 60000"))
        .await;
    work.commit().await.unwrap();
    assert_eq!(old.await.unwrap().status, 201);
    world.engine.stop(Duration::from_secs(20)).await;
    assert_eq!(redis.run::<String>(&format!("GET {name}")).await, "new");
    assert_eq!(suspicions(&world, &world.engine).await, (1, 1));
}

/// Article 2: Redis 暂时不可用. Killed while the work runs: two instances go on with Postgres, and nothing is done twice.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn redis_is_down_for_a_while(pool: PgPool) {
    let mut redis = RedisServer::start().await;
    let ttl = Duration::from_secs(60);
    let world = world(pool, &redis, ttl).await;
    let other = start(&world.pool, behind(&redis, ttl)).await;
    let task = world.assignment().await;
    let work = hold_up(&world).await;
    let slow = submit_slowly(&world, &world.engine, &task).await;
    redis.lock().await;
    world
        .until("SELECT count(*) FROM idempotency_record", 1)
        .await;
    redis.kill();
    let second = submit_slowly(&world, &other, &task).await.await.unwrap();
    assert_eq!((second.status, second.bucket), (202, Bucket::Processing));
    work.commit().await.unwrap();
    assert_eq!(slow.await.unwrap().status, 201);
    let third = submit_slowly(&world, &other, &task).await.await.unwrap();
    assert_eq!((third.status, third.bucket), (201, Bucket::Reused));
    assert_eq!(
        (world.count(ROWS).await, world.count(BALANCE).await),
        (1, 10)
    );
}

/// The same, told of the protection that this engine has: the lease.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_work_takes_longer_than_its_lease(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    let other = world.another_instance().await;
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let slow = {
        let (engine, student, arrival) = (
            world.engine.clone(),
            student.clone(),
            arrival("k", &task, 1, "x"),
        );
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    world
        .until("SELECT count(*) FROM idempotency_record", 1)
        .await;
    sqlx::query("UPDATE idempotency_record SET lease_until = clock_timestamp()")
        .execute(&world.pool)
        .await
        .unwrap();
    let quick = {
        let mut arrival = arrival("k", &task, 1, "x");
        arrival.wait = Duration::from_secs(20);
        tokio::spawn(async move { other.submit(&student, arrival).await.unwrap() })
    };
    world
        .until("SELECT count(*) FROM idempotency_record WHERE epoch > 1", 1)
        .await;
    lock.commit().await.unwrap();
    let (slow, quick) = (slow.await.unwrap(), quick.await.unwrap());
    assert_eq!(quick.status, 201);
    assert!([201, 202].contains(&slow.status), "{slow:?}");
    assert_eq!(
        (world.count(ROWS).await, world.count(BALANCE).await),
        (1, 10)
    );
}

/// The same, told of the epoch: what the old owner would end is not the new owner's claim.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_old_owner_that_wakes_up_harms_nobody(pool: PgPool) {
    let world = World::new(pool).await;
    let (task, student) = (world.assignment().await, world.actor("student1").await);
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let old = {
        let (engine, arrival) = (world.engine.clone(), arrival("k", &task, 1, "x"));
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    world
        .until("SELECT count(*) FROM idempotency_record", 1)
        .await;
    // A new owner holds the claim now, and still works.
    let taken = "UPDATE idempotency_record SET epoch = 3, attempt = 2, version = 3, claim_token = gen_random_uuid(),
                 lease_until = clock_timestamp() + interval '1 hour'";
    sqlx::query(taken).execute(&world.pool).await.unwrap();
    lock.commit().await.unwrap();
    assert_eq!(old.await.unwrap().bucket, Bucket::Processing);
    let claim = "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING' AND epoch = 3 AND lease_until > now()";
    assert_eq!(
        world.count(claim).await,
        1,
        "the new owner's claim is as it was"
    );
    assert_eq!(world.count(ROWS).await, 0);
}
