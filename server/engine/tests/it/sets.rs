//! Sets: what is gathered while something else is on its way ends together, in an order in which no two instances can lock each
//! other out, and each item as if it had come alone.

use std::time::Duration;

use engine::{Actor, Answer, Arrival, EngineConfig};
use sqlx::{PgPool, Postgres, Transaction};
use tokio::task::JoinHandle;

use crate::{
    defences::{CLAIMS_WAIT, FINISH_BEGINS},
    support::{World, arrival, in_time, insert_claim},
    wire::{Cut, Wire, wired},
};

fn submit(world: &World, student: &Actor, arrival: Arrival) -> JoinHandle<Answer> {
    let (engine, student) = (world.engine.clone(), student.clone());
    tokio::spawn(async move { engine.submit(&student, arrival).await.unwrap() })
}

/// Lets everything run that does not wait for Postgres.
async fn run_what_can() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Holds a finish of the third student up on the wire until it is released; what comes meanwhile forms one set, in this order.
async fn gather(
    world: &World,
    wire: &Wire,
    arrivals: Vec<(&Actor, Arrival)>,
) -> Vec<JoinHandle<Answer>> {
    let (third, practice) = (world.actor("student3").await, world.practice().await);
    wire.cut(Cut::Hold, FINISH_BEGINS);
    let mut running = vec![submit(world, &third, arrival("busy", &practice, 1, "x"))];
    wire.until_cut().await;
    for (claimed, (student, arrival)) in (2..).zip(arrivals) {
        running.push(submit(world, student, arrival));
        world
            .until(
                "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'",
                claimed,
            )
            .await;
        // The claim's connection is given back when its answer is there.
        while wire.pool.num_idle() + 1 != wire.pool.size() as usize {
            tokio::task::yield_now().await;
        }
        run_what_can().await;
    }
    wire.take_seen();
    running
}

async fn statuses(running: Vec<JoinHandle<Answer>>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for answer in running {
        statuses.push(answer.await.unwrap().status);
    }
    statuses
}

/// Locks or writes what another instance would next; in vain when a set holds it already.
async fn take(transaction: &mut Transaction<'_, Postgres>, sql: &'static str) {
    sqlx::query("SET LOCAL lock_timeout = '500ms'")
        .execute(&mut **transaction)
        .await
        .unwrap();
    sqlx::query(sql).execute(&mut **transaction).await.unwrap();
}

