//! Random interleavings of two instances, two devices, crashes, scanners, purges and a writer behind their backs.

use std::{collections::HashMap, time::Duration};

use domain::Bucket;
use engine::{Actor, Answer, Engine};
use proptest::{
    prelude::*,
    strategy::{Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use sqlx::PgPool;

use crate::{
    rules::{assert_rules, watch_rules},
    support::{World, arrival, body},
};

/// How many schedules are tried, each on a practice attempt of its own.
const SCHEDULES: i32 = 60;

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// A request comes in: at an instance, under a key, with a content, waiting or not; its caller may go away.
    Request {
        instance: usize,
        key: u8,
        content: u8,
        waits: bool,
        goes_away: bool,
    },
    /// Every lease runs out, as if their owners had died.
    LeasesRunOut,
    /// An instance scans.
    Scan { instance: usize },
    /// What is finished expires and is purged.
    Purge { instance: usize },
    /// Plain SQL writes a submission.
    WriteBehind { content: u8 },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        8 => (0..2_usize, 0..2_u8, 0..2_u8, any::<bool>(), prop::bool::weighted(0.2)).prop_map(
            |(instance, key, content, waits, goes_away)| Happening::Request { instance, key, content, waits, goes_away }
        ),
        2 => Just(Happening::LeasesRunOut),
        2 => (0..2_usize).prop_map(|instance| Happening::Scan { instance }),
        1 => (0..2_usize).prop_map(|instance| Happening::Purge { instance }),
        1 => (0..2_u8).prop_map(|content| Happening::WriteBehind { content }),
    ]
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn no_interleaving_makes_a_second_effect_or_loses_an_answer(pool: PgPool) {
    let world = World::new(pool).await;
    watch_rules(&world).await;
    let engines = [world.engine.clone(), world.another_instance().await];
    let student = world.actor("student1").await;
    let task = world.practice().await;
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let schedules = prop::collection::vec(happening(), 4..14);
    for attempt in 1..=SCHEDULES {
        let schedule = schedules.new_tree(&mut runner).unwrap().current();
        // All at once: the order is what the scheduler and Postgres make of it.
        let running = schedule
            .iter()
            .map(|happening| play(&world, &engines, &student, &task, attempt, *happening));
        let answers: Vec<_> = futures::future::join_all(running)
            .await
            .into_iter()
            .flatten()
            .collect();
        settle(&world, &engines).await;
        check(&world, &task, attempt, &answers, &schedule).await;
        // The next attempt number is only current when this one exists.
        play(
            &world,
            &engines,
            &student,
            &task,
            attempt,
            Happening::WriteBehind { content: 0 },
        )
        .await;
    }
}

fn content(n: u8) -> String {
    format!("content {n}")
}

async fn play(
    world: &World,
    engines: &[Engine; 2],
    student: &Actor,
    task: &str,
    attempt: i32,
    happening: Happening,
) -> Option<((u8, u8), Answer)> {
    match happening {
        Happening::Request {
            instance,
            key,
            content: n,
            waits,
            goes_away,
        } => {
            let mut arrival = arrival(&format!("{attempt}-{key}"), task, attempt, &content(n));
            arrival.wait = Duration::from_secs(if waits { 5 } else { 0 });
            let (engine, student) = (engines[instance].clone(), student.clone());
            let request =
                tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() });
            if goes_away {
                tokio::task::yield_now().await;
                request.abort();
            }
            request.await.ok().map(|answer| ((key, n), answer))
        }
        Happening::LeasesRunOut => {
            let sql = "UPDATE idempotency_record SET lease_until = clock_timestamp() - interval '1 second'
                       WHERE state = 'PROCESSING'";
            sqlx::query(sql).execute(&world.pool).await.unwrap();
            None
        }
        Happening::Scan { instance } => {
            engines[instance].scan_once().await.unwrap();
            None
        }
        Happening::Purge { instance } => {
            let sql = "WITH delivered AS (UPDATE outbox SET delivered_at = now())
                       UPDATE idempotency_record SET expires_at = clock_timestamp() WHERE state IN ('SUCCEEDED', 'FAILED_FINAL')";
            sqlx::query(sql).execute(&world.pool).await.unwrap();
            engines[instance].purge_once().await.unwrap();
            None
        }
        Happening::WriteBehind { content: n } => {
            world.write_behind(task, attempt, &content(n)).await;
            None
        }
    }
}

