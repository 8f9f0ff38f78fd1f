//! What the panel shows: numbers that lead to their rows, lists that lose none, counters that move and stay exact.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use domain::{
    Bucket, RecordState,
    view::{ArrivalFilter, RecordFilter, Window},
};
use sqlx::PgPool;
use strum::VariantArray;

use crate::support::{World, arrival, submit};

/// Two new ones, three reused, a mismatch and a conflict, by two keys.
async fn known_mix(world: &World) {
    let (task, practice) = (world.assignment().await, world.practice().await);
    for _ in 0..4 {
        submit(world, arrival("one", &task, 1, "a")).await.unwrap();
    }
    submit(world, arrival("one", &task, 1, "other"))
        .await
        .unwrap();
    submit(world, arrival("two", &task, 1, "b")).await.unwrap();
    submit(world, arrival("three", &practice, 1, "c"))
        .await
        .unwrap();
    world.engine.flush().await;
}

/// Moves every counter some hours into the past, and the arrivals with them.
async fn age(world: &World, hours: i32) {
    for table in [
        "UPDATE outcome_counter SET minute = minute - make_interval(hours => $1)",
        "UPDATE request_arrival SET arrived_at = arrived_at - make_interval(hours => $1)",
    ] {
        sqlx::query(table)
            .bind(hours)
            .execute(&world.pool)
            .await
            .unwrap();
    }
}