const SUBMISSIONS: [&str; 2] = [
    "INSERT INTO submission (task_id, student_id, submit_version, content)
     SELECT t.id, a.id, 1, 'x' FROM task t, account a WHERE t.kind = 'practice' AND a.name = 'student1'",
    "INSERT INTO submission (task_id, student_id, submit_version, content)
     SELECT t.id, a.id, 1, 'x' FROM task t, account a WHERE t.kind = 'practice' AND a.name = 'student2'",
];
const SUBMISSIONS_OF_SECOND: &str = "SELECT count(*) FROM submission WHERE student_id = (SELECT id FROM account WHERE name = 'student2')";
const BALANCES: [&str; 2] = [
    "SELECT FROM points_balance JOIN account a ON a.id = account_id WHERE a.name = 'student1' FOR UPDATE OF points_balance",
    "SELECT FROM points_balance JOIN account a ON a.id = account_id WHERE a.name = 'student2' FOR UPDATE OF points_balance",
];

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn keys_are_claimed_and_records_finished_in_their_own_order(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let (student, practice) = (world.actor("student1").await, world.practice().await);
    // As many sets of claims as may be on their way at once, so that what comes now forms one.
    let mut busy = world.pool.begin().await.unwrap();
    insert_claim(&mut busy, "1", &practice, "x", 0).await;
    insert_claim(&mut busy, "2", &practice, "x", 0).await;
    let mut other = world.pool.begin().await.unwrap();
    insert_claim(&mut other, "a", &practice, "x", 0).await;
    let mut running = Vec::new();
    for (key, waiting) in [("1", 1), ("2", 2)] {
        running.push(submit(&world, &student, arrival(key, &practice, 1, "x")));
        world.until(CLAIMS_WAIT, waiting).await;
    }
    for key in ["b", "a"] {
        running.push(submit(&world, &student, arrival(key, &practice, 1, "x")));
        run_what_can().await;
    }
    wire.cut(Cut::Hold, FINISH_BEGINS);
    busy.rollback().await.unwrap();
    wire.until_cut().await;
    world.until(CLAIMS_WAIT, 1).await;
    // It waits for the first of its keys, so the second one is free.
    sqlx::query("SET LOCAL lock_timeout = '500ms'")
        .execute(&mut *other)
        .await
        .unwrap();
    insert_claim(&mut other, "b", &practice, "x", 0).await;
    other.rollback().await.unwrap();
    world
        .until(
            "SELECT count(*) FROM idempotency_record WHERE state = 'PROCESSING'",
            4,
        )
        .await;
    run_what_can().await;

    // They are to be finished in the order of their arrival, which is not that of their numbers.
    let mut other = world.pool.begin().await.unwrap();
    take(
        &mut other,
        "SELECT FROM idempotency_record WHERE idem_key = 'a' FOR UPDATE",
    )
    .await;
    wire.release();
    until_waiting(&world, "WITH guard%").await;
    take(
        &mut other,
        "SELECT FROM idempotency_record WHERE idem_key = 'b' AND id > (SELECT id FROM idempotency_record WHERE idem_key = 'a')
         FOR UPDATE",
    )
    .await;
    other.rollback().await.unwrap();
    let mut statuses = statuses(running).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 201]);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn submissions_are_written_in_the_order_of_their_key(pool: PgPool) {
    writes_in_order(pool, SUBMISSIONS, "WITH guard%").await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn balances_are_changed_in_the_order_of_their_accounts(pool: PgPool) {
    writes_in_order(pool, BALANCES, "WITH written%").await;
}

/// A set of the second student's submission and the first one's waits for what is the first one's, so the second one's is free.
async fn writes_in_order(pool: PgPool, [first_row, second_row]: [&'static str; 2], waiting: &str) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let practice = world.practice().await;
    let (first, second) = (world.actor("student1").await, world.actor("student2").await);
    world
        .execute("INSERT INTO points_balance (account_id, balance) SELECT id, 0 FROM account WHERE role = 'student'")
        .await;
    let mut other = world.pool.begin().await.unwrap();
    take(&mut other, first_row).await;
    let crossed = vec![
        (&second, arrival("k", &practice, 1, "x")),
        (&first, arrival("k", &practice, 1, "x")),
    ];
    let running = gather(&world, &wire, crossed).await;
    wire.release();
    until_waiting(&world, waiting).await;
    take(&mut other, second_row).await;
    other.rollback().await.unwrap();
    assert_eq!(statuses(running).await, [201, 201, 201]);
}

/// Waits until a statement that begins like this waits for a lock.
async fn until_waiting(world: &World, beginning: &str) {
    let waits = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1";
    in_time(async {
        let count = || {
            sqlx::query_scalar::<_, i64>(waits)
                .bind(beginning)
                .fetch_one(&world.pool)
        };
        while count().await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// `UPDATE … FROM unnest` would apply one of several, and `ON CONFLICT DO UPDATE` refuse the second.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn several_submissions_of_one_student_in_one_set_add_up(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let student = world.actor("student1").await;
    let tasks: Vec<String> = sqlx::query_scalar("SELECT id::text FROM task ORDER BY id LIMIT 3")
        .fetch_all(&world.pool)
        .await
        .unwrap();
    let arrivals = tasks
        .iter()
        .map(|task| (&student, arrival(&format!("key {task}"), task, 1, "x")))
        .collect();
    let running = gather(&world, &wire, arrivals).await;
    wire.release();
    assert_eq!(statuses(running).await, [201, 201, 201, 201]);
    let sum = "SELECT balance FROM points_balance WHERE account_id = (SELECT id FROM account WHERE name = 'student1')";
    assert_eq!(world.count(sum).await, 30);
    let seen = wire.take_seen();
    assert!(!seen.contains(&"error".to_owned()), "{seen:?}");
    // What was held is let go, and all others are one set.
    let sets = seen.iter().filter(|text| text.starts_with("BEGIN"));
    assert_eq!(sets.count(), 1, "{seen:?}");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn one_record_that_is_locked_for_long_holds_up_nobody_of_its_set(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let practice = world.practice().await;
    let (first, second) = (world.actor("student1").await, world.actor("student2").await);
    let mut running = gather(
        &world,
        &wire,
        vec![
            (&first, arrival("locked", &practice, 1, "x")),
            (&second, arrival("free", &practice, 1, "x")),
        ],
    )
    .await;
    let mut lock = world.pool.begin().await.unwrap();
    take(
        &mut lock,
        "SELECT FROM idempotency_record WHERE idem_key = 'locked' FOR UPDATE",
    )
    .await;
    wire.release();
    let free = running.pop().unwrap();
    let free = tokio::time::timeout(Duration::from_secs(6), free).await;
    assert_eq!(free.expect("held up").unwrap().status, 201);
    assert!(!running[1].is_finished());
    lock.rollback().await.unwrap();
    assert_eq!(statuses(running).await, [201, 201]);
}

/// The guard leaves out what was taken over. Behind it the record's update would notice too, but then nothing of the whole set
/// could be committed.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_claim_that_was_taken_over_costs_the_others_of_its_set_nothing(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let practice = world.practice().await;
    let (first, second) = (world.actor("student1").await, world.actor("student2").await);
    for taken_over in [
        "UPDATE idempotency_record SET epoch = 2, version = 2 WHERE idem_key = 'late 1'",
        "UPDATE idempotency_record SET claim_token = gen_random_uuid() WHERE idem_key = 'late 2'",
    ] {
        let attempt = 1 + i32::try_from(world.count(SUBMISSIONS_OF_SECOND).await).unwrap();
        let set = vec![
            (
                &first,
                arrival(&format!("late {attempt}"), &practice, 1, "x"),
            ),
            (
                &second,
                arrival(&format!("good {attempt}"), &practice, attempt, "x"),
            ),
        ];
        let mut running = gather(&world, &wire, set).await;
        world.execute(taken_over).await;
        wire.release();
        let good = running.pop().unwrap().await.unwrap();
        let late = running.pop().unwrap().await.unwrap();
        assert_eq!((good.status, late.status), (201, 202));
        // The set, and the late owner's look at what is true.
        let seen = wire.take_seen();
        let transactions = seen.iter().filter(|text| text.starts_with("BEGIN"));
        assert_eq!(transactions.count(), 2, "{seen:?}");
        running.pop().unwrap().await.unwrap();
        world.execute("DELETE FROM idempotency_record").await;
    }
    let late = "SELECT count(*) FROM submission WHERE student_id = (SELECT id FROM account WHERE name = 'student1')";
    assert_eq!(world.count(late).await, 0);
}
