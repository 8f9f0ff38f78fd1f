//! Compensations that meet each other, the scanner, or the owner of the record.

use domain::compensation::{CompensationAction as Action, CompensationStatus as Status};
use sqlx::PgPool;

use super::{ask, find, requester, state};
use crate::support::{World, arrival, submit};

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn of_two_admins_at_the_same_moment_one_acts_and_the_other_is_told(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let (first, second) = (
        requester(&world, "admin1").await,
        requester(&world, "admin2").await,
    );
    let other_instance = world.another_instance().await;
    for n in 0..10 {
        let key = format!("k{n}");
        world
            .leave_dead_claim(&key, &task, &format!("work {n}"))
            .await;
        let record = find(&world, &key).await;
        let (one, two) = tokio::join!(
            world
                .engine
                .compensate(&first, ask(&record, Action::Release)),
            other_instance.compensate(&second, ask(&record, Action::Fail)),
        );
        let statuses = [one, two].map(|answer| answer.unwrap().compensation.status);
        assert!(
            statuses == [Status::Applied, Status::Refused]
                || statuses == [Status::Refused, Status::Applied],
            "{statuses:?}"
        );
        let end = if statuses[0] == Status::Applied {
            "FAILED_RETRYABLE"
        } else {
            "FAILED_FINAL"
        };
        assert_eq!(state(&world, &key).await, end);
    }
    assert_eq!(
        world
            .count("SELECT count(*) FROM compensation_log WHERE event = 'applied'")
            .await,
        10
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_scanner_and_an_admin_at_once_leave_one_effect_and_one_end(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let admin = requester(&world, "admin1").await;
    let scanner = world.another_instance().await;
    for n in 0..10 {
        let key = format!("k{n}");
        sqlx::raw_sql("TRUNCATE submission, points_entry, points_balance, outbox")
            .execute(&world.pool)
            .await
            .unwrap();
        world.leave_dead_claim(&key, &task, "x").await;
        let record = find(&world, &key).await;
        let (scanned, answer) = tokio::join!(
            scanner.scan_once(),
            world
                .engine
                .compensate(&admin, ask(&record, Action::ReExecute))
        );
        scanned.unwrap();
        answer.unwrap();
        // Whoever came second may have been refused, or have left it to the other's execution.
        scanner.scan_once().await.unwrap();
        assert_eq!(state(&world, &key).await, "SUCCEEDED");
        assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
        assert_eq!(
            world
                .count("SELECT sum(balance)::bigint FROM points_balance")
                .await,
            10
        );
    }
    // Counted once for each line in the log, whoever was first.
    let applied = world
        .count("SELECT count(*) FROM compensation_log WHERE event = 'applied'")
        .await;
    assert!(
        world
            .counters()
            .await
            .contains(&("compensated".into(), applied))
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_owner_that_wakes_up_in_the_middle_of_a_compensation_writes_nothing(pool: PgPool) {
    for action in [Action::Release, Action::ReExecute, Action::Fail] {
        let world = World::new(pool.clone()).await;
        let task = world.assignment().await;
        sqlx::raw_sql(
            "TRUNCATE submission, points_entry, points_balance, outbox, idempotency_record",
        )
        .execute(&world.pool)
        .await
        .unwrap();
        let admin = requester(&world, "admin1").await;
        // The owner has claimed and waits in front of its guard; the compensation waits behind the same lock.
        let mut gate = world.pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE submission IN ACCESS EXCLUSIVE MODE")
            .execute(&mut *gate)
            .await
            .unwrap();
        let owner = submit(&world, arrival("k1", &task, 1, "x"));
        let meanwhile = async {
            world
                .until(
                    "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'",
                    1,
                )
                .await;
            let record = find(&world, "k1").await;
            let live = world.engine.compensate(&admin, ask(&record, action)).await;
            // While its lease lives, nobody touches it, unless its own finish holds the lock first.
            if let Ok(answer) = &live {
                assert_eq!(
                    answer.compensation.refusal.as_deref(),
                    Some("stale"),
                    "{action}"
                );
            }
            gate.commit().await.unwrap();
        };
        let (owner, ()) = tokio::join!(owner, meanwhile);
        assert_eq!(owner.unwrap().status, 201, "{action}");
        assert_eq!(state(&world, "k1").await, "SUCCEEDED");
        let record = find(&world, "k1").await;
        let late = world
            .engine
            .compensate(&admin, ask(&record, action))
            .await
            .unwrap();
        assert_eq!(
            late.compensation.refusal.as_deref(),
            Some("already-terminal")
        );
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_late_owner_cannot_win_over_a_compensation(pool: PgPool) {
    for (action, end, rows) in [
        (Action::Release, "FAILED_RETRYABLE", 0),
        (Action::ReExecute, "SUCCEEDED", 1),
        (Action::Fail, "FAILED_FINAL", 0),
    ] {
        let world = World::new(pool.clone()).await;
        let task = world.assignment().await;
        sqlx::raw_sql(
            "TRUNCATE submission, points_entry, points_balance, outbox, idempotency_record",
        )
        .execute(&world.pool)
        .await
        .unwrap();
        let admin = requester(&world, "admin1").await;
        // Holds the owner between its claim and its finish: the table of students' tasks is what its effects read first.
        let mut gate = world.pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE class_member IN ACCESS EXCLUSIVE MODE")
            .execute(&mut *gate)
            .await
            .unwrap();
        let owner = submit(&world, arrival("k1", &task, 1, "x"));
        let meanwhile = async {
            world
                .until(
                    "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'",
                    1,
                )
                .await;
            sqlx::query(
                "UPDATE idempotency_record SET lease_until = clock_timestamp() - interval '1 s'",
            )
            .execute(&world.pool)
            .await
            .unwrap();
            let record = find(&world, "k1").await;
            if action == Action::ReExecute {
                // It needs the same table, so the gate opens when the new claim is there.
                let compensate = world.engine.compensate(&admin, ask(&record, action));
                let open = async {
                    world
                        .until("SELECT count(*) FROM idempotency_record WHERE epoch = 3", 1)
                        .await;
                    gate.commit().await.unwrap();
                };
                tokio::join!(compensate, open).0.unwrap()
            } else {
                let done = world
                    .engine
                    .compensate(&admin, ask(&record, action))
                    .await
                    .unwrap();
                gate.commit().await.unwrap();
                done
            }
        };
        let (owner, compensated) = tokio::join!(owner, meanwhile);
        assert_eq!(compensated.compensation.status, Status::Applied, "{action}");
        owner.unwrap();
        if action == Action::Release {
            // The owner's caller may run it again at once: it was released for that.
            assert!(
                ["FAILED_RETRYABLE", "SUCCEEDED"].contains(&state(&world, "k1").await.as_str())
            );
        } else {
            assert_eq!(state(&world, "k1").await, end);
            assert_eq!(
                world.count("SELECT count(*) FROM submission").await,
                rows,
                "{action}"
            );
        }
        let first_epoch = world
            .count("SELECT count(*) FROM submission WHERE epoch = 1")
            .await;
        assert_eq!(first_epoch, 0, "{action}: the fenced owner wrote something");
    }
}
