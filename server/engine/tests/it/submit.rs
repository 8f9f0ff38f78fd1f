//! The rows of the outcome table that need no failure.

use std::{sync::Arc, time::Duration};

use domain::{Bucket, Defence};
use engine::Answer;
use sqlx::PgPool;

use crate::support::{World, arrival, body, code, submit};

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_first_arrival_has_all_its_effects_once(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let answer = submit(&world, arrival("k1", &task, 1, "my work"))
        .await
        .unwrap();
    assert_eq!(
        (answer.status, answer.bucket, answer.replayed),
        (201, Bucket::New, false)
    );
    let row = body(&answer);
    assert_eq!(row["content"], "my work");
    assert_eq!(
        answer.location.as_deref(),
        Some(format!("/api/v1/submissions/{}", row["id"].as_str().unwrap()).as_str())
    );
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    assert_eq!(
        world.count("SELECT sum(amount) FROM points_entry").await,
        10
    );
    assert_eq!(
        world
            .count("SELECT sum(balance)::bigint FROM points_balance")
            .await,
        10
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM outbox WHERE delivered_at IS NULL")
            .await,
        1
    );
    assert_eq!(world.counters().await, [("new".to_owned(), 1)]);
    let state: (String, i32, i64, i64) =
        sqlx::query_as("SELECT state, attempt, epoch, version FROM idempotency_record")
            .fetch_one(&world.pool)
            .await
            .unwrap();
    assert_eq!(state, ("SUCCEEDED".into(), 1, 1, 2));
    let decided = "SELECT count(*) FROM request_arrival WHERE outcome = 'new' AND defence = 'none' AND duration_ms >= 0";
    assert_eq!(world.count(decided).await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_repeated_key_gets_the_first_answer_to_the_byte(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let first = submit(&world, arrival("k1", &task, 1, "my work"))
        .await
        .unwrap();
    let again = submit(&world, arrival("k1", &task, 1, "my work"))
        .await
        .unwrap();
    assert_eq!(
        again,
        Answer {
            bucket: Bucket::Reused,
            defence: Defence::Record,
            replayed: true,
            ..first
        }
    );
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    assert_eq!(
        world.counters().await,
        [("new".to_owned(), 1), ("reused".to_owned(), 1)]
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM request_arrival WHERE defence = 'record'")
            .await,
        1
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_key_with_another_request_is_refused_and_changes_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    submit(&world, arrival("k1", &task, 1, "my work"))
        .await
        .unwrap();
    let other = submit(&world, arrival("k1", &task, 1, "other work"))
        .await
        .unwrap();
    assert_eq!(
        (other.status, other.bucket, code(&other).as_str()),
        (422, Bucket::Mismatch, "key-reused")
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM submission WHERE content = 'my work'")
            .await,
        1
    );
    assert_eq!(
        world.counters().await,
        [("mismatch".to_owned(), 1), ("new".to_owned(), 1)]
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM request_arrival WHERE NOT same_content")
            .await,
        1
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn another_key_with_the_same_content_gets_the_existing_submission(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let first = submit(&world, arrival("phone", &task, 1, "my work"))
        .await
        .unwrap();
    let other = submit(&world, arrival("tablet", &task, 1, "my work"))
        .await
        .unwrap();
    assert_eq!(
        (other.status, other.bucket),
        (200, Bucket::ConstraintConflict)
    );
    assert_eq!(
        (&other.body, &other.location),
        (&first.body, &first.location)
    );
    let again = submit(&world, arrival("tablet", &task, 1, "my work"))
        .await
        .unwrap();
    assert_eq!(
        again,
        Answer {
            bucket: Bucket::Reused,
            defence: Defence::Record,
            replayed: true,
            ..other
        }
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM idempotency_record WHERE state = 'SUCCEEDED'")
            .await,
        2
    );
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
async fn another_key_with_other_content_is_told_which_submission_exists(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let first = submit(&world, arrival("phone", &task, 1, "my work"))
        .await
        .unwrap();
    let other = submit(&world, arrival("tablet", &task, 1, "other work"))
        .await
        .unwrap();
    assert_eq!(
        (other.status, other.bucket),
        (409, Bucket::ConstraintConflict)
    );
    assert_eq!(code(&other), "already-submitted");
    assert_eq!(
        body(&other)["submission"].as_str(),
        first.location.as_deref()
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM idempotency_record WHERE state = 'FAILED_FINAL'")
            .await,
        1
    );
    assert_eq!(
        world.counters().await,
        [
            ("constraint_conflict".to_owned(), 1),
            ("failed_final".to_owned(), 1),
            ("new".to_owned(), 1)
        ]
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_refusal_by_a_rule_is_stored_and_replayed(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    for (key, task, version, status, expected) in [
        ("no-task", "999999", 1, 404, "task-not-assigned"),
        ("version", task.as_str(), 2, 409, "version-not-current"),
    ] {
        let first = submit(&world, arrival(key, task, version, "x"))
            .await
            .unwrap();
        assert_eq!(
            (first.status, first.bucket, code(&first).as_str()),
            (status, Bucket::New, expected)
        );
        let again = submit(&world, arrival(key, task, version, "x"))
            .await
            .unwrap();
        assert_eq!(
            again,
            Answer {
                bucket: Bucket::Reused,
                defence: Defence::Record,
                replayed: true,
                ..first
            }
        );
    }
    sqlx::query("UPDATE task SET closes_at = now() - interval '1 second'")
        .execute(&world.pool)
        .await
        .unwrap();
    let closed = submit(&world, arrival("closed", &task, 1, "x"))
        .await
        .unwrap();
    assert_eq!(
        (closed.status, code(&closed).as_str()),
        (409, "task-closed")
    );
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM outbox").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM points_entry").await, 0);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_key_belongs_to_one_account(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    for name in ["student1", "student2"] {
        let answer = world
            .engine
            .submit(&world.actor(name).await, arrival("same", &task, 1, "x"))
            .await
            .unwrap();
        assert_eq!((answer.status, answer.bucket), (201, Bucket::New), "{name}");
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn practice_takes_one_submission_for_each_attempt(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.practice().await;
    for attempt in 1..=3 {
        let key = format!("attempt-{attempt}");
        assert_eq!(
            submit(&world, arrival(&key, &task, attempt, "words"))
                .await
                .unwrap()
                .status,
            201
        );
    }
    let used = submit(&world, arrival("late device", &task, 2, "other words"))
        .await
        .unwrap();
    assert_eq!(
        (used.status, used.bucket),
        (409, Bucket::ConstraintConflict)
    );
    let ahead = submit(&world, arrival("too far", &task, 9, "words"))
        .await
        .unwrap();
    assert_eq!(
        (ahead.status, code(&ahead).as_str()),
        (409, "version-not-current")
    );
    assert_eq!(
        world
            .count("SELECT sum(balance)::bigint FROM points_balance")
            .await,
        30
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn twenty_identical_requests_at_two_instances_have_one_effect(pool: PgPool) {
    let world = Arc::new(World::new(pool).await);
    let task = world.assignment().await;
    let student = world.actor("student1").await;
    let engines = [world.engine.clone(), world.another_instance().await];
    let requests = (0..20).map(|n| {
        let (engine, student) = (engines[n % 2].clone(), student.clone());
        let mut arrival = arrival("k1", &task, 1, "my work");
        arrival.wait = Duration::from_secs(if n % 3 == 0 { 10 } else { 0 });
        tokio::spawn(async move { (n % 3 == 0, engine.submit(&student, arrival).await.unwrap()) })
    });
    let mut buckets = std::collections::BTreeMap::new();
    for answer in futures::future::join_all(requests).await {
        let (waited, answer) = answer.unwrap();
        if waited {
            assert_eq!(
                answer.status, 201,
                "whoever waits gets the result: {answer:?}"
            );
        }
        *buckets.entry(answer.bucket.to_string()).or_insert(0_i64) += 1;
    }
    assert_eq!(buckets.get("new"), Some(&1));
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    engines[1].flush().await;
    // What the callers were told is what was counted.
    assert_eq!(world.counters().await, Vec::from_iter(buckets));
    assert_eq!(
        world
            .count("SELECT count(*) FROM request_arrival WHERE outcome IS NOT NULL")
            .await,
        20
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_set_of_different_requests_ends_each_in_its_own_way(pool: PgPool) {
    let world = Arc::new(World::new(pool).await);
    let (task, practice) = (world.assignment().await, world.practice().await);
    let student = world.actor("student1").await;
    let arrivals = [
        arrival("good", &task, 1, "x"),
        arrival("same tuple, same content", &task, 1, "x"),
        arrival("practice", &practice, 1, "x"),
        arrival("no such task", "424242", 1, "x"),
        arrival("bad version", &task, 7, "x"),
    ];
    // The lock holds up the first set, so that all others are gathered behind it.
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE outbox IN SHARE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let requests = arrivals.map(|arrival| {
        let (engine, student) = (world.engine.clone(), student.clone());
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    });
    world
        .until("SELECT count(*) FROM idempotency_record", 5)
        .await;
    lock.commit().await.unwrap();
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(request.await.unwrap().status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 201, 201, 404, 409]);
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 2);
    assert_eq!(world.count("SELECT balance FROM points_balance").await, 20);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_caller_that_goes_away_does_not_stop_the_work(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let student = world.actor("student1").await;
    // Held up by a lock, the execution is certainly still running when the caller goes.
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN SHARE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let caller = {
        let (engine, arrival) = (world.engine.clone(), arrival("k1", &task, 1, "x"));
        tokio::spawn(async move { engine.submit(&student, arrival).await })
    };
    let claimed = "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'";
    world.until(claimed, 1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    let during = submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    assert_eq!((during.status, during.bucket), (202, Bucket::Processing));
    lock.commit().await.unwrap();
    world.engine.stop(Duration::from_secs(10)).await;
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    let counted = world.counters().await;
    let expected = [("new", 1), ("processing", 1), ("timeout_after_success", 1)];
    assert_eq!(counted, expected.map(|(name, n)| (name.to_owned(), n)));
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn whoever_waits_at_another_instance_gets_the_result_though_others_there_do_not_wait(
    pool: PgPool,
) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let student = world.actor("student1").await;
    let other = world.another_instance().await;
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submission IN EXCLUSIVE MODE")
        .execute(&mut *lock)
        .await
        .unwrap();
    let ask = |engine: &engine::Engine, wait: u64| {
        let (engine, student) = (engine.clone(), student.clone());
        let mut arrival = arrival("k1", &task, 1, "x");
        arrival.wait = Duration::from_secs(wait);
        tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
    };
    let first = ask(&world.engine, 0);
    world
        .until("SELECT count(*) FROM idempotency_record", 1)
        .await;
    // At the other instance one leads and one joins it, in whatever order; both meet somebody else's execution.
    let patient = [ask(&other, 20), ask(&other, 20), ask(&other, 20)];
    let hasty = [ask(&other, 0), ask(&other, 0)];
    for answer in hasty {
        assert_eq!(answer.await.unwrap().status, 202);
    }
    lock.commit().await.unwrap();
    let first = first.await.unwrap();
    for answer in patient {
        let answer = answer.await.unwrap();
        assert_eq!(
            (answer.status, answer.bucket, &answer.body),
            (201, Bucket::Reused, &first.body)
        );
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn crossed_sets_of_two_instances_neither_deadlock_nor_double_anything(pool: PgPool) {
    let world = World::new(pool).await;
    let practice = world.practice().await;
    let engines = [world.engine.clone(), world.another_instance().await];
    let students = [
        world.actor("student1").await,
        world.actor("student2").await,
        world.actor("student3").await,
    ];
    for attempt in 1..=8 {
        // Both instances get every business tuple, under keys of their own and in opposite orders.
        let requests = (0..2).flat_map(|instance| {
            let order: Vec<usize> = if instance == 0 {
                vec![0, 1, 2]
            } else {
                vec![2, 1, 0]
            };
            order.into_iter().map(move |student| (instance, student))
        });
        let running = requests.map(|(instance, student)| {
            let (engine, actor) = (engines[instance].clone(), students[student].clone());
            let arrival = arrival(&format!("{instance}-{attempt}"), &practice, attempt, "x");
            tokio::spawn(async move { engine.submit(&actor, arrival).await.unwrap().status })
        });
        let mut statuses = Vec::new();
        for request in running.collect::<Vec<_>>() {
            statuses.push(request.await.unwrap());
        }
        statuses.sort_unstable();
        assert_eq!(
            statuses,
            [200, 200, 200, 201, 201, 201],
            "attempt {attempt}"
        );
    }
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 24);
    assert_eq!(
        world
            .count("SELECT count(*) FROM points_balance WHERE balance = 80")
            .await,
        3
    );
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(world.count(deadlocks).await, 0);
}

/// Without the statement's own time for the arrival, whatever delays the statement would move it behind the claim.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_arrival_is_never_later_than_its_own_claim_however_slow_the_statement(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    for slow in [
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END'",
        "CREATE TRIGGER slow BEFORE INSERT ON idempotency_record FOR EACH ROW EXECUTE FUNCTION slow()",
    ] {
        sqlx::query(slow).execute(&world.pool).await.unwrap();
    }
    submit(&world, arrival("k1", &task, 1, "x")).await.unwrap();
    let in_order =
        "SELECT count(*) FROM request_arrival a JOIN idempotency_record r ON r.id = a.record_id
                    WHERE a.arrived_at <= r.claimed_at";
    assert_eq!(world.count(in_order).await, 1);
}
