//! What people do about records: every action in every state with every evidence, two people, and whoever comes in between.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::{
    IdempotencyKey, ProblemCode, RecordState,
    compensation::{CompensationAction as Action, CompensationStatus as Status, Decision},
    view::CompensationAnswer,
};
use engine::{Compensate, CompensateError, EngineConfig, Requester, SecondPerson};
use sqlx::PgPool;
use strum::VariantArray;

use crate::support::{World, arrival, start, submit};

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

async fn state(world: &World, key: &str) -> String {
    sqlx::query_scalar("SELECT state FROM idempotency_record WHERE idem_key = $1")
        .bind(key)
        .fetch_one(&world.pool)
        .await
        .unwrap()
}

/// Puts a dead claim into a state in which it can be found.
async fn put_into(world: &World, key: &str, state: RecordState) {
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
