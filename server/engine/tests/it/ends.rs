//! The rows behind the counters of failures and compensations: as many as are counted, whatever became of the records since.

use domain::{RecordState, compensation::CompensationAction as Action, view::Window};
use sqlx::PgPool;

use crate::{
    compensate::{ask, find, requester},
    support::World,
};

async fn counted(world: &World, name: &str) -> usize {
    let counters = world.counters().await;
    let found = counters.iter().find(|counter| counter.0 == name);
    found.map_or(0, |counter| usize::try_from(counter.1).unwrap())
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn each_execution_that_failed_for_now_is_found_whatever_its_record_is_now(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let admin = requester(&world, "admin1").await;
    // Released and left; released twice, which is one failure; released and ended; released and executed.
    let then: [(&str, &[Action]); 4] = [
        ("left", &[]),
        ("twice", &[Action::Release]),
        ("ended", &[Action::Fail]),
        ("executed", &[Action::ReExecute]),
    ];
    for (key, then) in then {
        world.leave_dead_claim(key, &task, "x").await;
        for action in [&[Action::Release], then].concat() {
            let record = find(&world, key).await;
            world
                .engine
                .compensate(&admin, ask(&record, action))
                .await
                .unwrap();
        }
    }
    let (failures, next) = world
        .engine
        .list_failures(Window::OneHour, None)
        .await
        .unwrap()
        .unwrap();
    let mut found: Vec<_> = failures
        .iter()
        .map(|f| (f.key.as_str(), f.attempt, f.state))
        .collect();
    found.sort_unstable_by_key(|f| f.0);
    assert_eq!(
        found,
        [
            ("ended", 1, RecordState::FailedFinal),
            ("executed", 1, RecordState::Succeeded),
            ("left", 1, RecordState::FailedRetryable),
            ("twice", 1, RecordState::FailedRetryable),
        ]
    );
    assert_eq!(next, None);
    assert_eq!(counted(&world, "failed_retryable").await, failures.len());
    let id = find(&world, "ended").await.0.to_string();
    let claims = world.engine.find_record(&id).await.unwrap().unwrap().claims;
    assert_eq!(claims.len(), 1, "one claim, although it was kept");
    assert!(claims[0].ended_at.is_some());
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn each_compensation_that_was_done_is_found_page_by_page(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let admin = requester(&world, "admin1").await;
    world.leave_dead_claim("by a person", &task, "x").await;
    let record = find(&world, "by a person").await;
    for action in [Action::Verify, Action::Fail] {
        world
            .engine
            .compensate(&admin, ask(&record, action))
            .await
            .unwrap();
    }
    world
        .engine
        .compensate(&admin, ask(&record, Action::Release))
        .await
        .unwrap();
    world.leave_dead_claim("by the scanner", &task, "x").await;
    world.engine.scan_once().await.unwrap();
    let (applied, next) = world
        .engine
        .list_applied(Window::OneHour, None)
        .await
        .unwrap()
        .unwrap();
    let found: Vec<_> = applied
        .iter()
        .map(|a| (a.action, a.actor_name.as_deref()))
        .collect();
    assert_eq!(
        found,
        [(Action::ReExecute, None), (Action::Fail, Some("admin1"))],
        "what was only looked at, and what was refused, is not done"
    );
    assert_eq!(counted(&world, "compensated").await, applied.len());
    assert_eq!(next, None);
    let after = world
        .engine
        .list_applied(Window::OneHour, Some(&applied[0].id))
        .await
        .unwrap()
        .unwrap()
        .0;
    assert_eq!(after, applied[1..]);
    assert_eq!(
        world
            .engine
            .list_applied(Window::OneHour, Some("x"))
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        world
            .engine
            .list_failures(Window::OneHour, Some("x"))
            .await
            .unwrap(),
        None
    );
}
