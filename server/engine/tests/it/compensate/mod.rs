//! What people do about records: every action in every state with every evidence; below it two people, and whoever comes in
//! between.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::{
    IdempotencyKey, ProblemCode, RecordState,
    compensation::{CompensationAction as Action, CompensationStatus as Status},
    view::CompensationAnswer,
};
use engine::{Compensate, CompensateError, Requester};
use sqlx::PgPool;
use strum::VariantArray;

use crate::support::World;

mod races;
mod two_people;

const LOG: &str = "SELECT count(*) FROM compensation_log";
const AUDIT: &str = "SELECT count(*) FROM audit_entry";

pub(crate) async fn requester(world: &World, name: &str) -> Requester {
    Requester {
        actor: Some(world.actor(name).await),
        origin: "203.0.113.7".into(),
        trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
    }
}

fn fresh_key() -> IdempotencyKey {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    IdempotencyKey::from_text(&format!("compensation {n}")).unwrap()
}

pub(crate) fn ask(record: &(i64, i64), action: Action) -> Compensate {
    Compensate {
        record_id: record.0.to_string(),
        action,
        reason: "the student called".into(),
        expected_version: Some(record.1),
        key: fresh_key(),
    }
}

/// Id and version of a key's record.
pub(crate) async fn find(world: &World, key: &str) -> (i64, i64) {
    sqlx::query_as("SELECT id, version FROM idempotency_record WHERE idem_key = $1")
        .bind(key)
        .fetch_one(&world.pool)
        .await
        .unwrap()
}

pub(crate) async fn state(world: &World, key: &str) -> String {
    sqlx::query_scalar("SELECT state FROM idempotency_record WHERE idem_key = $1")
        .bind(key)
        .fetch_one(&world.pool)
        .await
        .unwrap()
}

/// Puts a dead claim into a state in which it can be found.
pub(crate) async fn put_into(world: &World, key: &str, state: RecordState) {
    let sql = match state {
        RecordState::Processing => return,
        RecordState::Unknown => "state = 'UNKNOWN', lease_until = NULL",
        RecordState::FailedRetryable => "state = 'FAILED_RETRYABLE', lease_until = NULL",
        RecordState::Succeeded => {
            "state = 'SUCCEEDED', lease_until = NULL, response_status = 201, response_body = '{}', expires_at = now() + '1 h'"
        }
        RecordState::FailedFinal => {
            "state = 'FAILED_FINAL', lease_until = NULL, response_status = 409, response_body = '{}', expires_at = now() + '1 h'"
        }
    };
    let sql = format!("UPDATE idempotency_record SET {sql} WHERE idem_key = $1");
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(key)
        .execute(&world.pool)
        .await
        .unwrap();
}

/// What another writer left in the place of a record's effect.
#[derive(Debug, Clone, Copy)]
enum Place {
    Empty,
    Same,
    Other,
}

