//! What needs a second person: decided once, by another one, by what is true then, and not for ever.

use domain::{
    RecordState,
    compensation::{CompensationAction as Action, CompensationStatus as Status, Decision},
};
use engine::{CompensateError, EngineConfig, Requester, SecondPerson};
use sqlx::PgPool;

use super::{ask, find, put_into, requester, state};
use crate::support::{World, start};

async fn world_of_two_people(pool: PgPool) -> World {
    let config = EngineConfig {
        second_person: SecondPerson::Always,
        ..EngineConfig::default()
    };
    let engine = start(&pool, config).await;
    World::with_engine(engine, pool).await
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_needs_two_people_is_done_by_the_second_and_never_by_the_first(pool: PgPool) {
    let world = world_of_two_people(pool).await;
    let task = world.assignment().await;
    let (first, second) = (
        requester(&world, "admin1").await,
        requester(&world, "admin2").await,
    );
    world.leave_dead_claim("k1", &task, "x").await;
    let record = find(&world, "k1").await;
    let asked = world
        .engine
        .compensate(&first, ask(&record, Action::Fail))
        .await
        .unwrap();
    assert_eq!(asked.compensation.status, Status::AwaitingApproval);
    assert_eq!(state(&world, "k1").await, "PROCESSING");
    let panel = world
        .engine
        .panel(domain::view::Window::OneHour)
        .await
        .unwrap();
    assert_eq!(panel.gauges.awaiting_approval, 1);
    let id = asked.compensation.id;
    let own = world
        .engine
        .decide(&first, &id, Decision::Approve, "me too")
        .await;
    assert!(
        matches!(own, Err(CompensateError::SecondPersonNeeded)),
        "{own:?}"
    );
    let nobody = Requester {
        actor: None,
        ..first.clone()
    };
    let nameless = world
        .engine
        .decide(&nobody, &id, Decision::Approve, "me too")
        .await;
    assert!(
        matches!(nameless, Err(CompensateError::SecondPersonNeeded)),
        "{nameless:?}"
    );
    // Two clicks of the second admin are one decision.
    for _ in 0..2 {
        let done = world
            .engine
            .decide(&second, &id, Decision::Approve, "I looked too")
            .await
            .unwrap();
        assert_eq!(done.compensation.status, Status::Applied);
    }
    assert_eq!(state(&world, "k1").await, "FAILED_FINAL");
    let late = world
        .engine
        .decide(&second, &id, Decision::Reject, "no")
        .await;
    assert!(
        matches!(late, Err(CompensateError::AlreadyDecided(Status::Applied))),
        "{late:?}"
    );
    let events: Vec<String> = sqlx::query_scalar("SELECT event FROM compensation_log ORDER BY id")
        .fetch_all(&world.pool)
        .await
        .unwrap();
    assert_eq!(events, ["requested", "approved", "applied"]);
    // Both refused attempts to approve are in the audit too.
    assert_eq!(
        world.count("SELECT count(*) FROM audit_entry WHERE detail ->> 'refusal' = 'second-person-needed'").await,
        2
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_approval_checks_version_and_evidence_again(pool: PgPool) {
    let world = world_of_two_people(pool).await;
    let task = world.assignment().await;
    let (first, second) = (
        requester(&world, "admin1").await,
        requester(&world, "admin2").await,
    );
    for (key, change, refusal) in [
        (
            "moved",
            Some("UPDATE idempotency_record SET version = version + 1"),
            "stale",
        ),
        ("behind", None, "evidence-forbids"),
    ] {
        world.leave_dead_claim(key, &task, "x").await;
        let record = find(&world, key).await;
        let asked = world
            .engine
            .compensate(&first, ask(&record, Action::Release))
            .await
            .unwrap();
        match change {
            Some(sql) => drop(sqlx::query(sql).execute(&world.pool).await.unwrap()),
            None => world.write_behind(&task, 1, "x").await,
        }
        let decided = world
            .engine
            .decide(&second, &asked.compensation.id, Decision::Approve, "yes")
            .await
            .unwrap();
        assert_eq!(decided.compensation.status, Status::Refused, "{key}");
        assert_eq!(
            decided.compensation.refusal.as_deref(),
            Some(refusal),
            "{key}"
        );
        assert_eq!(state(&world, key).await, "PROCESSING", "{key}");
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn two_who_decide_at_the_same_moment_decide_once(pool: PgPool) {
    let world = world_of_two_people(pool).await;
    let task = world.assignment().await;
    let (first, second) = (
        requester(&world, "admin1").await,
        requester(&world, "admin2").await,
    );
    world
        .engine
        .add_account(&crate::support::admin("admin3"))
        .await
        .unwrap();
    let third = requester(&world, "admin3").await;
    for n in 0..8 {
        let key = format!("k{n}");
        world.leave_dead_claim(&key, &task, "x").await;
        let record = find(&world, &key).await;
        let asked = world
            .engine
            .compensate(&first, ask(&record, Action::Fail))
            .await
            .unwrap();
        let id = asked.compensation.id;
        let (yes, no) = tokio::join!(
            world.engine.decide(&second, &id, Decision::Approve, "yes"),
            world.engine.decide(&third, &id, Decision::Reject, "no"),
        );
        assert!(yes.is_ok() != no.is_ok(), "{yes:?} {no:?}");
        let end = if yes.is_ok() {
            "FAILED_FINAL"
        } else {
            "PROCESSING"
        };
        assert_eq!(state(&world, &key).await, end);
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_request_that_nobody_decides_expires_and_the_record_is_kept_meanwhile(pool: PgPool) {
    let world = world_of_two_people(pool).await;
    let task = world.assignment().await;
    let (first, second) = (
        requester(&world, "admin1").await,
        requester(&world, "admin2").await,
    );
    world.leave_dead_claim("k1", &task, "x").await;
    put_into(&world, "k1", RecordState::FailedRetryable).await;
    let record = find(&world, "k1").await;
    let asked = world
        .engine
        .compensate(&first, ask(&record, Action::Fail))
        .await
        .unwrap();
    let id = asked.compensation.id;
    sqlx::query("UPDATE idempotency_record SET expires_at = now() - interval '1 h'")
        .execute(&world.pool)
        .await
        .unwrap();
    world.engine.purge_once().await.unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        1
    );
    sqlx::query("UPDATE compensation SET expires_at = now() - interval '1 s'")
        .execute(&world.pool)
        .await
        .unwrap();
    let late = world
        .engine
        .decide(&second, &id, Decision::Approve, "yes")
        .await;
    assert!(
        matches!(late, Err(CompensateError::AlreadyDecided(Status::Expired))),
        "{late:?}"
    );
    world.engine.purge_once().await.unwrap();
    let page = world
        .engine
        .list_compensations(None, None, None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(page.compensations[0].status, Status::Expired);
    assert_eq!(
        world
            .count("SELECT count(*) FROM compensation_log WHERE event = 'expired'")
            .await,
        1
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM audit_entry WHERE action = 'compensation.expire'")
            .await,
        1
    );
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        0
    );
}
