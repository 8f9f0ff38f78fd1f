//! Executions that did not end: leases, fencing, verification, take-over, the scanner, and the purge.

use domain::Bucket;
use engine::Answer;
use sqlx::PgPool;

use crate::support::{World, arrival, body, submit};

async fn record(world: &World, key: &str) -> (String, i32, i64, i64) {
    sqlx::query_as(
        "SELECT state, attempt, epoch, version FROM idempotency_record WHERE idem_key = $1",
    )
    .bind(key)
    .fetch_one(&world.pool)
    .await
    .unwrap()
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_retry_that_meets_an_expired_lease_verifies_runs_and_answers_at_once(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k1", &task, "x").await;
    let answer = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!((answer.status, answer.bucket), (201, Bucket::New));
    // Claimed, fenced, taken over: three epochs.
    assert_eq!(record(&world, "k1").await, ("SUCCEEDED".into(), 2, 3, 4));
    assert_eq!(
        world
            .count("SELECT count(*) FROM submission WHERE epoch = 3")
            .await,
        1
    );
    assert_eq!(
        world
            .count("SELECT sum(balance)::bigint FROM points_balance")
            .await,
        10
    );
    // The effect is new once: for the arrival that executed it.
    let counters = world.counters().await;
    let expected = [("failed_retryable", 1), ("new", 1), ("reused", 1)];
    assert_eq!(counters, expected.map(|(name, n)| (name.to_owned(), n)));
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_retry_after_a_crash_finds_what_another_writer_left_and_completes_it(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k1", &task, "x").await;
    world.write_behind(&task, 1, "x").await;
    let answer = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!((answer.status, answer.bucket), (200, Bucket::Reused));
    assert_eq!(body(&answer)["content"], "x");
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    assert_eq!(
        world
            .count("SELECT sum(balance)::bigint FROM points_balance")
            .await,
        10
    );
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_row_written_by_plain_sql_is_honoured_and_gets_its_points_once(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.write_behind(&task, 1, "x").await;
    for key in ["phone", "tablet"] {
        let answer = submit(&world, arrival(key, &task, 1, "x")).await.unwrap();
        assert_eq!(
            (answer.status, answer.bucket),
            (200, Bucket::ConstraintConflict),
            "{key}"
        );
    }
    let other = submit(&world, arrival("laptop", &task, 1, "y"))
        .await
        .unwrap();
    assert_eq!(
        (other.status, other.bucket),
        (409, Bucket::ConstraintConflict)
    );
    assert_eq!(
        world
            .count("SELECT sum(balance)::bigint FROM points_balance")
            .await,
        10
    );
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_crashed_claim_whose_place_another_content_took_ends_as_a_conflict(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k1", &task, "x").await;
    world.write_behind(&task, 1, "other").await;
    let answer = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!(
        (answer.status, answer.bucket),
        (409, Bucket::ConstraintConflict)
    );
    assert_eq!(record(&world, "k1").await.0, "FAILED_FINAL");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_live_lease_is_left_alone(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k1", &task, "x").await;
    sqlx::query("UPDATE idempotency_record SET lease_until = now() + interval '1 hour'")
        .execute(&world.pool)
        .await
        .unwrap();
    let answer = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!((answer.status, answer.bucket), (202, Bucket::Processing));
    assert_eq!(world.engine.scan_once().await.unwrap(), 0);
    assert_eq!(record(&world, "k1").await, ("PROCESSING".into(), 1, 1, 1));
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_scanner_ends_what_nobody_retries_and_a_second_scan_changes_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k1", &task, "x").await;
    assert_eq!(world.engine.scan_once().await.unwrap(), 1);
    assert_eq!(record(&world, "k1").await, ("SUCCEEDED".into(), 2, 3, 4));
    let before: (String,) =
        sqlx::query_as("SELECT md5(string_agg(r::text, '')) FROM idempotency_record r")
            .fetch_one(&world.pool)
            .await
            .unwrap();
    assert_eq!(world.engine.scan_once().await.unwrap(), 0);
    let after: (String,) =
        sqlx::query_as("SELECT md5(string_agg(r::text, '')) FROM idempotency_record r")
            .fetch_one(&world.pool)
            .await
            .unwrap();
    assert_eq!(before, after);
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    let counters = world.counters().await;
    assert!(
        counters.contains(&("compensated".to_owned(), 1)),
        "{counters:?}"
    );
    // The student who comes back gets the answer.
    let answer = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!((answer.status, answer.bucket), (201, Bucket::Reused));
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn two_scanners_at_once_end_each_record_once(pool: PgPool) {
    let world = World::new(pool).await;
    let practice = world.practice().await;
    for n in 0..20 {
        world
            .leave_dead_claim(&format!("k{n}"), &practice, "x")
            .await;
    }
    let other = world.another_instance().await;
    let (one, two) = tokio::join!(world.engine.scan_once(), other.scan_once());
    assert_eq!(one.unwrap() + two.unwrap(), 20);
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    assert_eq!(
        world
            .count("SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'")
            .await,
        20
    );
    assert_eq!(
        world
            .count("SELECT sum(balance)::bigint FROM points_balance")
            .await,
        10
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn late_owner_cannot_finish_after_takeover(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let student = world.actor("student1").await;
    // The owner's statement waits for this lock before it can lock the record: it stands between its claim and its guard.
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let owner = {
        let (engine, arrival) = (world.engine.clone(), arrival("k1", &task, 1, "x"));
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    world
        .until(
            "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'",
            1,
        )
        .await;
    // Meanwhile somebody fenced it: the owner's guard finds nothing.
    sqlx::query("UPDATE idempotency_record SET epoch = epoch + 1, version = version + 1, lease_until = now() + interval '1 hour'")
        .execute(&world.pool)
        .await
        .unwrap();
    lock.commit().await.unwrap();
    let answer: Answer = owner.await.unwrap();
    assert_eq!((answer.status, answer.bucket), (202, Bucket::Processing));
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 0);
    assert_eq!(
        world
            .count("SELECT count(*) FROM request_arrival WHERE outcome = 'processing'")
            .await,
        1
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_fenced_owner_whose_work_was_verified_as_not_done_does_it_under_a_new_epoch(
    pool: PgPool,
) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let student = world.actor("student1").await;
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let owner = {
        let (engine, arrival) = (world.engine.clone(), arrival("k1", &task, 1, "x"));
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    world
        .until(
            "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'",
            1,
        )
        .await;
    sqlx::query(
        "UPDATE idempotency_record SET state = 'FAILED_RETRYABLE', epoch = epoch + 1, version = version + 1, lease_until = NULL",
    )
    .execute(&world.pool)
    .await
    .unwrap();
    lock.commit().await.unwrap();
    let answer: Answer = owner.await.unwrap();
    assert_eq!((answer.status, answer.bucket), (201, Bucket::New));
    assert_eq!(record(&world, "k1").await, ("SUCCEEDED".into(), 2, 3, 4));
    assert_eq!(
        world
            .count("SELECT count(*) FROM request_arrival WHERE outcome = 'new'")
            .await,
        1
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_expired_record_is_purged_and_the_constraint_answers_then(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    world.leave_dead_claim("unfinished", &task, "x").await;
    world.engine.purge_once().await.unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        2,
        "nothing has expired"
    );
    sqlx::query("UPDATE idempotency_record SET expires_at = now() WHERE state = 'SUCCEEDED'")
        .execute(&world.pool)
        .await
        .unwrap();
    world.engine.purge_once().await.unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        2,
        "its message is not delivered yet"
    );
    sqlx::query("UPDATE outbox SET delivered_at = now()")
        .execute(&world.pool)
        .await
        .unwrap();
    world.engine.purge_once().await.unwrap();
    assert_eq!(
        world
            .count("SELECT count(*) FROM idempotency_record WHERE idem_key = 'unfinished'")
            .await,
        1
    );
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        1
    );
    let same = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!(
        (same.status, same.bucket),
        (200, Bucket::ConstraintConflict)
    );
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    // Arrivals outlive their record.
    assert_eq!(
        world
            .count("SELECT count(*) FROM request_arrival WHERE outcome = 'new'")
            .await,
        1
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_failure_that_passes_is_told_and_the_same_key_runs_again(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    // Longer than all tries: every finish gives up on the lock of the table of messages.
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE outbox IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let failed = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!(
        (failed.status, failed.bucket, failed.retry_after),
        (503, Bucket::New, Some(1))
    );
    assert_eq!(body(&failed)["code"], "temporary-failure");
    assert_eq!(
        record(&world, "k1").await,
        ("FAILED_RETRYABLE".into(), 1, 1, 2)
    );
    lock.rollback().await.unwrap();
    let again = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!(
        (again.status, again.bucket, again.replayed),
        (201, Bucket::New, false)
    );
    assert_eq!(record(&world, "k1").await, ("SUCCEEDED".into(), 2, 2, 4));
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    let counters = world.counters().await;
    let expected = [("failed_retryable", 1), ("new", 2)];
    assert_eq!(counters, expected.map(|(name, n)| (name.to_owned(), n)));
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_claim_that_a_crash_of_postgres_forgot_does_not_finish_the_key_that_got_its_number(
    pool: PgPool,
) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let student = world.actor("student1").await;
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let owner = {
        let (engine, arrival) = (world.engine.clone(), arrival("k1", &task, 1, "mine"));
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    world.until("SELECT count(*) FROM request_arrival", 1).await;
    // As after the crash: the claim and its arrival are gone, and another key's claim has the same number and epoch.
    sqlx::raw_sql(
        "DELETE FROM request_arrival;
         UPDATE idempotency_record SET idem_key = 'k2', claim_token = gen_random_uuid(), subject_id = 2",
    )
    .execute(&world.pool)
    .await
    .unwrap();
    lock.commit().await.unwrap();
    let answer: Answer = owner.await.unwrap();
    assert_eq!((answer.status, answer.bucket), (201, Bucket::New));
    assert_eq!(body(&answer)["student_id"], "1");
    assert_eq!(record(&world, "k2").await, ("PROCESSING".into(), 1, 1, 1));
    assert_eq!(record(&world, "k1").await.0, "SUCCEEDED");
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
}