/// What the contract says: the refusal, or the state that the record is left in.
fn expected(state: RecordState, place: Place, action: Action) -> Result<&'static str, ProblemCode> {
    use RecordState as S;
    if matches!(state, S::Succeeded | S::FailedFinal) {
        return Err(ProblemCode::AlreadyTerminal);
    }
    let unchanged = match state {
        S::Processing => "PROCESSING",
        S::Unknown => "UNKNOWN",
        _ => "FAILED_RETRYABLE",
    };
    match (action, place) {
        (Action::Verify, _) => Ok(unchanged),
        (Action::Complete, Place::Same) => Ok("SUCCEEDED"),
        (Action::Fail, Place::Empty | Place::Other) => Ok("FAILED_FINAL"),
        (Action::Release, Place::Empty) => Ok("FAILED_RETRYABLE"),
        (Action::ReExecute, Place::Empty) => Ok("SUCCEEDED"),
        _ => Err(ProblemCode::EvidenceForbids),
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn every_action_in_every_state_with_every_evidence(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let admin = requester(&world, "admin1").await;
    let (mut tried, mut applied, mut rows) = (0, 0, 0);
    for state_before in RecordState::VARIANTS {
        for place in [Place::Empty, Place::Same, Place::Other] {
            for action in Action::VARIANTS {
                let case = format!("{action} of {state_before} with {place:?}");
                sqlx::raw_sql("TRUNCATE submission, points_entry, points_balance, outbox")
                    .execute(&world.pool)
                    .await
                    .unwrap();
                let key = format!("key {tried}");
                tried += 1;
                world.leave_dead_claim(&key, &task, "x").await;
                put_into(&world, &key, *state_before).await;
                match place {
                    Place::Empty => {}
                    Place::Same => world.write_behind(&task, 1, "x").await,
                    Place::Other => world.write_behind(&task, 1, "y").await,
                }
                let before = find(&world, &key).await;
                let answer = world.engine.compensate(&admin, ask(&before, *action)).await;
                let compensation = answer.unwrap().compensation;
                match expected(*state_before, place, *action) {
                    Err(code) => {
                        assert_eq!(compensation.status, Status::Refused, "{case}");
                        assert_eq!(compensation.refusal, Some(code.to_string()), "{case}");
                        assert_eq!(
                            state(&world, &key).await,
                            state_before.to_string(),
                            "{case}"
                        );
                        assert_eq!(find(&world, &key).await, before, "{case}: version");
                    }
                    Ok(after) => {
                        let changes = *action != Action::Verify;
                        let status = if changes {
                            Status::Applied
                        } else {
                            Status::Proposed
                        };
                        assert_eq!(compensation.status, status, "{case}");
                        assert_eq!(state(&world, &key).await, after, "{case}");
                        let moved = find(&world, &key).await.1 > before.1;
                        assert_eq!(moved, changes, "{case}: version");
                        applied += i64::from(changes);
                        rows += 1;
                    }
                }
                let effects = world.count("SELECT count(*) FROM submission").await;
                assert!(effects <= 1, "{case}: {effects} effects");
                let completed = matches!(
                    (action, place),
                    (Action::Complete, Place::Same) | (Action::ReExecute, Place::Empty)
                );
                let points = if completed && !state_before.is_terminal() {
                    10
                } else {
                    0
                };
                assert_eq!(
                    world
                        .count("SELECT coalesce(sum(balance), 0)::bigint FROM points_balance")
                        .await,
                    points,
                    "{case}: points"
                );
            }
        }
    }
    assert_eq!(tried, 75);
    assert!(rows > 20);
    // Each attempt, refused ones too, has its line; each applied one is counted once.
    assert_eq!(world.count(LOG).await, 75);
    assert_eq!(world.count(AUDIT).await, 75);
    let counters = world.counters().await;
    assert!(
        counters.contains(&("compensated".into(), applied)),
        "{counters:?}"
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM compensation_log WHERE event = 'applied'")
            .await,
        applied
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn two_clicks_are_one_compensation_and_another_wish_under_the_key_is_refused(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k1", &task, "x").await;
    let record = find(&world, "k1").await;
    let admin = requester(&world, "admin1").await;
    let click = ask(&record, Action::ReExecute);
    let clicks = (0..8).map(|_| world.engine.compensate(&admin, click.clone()));
    let answers: Vec<CompensationAnswer> = futures::future::try_join_all(clicks).await.unwrap();
    for answer in &answers {
        assert_eq!(answer.compensation, answers[0].compensation);
        assert_eq!(answer.compensation.status, Status::Applied);
    }
    assert_eq!(world.count("SELECT count(*) FROM compensation").await, 1);
    assert_eq!(world.count(LOG).await, 1);
    assert_eq!(world.count("SELECT count(*) FROM submission").await, 1);
    let other = Compensate {
        action: Action::Fail,
        ..click.clone()
    };
    let refused = world.engine.compensate(&admin, other).await;
    assert!(
        matches!(refused, Err(CompensateError::KeyReused)),
        "{refused:?}"
    );
    // Another admin's key of the same name is another key.
    let second = requester(&world, "admin2").await;
    let answer = world.engine.compensate(&second, click).await.unwrap();
    assert_eq!(
        answer.compensation.refusal.as_deref(),
        Some("already-terminal")
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn log_and_audit_refuse_to_be_rewritten(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    let admin = requester(&world, "admin1").await;
    world.leave_dead_claim("k1", &task, "x").await;
    let record = find(&world, "k1").await;
    world
        .engine
        .compensate(&admin, ask(&record, Action::Verify))
        .await
        .unwrap();
    for sql in [
        "UPDATE audit_entry SET action = 'nothing'",
        "DELETE FROM audit_entry",
        "TRUNCATE audit_entry",
        "UPDATE compensation_log SET reason = 'another'",
        "DELETE FROM compensation_log",
        "TRUNCATE compensation_log",
    ] {
        let refused = sqlx::query(sql).execute(&world.pool).await.unwrap_err();
        let code = refused
            .as_database_error()
            .and_then(|e| e.code().map(|c| c.into_owned()));
        assert_eq!(code.as_deref(), Some("42501"), "{sql}");
    }
    assert_eq!((world.count(LOG).await, world.count(AUDIT).await), (1, 1));
    let page = world
        .engine
        .list_audit(&domain::view::AuditFilter::default())
        .await
        .unwrap()
        .unwrap();
    let entry = &page.entries[0];
    assert_eq!(
        (entry.action.as_str(), entry.actor_name.as_deref()),
        ("compensation.verify", Some("admin1"))
    );
    assert_eq!(entry.detail["from"], "203.0.113.7");
    assert_eq!(entry.detail["before"]["state"], "PROCESSING");
    assert_eq!(entry.detail["evidence"]["finding"], "absent");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn only_admins_act_and_a_reason_is_needed(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k1", &task, "x").await;
    let record = find(&world, "k1").await;
    for name in ["student1", "teacher1", "parent1", "ops1"] {
        let refused = world
            .engine
            .compensate(&requester(&world, name).await, ask(&record, Action::Fail))
            .await;
        assert!(matches!(refused, Err(CompensateError::Forbidden)), "{name}");
    }
    let admin = requester(&world, "admin1").await;
    for reason in [
        String::new(),
        "  \n".into(),
        "a\0b".into(),
        "x".repeat(1001),
    ] {
        let without = Compensate {
            reason,
            ..ask(&record, Action::Fail)
        };
        let refused = world.engine.compensate(&admin, without).await;
        assert!(matches!(refused, Err(CompensateError::InvalidReason)));
    }
    let nowhere = world
        .engine
        .compensate(&admin, ask(&(999, 1), Action::Fail))
        .await;
    assert!(matches!(nowhere, Err(CompensateError::NotFound)));
    assert_eq!(world.count(LOG).await, 0);
}
