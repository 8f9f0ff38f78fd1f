//! Bulks: frozen at the click, run by one instance at a time, each record once.

use domain::{
    IdempotencyKey,
    compensation::{BulkOutcome, CompensationAction as Action},
    view::{BulkStatus, BulkView, RecordFilter},
};
use engine::{BulkError, BulkTarget, CompensateError};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{compensate::requester, support::World};

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::from_text(text).unwrap()
}

fn stuck() -> BulkTarget {
    BulkTarget::Filter(Box::new(RecordFilter {
        stuck: Some(true),
        ..RecordFilter::default()
    }))
}

async fn ids(world: &World) -> Vec<String> {
    sqlx::query_scalar("SELECT id::text FROM idempotency_record ORDER BY id")
        .fetch_all(&world.pool)
        .await
        .unwrap()
}

async fn finished(world: &World, bulk: &BulkView) -> BulkView {
    world.engine.find_bulk(&bulk.id).await.unwrap().unwrap()
}

fn outcomes(bulk: &BulkView) -> Vec<(BulkOutcome, Option<&str>)> {
    let results = bulk.results.as_deref().unwrap_or_default();
    results
        .iter()
        .map(|r| (r.outcome, r.detail.as_deref()))
        .collect()
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn each_record_has_its_outcome_with_its_reason(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    for name in ["dead", "alive", "moved", "forbidden"] {
        world.leave_dead_claim(name, &task, name).await;
    }
    let admin = requester(&world, "admin1").await;
    let mut wanted = ids(&world).await;
    wanted.push("999".into());
    let bulk = world
        .engine
        .start_bulk(
            &admin,
            BulkTarget::Ids(wanted),
            Action::Release,
            "outage",
            &key("b1"),
        )
        .await
        .unwrap();
    assert_eq!(
        (bulk.status, bulk.total, bulk.done),
        (BulkStatus::Running, 5, 0)
    );
    // Between the click and the run.
    sqlx::raw_sql(
        "UPDATE idempotency_record SET lease_until = now() + interval '1 h' WHERE idem_key = 'alive';
         UPDATE idempotency_record SET version = 7 WHERE idem_key = 'moved'",
    )
    .execute(&world.pool)
    .await
    .unwrap();
    world.write_behind(&task, 1, "forbidden").await;
    // The one row in the place of all of them: of the same content for one, of another for "dead".
    let stopping = CancellationToken::new();
    assert!(world.engine.run_bulk_once(&stopping).await.unwrap());
    assert!(!world.engine.run_bulk_once(&stopping).await.unwrap());
    let bulk = finished(&world, &bulk).await;
    assert_eq!((bulk.status, bulk.done), (BulkStatus::Done, 5));
    assert_eq!(
        outcomes(&bulk),
        [
            (BulkOutcome::Refused, Some("evidence-forbids")),
            (BulkOutcome::Skipped, Some("stale")),
            (BulkOutcome::Skipped, Some("stale")),
            (BulkOutcome::Refused, Some("evidence-forbids")),
            (BulkOutcome::Skipped, Some("not-found")),
        ]
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_filter_freezes_exactly_what_the_list_shows_and_again_does_nothing_more(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.practice().await;
    for n in 0..230 {
        world
            .leave_dead_claim(&format!("k{n:03}"), &task, "x")
            .await;
    }
    sqlx::raw_sql(
        "UPDATE idempotency_record SET request = jsonb_set(request, '{submit_version}', to_jsonb(id)),
                                       claimed_at = CASE WHEN id % 10 = 0 THEN now() ELSE claimed_at END",
    )
    .execute(&world.pool)
    .await
    .unwrap();
    let admin = requester(&world, "admin1").await;
    let b1 = key("b1");
    let start = || {
        world
            .engine
            .start_bulk(&admin, stuck(), Action::Fail, "outage", &b1)
    };
    let (one, two) = tokio::join!(start(), start());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.id.as_str(), one.total), (two.id.as_str(), 207));
    let stopping = CancellationToken::new();
    while world.engine.run_bulk_once(&stopping).await.unwrap() {}
    let done = finished(&world, &one).await;
    assert!(
        outcomes(&done)
            .iter()
            .all(|o| *o == (BulkOutcome::Applied, None))
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM idempotency_record WHERE state = 'FAILED_FINAL'")
            .await,
        207
    );
    assert_eq!(
        world
            .counters()
            .await
            .iter()
            .find(|c| c.0 == "compensated")
            .unwrap()
            .1,
        207
    );
    // The same key is the same bulk; a new one finds nothing left to do.
    assert_eq!(start().await.unwrap().id, one.id);
    let wanted = done
        .results
        .unwrap()
        .into_iter()
        .map(|r| r.record_id)
        .collect();
    let again = world
        .engine
        .start_bulk(
            &admin,
            BulkTarget::Ids(wanted),
            Action::Fail,
            "outage",
            &key("b2"),
        )
        .await
        .unwrap();
    while world.engine.run_bulk_once(&stopping).await.unwrap() {}
    let again = finished(&world, &again).await;
    assert!(
        outcomes(&again)
            .iter()
            .all(|o| *o == (BulkOutcome::Skipped, Some("already-terminal")))
    );
    let other = world
        .engine
        .start_bulk(&admin, stuck(), Action::Release, "outage", &key("b1"))
        .await;
    assert!(matches!(
        other,
        Err(BulkError::Compensate(CompensateError::KeyReused))
    ));
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn two_instances_never_run_one_bulk_at_the_same_time(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.practice().await;
    for n in 0..60 {
        world.leave_dead_claim(&format!("k{n}"), &task, "x").await;
    }
    let admin = requester(&world, "admin1").await;
    let bulk = world
        .engine
        .start_bulk(&admin, stuck(), Action::Fail, "outage", &key("b1"))
        .await
        .unwrap();
    let other = world.another_instance().await;
    let stopping = CancellationToken::new();
    let (one, two) = tokio::join!(
        world.engine.run_bulk_once(&stopping),
        other.run_bulk_once(&stopping)
    );
    // One had it; for the other there was none.
    assert!(one.unwrap() != two.unwrap());
    assert_eq!(finished(&world, &bulk).await.status, BulkStatus::Done);
    assert_eq!(
        world
            .count("SELECT count(*) FROM compensation_log WHERE event = 'applied'")
            .await,
        60
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_runner_that_lost_its_claim_does_nothing_more(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.practice().await;
    for n in 0..3 {
        world.leave_dead_claim(&format!("k{n}"), &task, "x").await;
    }
    let admin = requester(&world, "admin1").await;
    world
        .engine
        .start_bulk(&admin, stuck(), Action::Fail, "outage", &key("b1"))
        .await
        .unwrap();
    // The first record is held, so that the runner waits in its middle; meanwhile its claim is given to somebody else.
    let mut gate = world.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM idempotency_record WHERE idem_key = 'k1' FOR UPDATE")
        .execute(&mut *gate)
        .await
        .unwrap();
    let stopping = CancellationToken::new();
    let run = world.engine.run_bulk_once(&stopping);
    let steal = async {
        world
            .until(
                "SELECT count(*) FROM bulk_item WHERE outcome IS NOT NULL",
                1,
            )
            .await;
        sqlx::query("UPDATE bulk SET claim_token = gen_random_uuid()")
            .execute(&world.pool)
            .await
            .unwrap();
        gate.commit().await.unwrap();
    };
    let (run, ()) = tokio::join!(run, steal);
    assert!(run.unwrap());
    // What it was in the middle of may have ended; nothing after it was begun.
    assert!(
        world
            .count("SELECT count(*) FROM bulk_item WHERE outcome IS NULL")
            .await
            >= 1
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM bulk WHERE finished_at IS NULL")
            .await,
        1
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn nothing_too_large_nor_nameless_is_frozen(pool: PgPool) {
    let world = World::new(pool).await;
    let admin = requester(&world, "admin1").await;
    let many = (0..10_001).map(|n| n.to_string()).collect();
    for target in [BulkTarget::Ids(many), BulkTarget::Ids(Vec::new())] {
        let refused = world
            .engine
            .start_bulk(&admin, target, Action::Fail, "outage", &key("b1"))
            .await;
        assert!(
            matches!(refused, Err(BulkError::InvalidSize)),
            "{refused:?}"
        );
    }
    let odd = BulkTarget::Ids(vec!["1; DROP".into()]);
    let refused = world
        .engine
        .start_bulk(&admin, odd, Action::Fail, "outage", &key("b1"))
        .await;
    assert!(matches!(refused, Err(BulkError::InvalidId(_))));
    assert_eq!(world.count("SELECT count(*) FROM bulk").await, 0);
}