/// Lets everything that was left behind come to its end.
async fn settle(world: &World, engines: &[Engine; 2]) {
    let unfinished =
        "SELECT count(*) FROM idempotency_record WHERE state NOT IN ('SUCCEEDED', 'FAILED_FINAL')";
    while world.count(unfinished).await > 0 {
        sqlx::query(
            "UPDATE idempotency_record SET scan_after = now(), scan_attempts = 0,
                    lease_until = CASE WHEN claimed_at < now() - interval '2 seconds' THEN now() ELSE lease_until END
             WHERE state NOT IN ('SUCCEEDED', 'FAILED_FINAL')",
        )
        .execute(&world.pool)
        .await
        .unwrap();
        engines[0].scan_once().await.unwrap();
    }
    for engine in engines {
        engine.flush().await;
    }
}

async fn check(
    world: &World,
    task: &str,
    attempt: i32,
    answers: &[((u8, u8), Answer)],
    schedule: &[Happening],
) {
    let rows: Vec<(i64, String)> = sqlx::query_as(
        "SELECT id, content FROM submission WHERE task_id = $1::bigint AND submit_version = $2",
    )
    .bind(task)
    .bind(attempt)
    .fetch_all(&world.pool)
    .await
    .unwrap();
    assert!(rows.len() <= 1, "{rows:?} after {schedule:?}");
    // A success is a row that is there, with the content that was sent; nothing acknowledged is lost.
    for ((_, n), answer) in answers {
        if answer.status == 200 || answer.status == 201 {
            let (id, stored) = rows
                .first()
                .unwrap_or_else(|| panic!("{answer:?} without a row after {schedule:?}"));
            assert_eq!(
                (body(answer)["id"].as_str(), stored),
                (Some(id.to_string().as_str()), &content(*n)),
                "{schedule:?}"
            );
        }
    }
    // One execution at most succeeded as new, whoever was told.
    let new: Vec<_> = answers
        .iter()
        .filter(|(_, a)| a.bucket == Bucket::New && a.status == 201)
        .collect();
    assert!(new.len() <= 1, "{new:?} after {schedule:?}");
    // The final answers of one request agree.
    let mut finals: HashMap<(u8, u8), &str> = HashMap::new();
    let purged = schedule
        .iter()
        .any(|h| matches!(h, Happening::Purge { .. }));
    for (request, answer) in answers
        .iter()
        .filter(|(_, a)| [200, 201, 409].contains(&a.status) && !purged)
    {
        assert_eq!(
            *finals.entry(*request).or_insert(&answer.body),
            answer.body,
            "{schedule:?}"
        );
    }
    // Each row that the engine wrote or met brought its points and its message once; the ledger's sum is the balance.
    let doubled = "SELECT count(*) FROM (SELECT payload ->> 'submission_id' FROM outbox GROUP BY 1 HAVING count(*) > 1) d";
    assert_eq!(world.count(doubled).await, 0, "{schedule:?}");
    let unequal = "SELECT count(*) FROM points_balance b
                   WHERE b.balance <> (SELECT sum(amount) FROM points_entry e WHERE e.account_id = b.account_id)";
    assert_eq!(world.count(unequal).await, 0, "{schedule:?}");
    let owned_without = "SELECT count(*) FROM submission s WHERE s.record_id IS NOT NULL
                         AND NOT EXISTS (SELECT FROM points_entry e WHERE e.source_id = s.id)";
    assert_eq!(world.count(owned_without).await, 0, "{schedule:?}");
    // Every arrival is decided, and counted exactly once.
    assert_eq!(
        world
            .count("SELECT count(*) FROM request_arrival WHERE outcome IS NULL")
            .await,
        0,
        "{schedule:?}"
    );
    let differs = "SELECT count(*) FROM (
                       SELECT outcome AS name, count(*) AS n FROM request_arrival GROUP BY 1
                   ) rows FULL JOIN (
                       SELECT name, sum(n) AS n FROM outcome_counter
                       WHERE name IN ('new', 'reused', 'processing', 'unknown', 'mismatch', 'constraint_conflict') GROUP BY 1
                   ) counted USING (name)
                   WHERE rows.n IS DISTINCT FROM counted.n";
    assert_eq!(world.count(differs).await, 0, "{schedule:?}");
    assert_rules(world).await;
}