async fn list_outcome(world: &World, outcome: Option<Bucket>, window: Window) -> Vec<String> {
    let mut ids = Vec::new();
    let mut filter = ArrivalFilter {
        outcome,
        window: Some(window),
        limit: Some(2),
        ..ArrivalFilter::default()
    };
    loop {
        let page = world.engine.list_arrivals(&filter).await.unwrap().unwrap();
        ids.extend(page.arrivals.into_iter().map(|a| a.id));
        filter.after = page.next;
        if filter.after.is_none() {
            return ids;
        }
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn every_counter_leads_to_exactly_the_arrivals_it_counts(pool: PgPool) {
    let world = World::new(pool).await;
    known_mix(&world).await;
    for hours in [0, 3, 40] {
        age(&world, hours).await;
        if hours > 3 {
            world.engine.purge_once().await.unwrap();
        }
        for window in Window::VARIANTS {
            let counters = world.engine.panel(*window).await.unwrap().counters;
            for (outcome, n) in [
                (Bucket::New, counters.new),
                (Bucket::Reused, counters.reused),
                (Bucket::Mismatch, counters.mismatch),
                (Bucket::ConstraintConflict, counters.constraint_conflict),
            ] {
                let listed = list_outcome(&world, Some(outcome), *window).await;
                assert_eq!(
                    listed.len() as i64,
                    n,
                    "{outcome} in {window} after {hours} h"
                );
            }
            let all = list_outcome(&world, None, *window).await;
            assert_eq!(all.len() as i64, counters.arrivals());
            assert_eq!(
                all.iter().collect::<BTreeSet<_>>().len(),
                all.len(),
                "each once"
            );
        }
    }
    let week = world.engine.panel(Window::OneWeek).await.unwrap().counters;
    assert_eq!(
        (
            week.new,
            week.reused,
            week.mismatch,
            week.constraint_conflict
        ),
        (2, 3, 1, 1)
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_counter_leads_to_the_records_that_have_such_arrivals(pool: PgPool) {
    let world = World::new(pool).await;
    known_mix(&world).await;
    let keys = async |filter: RecordFilter| -> Vec<String> {
        let page = world.engine.list_records(&filter).await.unwrap().unwrap();
        page.records.into_iter().map(|r| r.key).collect()
    };
    let with = |outcome| RecordFilter {
        outcome: Some(outcome),
        window: Some(Window::OneHour),
        ..RecordFilter::default()
    };
    assert_eq!(keys(with(Bucket::Reused)).await, ["one"]);
    assert_eq!(keys(with(Bucket::New)).await, ["three", "one"]);
    assert_eq!(keys(with(Bucket::ConstraintConflict)).await, ["two"]);
    // One on a page: those near its place fill it, and it is the same page.
    let mut short = RecordFilter {
        limit: Some(1),
        ..with(Bucket::New)
    };
    let page = world.engine.list_records(&short).await.unwrap().unwrap();
    assert_eq!(page.records[0].key, "three");
    short.after = page.next;
    assert_eq!(keys(short).await, ["one"]);
    let refused = RecordFilter {
        state: Some(RecordState::FailedFinal),
        window: Some(Window::FiveMinutes),
        ..RecordFilter::default()
    };
    assert_eq!(keys(refused).await, ["two"]);
}

/// Fails without the one statement that takes a counter away and adds it elsewhere.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn totals_stay_exact_while_counters_are_moved_and_old_minutes_are_counted_into(pool: PgPool) {
    let world = World::new(pool).await;
    let other = world.another_instance().await;
    let written = Arc::new(AtomicBool::new(false));
    let writing = {
        let (pool, written) = (world.pool.clone(), written.clone());
        tokio::spawn(async move {
            for n in 0..300 {
                // As a late arrival is counted: into the minute that it came in.
                sqlx::query(
                    "INSERT INTO outcome_counter AS c (minute, action_type, name, instance_id, n)
                     VALUES (date_trunc('minute', now()) - make_interval(mins => $1), 'task_submit', 'reused', $2, 1)
                     ON CONFLICT ON CONSTRAINT pk_outcome_counter DO UPDATE SET n = c.n + EXCLUDED.n",
                )
                .bind(120 + n % 7)
                .bind(n % 2 + 1)
                .execute(&pool)
                .await
                .unwrap();
            }
            written.store(true, Ordering::SeqCst);
        })
    };
    let mut last = 0;
    loop {
        let is_last = written.load(Ordering::SeqCst);
        let (one, two) = tokio::join!(world.engine.purge_once(), other.purge_once());
        one.unwrap();
        two.unwrap();
        let total = world.engine.panel(Window::OneDay).await.unwrap();
        assert!(total.totals.reused >= last, "a total never falls");
        assert_eq!(
            total.totals.reused, total.counters.reused,
            "the window holds all of it"
        );
        last = total.totals.reused;
        if is_last {
            break;
        }
    }
    writing.await.unwrap();
    assert_eq!(last, 300);
    assert_eq!(
        world.count("SELECT count(*) FROM outcome_counter").await,
        0,
        "all were moved"
    );
}

async fn insert_records(world: &World, n: i32) {
    sqlx::query(
        "INSERT INTO idempotency_record (subject_id, action_type, idem_key, state, fingerprint, request, trace_id, claim_token,
                                         owner_instance, claimed_at, lease_until)
         SELECT a.id, 'task_submit', 'key-' || n, 'PROCESSING', sha256('x'), '{}', 'trace-' || n, gen_random_uuid(), 0,
                -- Three at a time have the same moment: only the id tells them apart.
                now() - interval '1 day' + n / 3 * interval '1 second', now()
         FROM account a, generate_series(1, $1) n WHERE a.name = 'student1' ORDER BY n",
    )
    .bind(n)
    .execute(&world.pool)
    .await
    .unwrap();
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn pages_follow_each_other_in_both_directions_without_gap_or_repetition(pool: PgPool) {
    let world = World::new(pool).await;
    insert_records(&world, 20).await;
    for stuck in [None, Some(true)] {
        let ids = async |after, before| {
            let filter = RecordFilter {
                stuck,
                after,
                before,
                limit: Some(6),
                ..RecordFilter::default()
            };
            world.engine.list_records(&filter).await.unwrap().unwrap()
        };
        let mut pages = vec![ids(None, None).await];
        while let Some(next) = pages.last().unwrap().next.clone() {
            pages.push(ids(Some(next), None).await);
        }
        let seen: Vec<i64> = pages
            .iter()
            .flat_map(|page| &page.records)
            .map(|r| r.id.parse().unwrap())
            .collect();
        let mut expected: Vec<i64> = seen.clone();
        expected.sort_unstable();
        if stuck.is_none() {
            expected.reverse();
        }
        assert_eq!(seen, expected);
        assert_eq!(seen.len(), 20);
        assert_eq!(pages[0].prev, None);
        for n in (1..pages.len()).rev() {
            let back = ids(None, pages[n].prev.clone()).await;
            assert_eq!(back.records, pages[n - 1].records, "page {n} back");
            assert!(back.next.is_some());
        }
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_cursor_stays_a_place_when_its_record_moves_on(pool: PgPool) {
    let world = World::new(pool).await;
    insert_records(&world, 6).await;
    let page = async |after| {
        let filter = RecordFilter {
            stuck: Some(true),
            limit: Some(3),
            after,
            ..RecordFilter::default()
        };
        world.engine.list_records(&filter).await.unwrap().unwrap()
    };
    let first = page(None).await;
    let rest = page(first.next.clone()).await;
    sqlx::query("DELETE FROM idempotency_record WHERE id = $1::bigint")
        .bind(&first.records[2].id)
        .execute(&world.pool)
        .await
        .unwrap();
    assert_eq!(page(first.next).await.records, rest.records);
    let bad = RecordFilter {
        stuck: Some(true),
        after: Some("7".into()),
        ..RecordFilter::default()
    };
    assert_eq!(world.engine.list_records(&bad).await.unwrap(), None);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn records_are_found_by_key_beginning_trace_and_subject(pool: PgPool) {
    let world = World::new(pool).await;
    known_mix(&world).await;
    let keys = async |q: Option<&str>, subject: Option<&str>| -> Vec<String> {
        let filter = RecordFilter {
            q: q.map(str::to_owned),
            subject: subject.map(str::to_owned),
            ..RecordFilter::default()
        };
        let page = world.engine.list_records(&filter).await.unwrap().unwrap();
        page.records.into_iter().map(|r| r.key).collect()
    };
    assert_eq!(keys(Some("t"), None).await, ["three", "two"]);
    assert_eq!(keys(Some("two"), None).await, ["two"]);
    assert!(keys(Some("%"), None).await.is_empty());
    let trace = "0af7651916cd43dd8448eb211c80319c";
    assert_eq!(keys(Some(trace), None).await, ["three", "two", "one"]);
    let student = world.actor("student1").await;
    assert_eq!(keys(Some("o"), Some("student1")).await, ["one"]);
    assert_eq!(keys(None, Some(&student.id.to_string())).await.len(), 3);
    assert!(keys(None, Some("nobody")).await.is_empty());
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_record_tells_its_whole_story(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    world.engine.scan_once().await.unwrap();
    submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    submit(&world, arrival("k", &task, 1, "y")).await.unwrap();
    world.engine.flush().await;
    let id = world.count("SELECT id FROM idempotency_record").await;
    let record = world
        .engine
        .find_record(&id.to_string())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(record.state, RecordState::Succeeded);
    let claims: Vec<_> = record
        .claims
        .iter()
        .map(|c| (c.attempt, c.ended_at.is_some()))
        .collect();
    assert_eq!(claims, [(1, true), (2, false)]);
    let arrivals: Vec<_> = record
        .arrivals
        .iter()
        .map(|a| (a.outcome, a.same_content))
        .collect();
    assert_eq!(
        arrivals,
        [
            (Some(Bucket::New), true),
            (Some(Bucket::Reused), true),
            (Some(Bucket::Mismatch), false)
        ]
    );
    assert_eq!(record.arrival_count, 3);
    assert_eq!(record.compensations.len(), 1);
    assert_eq!(record.outbox.len(), 1);
    assert_eq!(record.answer.unwrap().status, 201);
    assert_eq!(record.evidence.unwrap().by_this_record, Some(true));
    assert_eq!(world.engine.find_record("0").await.unwrap(), None);
    assert_eq!(world.engine.find_record("x").await.unwrap(), None);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn past_claims_go_with_their_record(pool: PgPool) {
    let world = World::new(pool).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    world.engine.scan_once().await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM past_claim").await, 1);
    for sql in [
        "UPDATE idempotency_record SET expires_at = now()",
        "UPDATE outbox SET delivered_at = now()",
    ] {
        sqlx::query(sql).execute(&world.pool).await.unwrap();
    }
    world.engine.purge_once().await.unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM idempotency_record").await,
        0
    );
    assert_eq!(world.count("SELECT count(*) FROM past_claim").await, 0);
}
