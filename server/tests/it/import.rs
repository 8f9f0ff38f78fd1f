//! `server import`: what each kind of row comes to, and that running it again changes nothing.

use std::{
    io::{Cursor, Write},
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use domain::{IdempotencyKey, action::TASK_SUBMIT};
use engine::{Arrival, Engine};
use server::import::{
    ImportError, Imported, Stop,
    file::RowFile,
    import_rows,
    progress::Progress,
    report::{Rejects, Report},
};
use sqlx::{ConnectOptions, PgPool};

use crate::support::World;

const HEADER: &str = "task_id,student,submit_version,content\n";
/// The demo's practice task.
const PRACTICE: &str = "4";

/// What is written to it can be read by whoever holds another handle.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Imports rows; the list of rejects is sorted, because rows are decided in no order.
async fn import(engine: &Engine, csv: impl Into<Vec<u8>>) -> (Imported, Vec<String>) {
    import_until(engine, csv, &Stop::default()).await
}

async fn import_until(
    engine: &Engine,
    csv: impl Into<Vec<u8>>,
    stop: &Stop,
) -> (Imported, Vec<String>) {
    let file = RowFile::open(Cursor::new(csv.into())).unwrap();
    let output = Shared::default();
    let mut rejects = Rejects::new(Box::new(output.clone()));
    let imported = import_rows(engine, file, &mut rejects, &mut Progress::hidden(), stop).await;
    drop(rejects);
    let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_by_key(|line| {
        line.split(',')
            .next()
            .unwrap_or_default()
            .parse()
            .unwrap_or(0)
    });
    (imported, lines)
}

/// Students `pupil1` … in the demo's class.
async fn add_pupils(pool: &PgPool, count: i64) {
    sqlx::query(
        "WITH added AS (
             INSERT INTO account (name, role, password_hash)
             SELECT 'pupil' || n, 'student', '-' FROM generate_series(1, $1) n RETURNING id
         )
         INSERT INTO class_member (class_id, account_id) SELECT c.id, a.id FROM class c, added a",
    )
    .bind(count)
    .execute(pool)
    .await
    .unwrap();
}

/// Nothing is there twice, and everything that belongs to a submission is there.
async fn assert_each_row_has_its_effects_once(world: &World, rows: i64) {
    for (sql, expected) in [
        ("SELECT count(*) FROM submission", rows),
        (
            "SELECT count(*) FROM points_entry WHERE source_kind = 'submission'",
            rows,
        ),
        ("SELECT count(*) FROM outbox", rows),
        (
            "SELECT coalesce(sum(balance), 0)::bigint FROM points_balance",
            rows * 10,
        ),
        (
            "SELECT count(*) FROM idempotency_record WHERE state NOT IN ('SUCCEEDED', 'FAILED_FINAL')",
            0,
        ),
        (
            "SELECT count(*) FROM points_balance b
             WHERE balance <> (SELECT sum(amount) FROM points_entry e WHERE e.account_id = b.account_id)",
            0,
        ),
    ] {
        assert_eq!(world.count(sql).await, expected, "{sql}");
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn every_kind_of_row_is_told_apart_and_a_second_run_changes_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let [one, two] = [world.token("student1").await, world.token("student2").await];
    // What others handed in before: task 1 of student1 through the API, task 1 of student2 by plain SQL.
    let body = r#"{"submit_version":1,"client_id":"phone","content":"by phone"}"#;
    let earlier = world
        .submit(&one, "/api/v1/tasks/1/submissions", "phone", body)
        .await;
    assert_eq!(earlier.status, 201);
    sqlx::query("INSERT INTO submission (task_id, student_id, submit_version, content) SELECT 1, id, 1, 'by hand' FROM account WHERE name = 'student2'")
        .execute(&world.pool)
        .await
        .unwrap();
    sqlx::query("UPDATE task SET closes_at = now() - interval '1 hour' WHERE id = 3")
        .execute(&world.pool)
        .await
        .unwrap();
    let mut csv = format!("\u{feff}{HEADER}")
        .replace('\n', "\r\n")
        .into_bytes();
    csv.extend(
        [
            "2,student1,1,\"first line\r\nsecond, \"\"quoted\"\" 行\"", // 2
            "2,student2,1,work",                                        // 4
            "2,student2,1,work",                                        // 5: the same row again
            "1,student1,1,by phone",                                    // 6
            "1,student2,1,by hand",                                     // 7
            "1,student1,1,something else",                              // 8
            "3,student1,1,too late",                                    // 9
            "99,student1,1,no such task",                               // 10
            "2,student1,2,not reopened",                                // 11
            "2,student1,1",                                             // 12
            "x,student1,1,work",                                        // 13
            "2,student1,one,work",                                      // 14
            "2,nobody,1,work",                                          // 15
            "2,teacher1,1,work",                                        // 16
            "2,student1,1,\" \"",                                       // 17
            "2,student1,1,a\0b",                                        // 18
        ]
        .join("\r\n")
        .bytes(),
    );
    csv.extend(b"\r\n2,student1,1,\xff\r\n\r\n4,student1,1,last"); // 19, 21
    let expected = Report {
        new: 3,
        reused: 1,
        conflict_same: 2,
        conflict_other: 1,
        refused: [
            ("task-closed".to_owned(), 1),
            ("task-not-assigned".to_owned(), 1),
            ("version-not-current".to_owned(), 1),
        ]
        .into(),
        invalid: 8,
        failed: 0,
    };
    let (imported, rejects) = import(&world.engine, csv.clone()).await;
    assert!(imported.end.is_ok(), "{:?}", imported.end);
    assert_eq!(imported.report, expected);
    let location = earlier.header("location").unwrap();
    assert_eq!(
        rejects,
        [
            "line,task_id,student,submit_version,outcome,reason".to_owned(),
            format!("8,1,student1,1,conflict_other,\"already-submitted: another content was handed in already, {location}; have the task reopened and use the next version\""),
            "9,3,student1,1,refused,task-closed: Ask the teacher whether it can be reopened.".to_owned(),
            "10,99,student1,1,refused,task-not-assigned: Reload the list of tasks.".to_owned(),
            "11,2,student1,2,refused,version-not-current: Fetch the task again and send the version that it gives.".to_owned(),
            "12,2,student1,1,invalid,\"the row has 3 columns instead of 4; put a text that holds commas, quotation marks or line breaks in quotation marks\"".to_owned(),
            "13,x,student1,1,invalid,\"task_id must be a whole number from 1, such as 12\"".to_owned(),
            "14,2,student1,one,invalid,\"submit_version must be a whole number from 1, such as 1\"".to_owned(),
            "15,2,nobody,1,invalid,\"there is no student of this name; correct the name, or add the account first\"".to_owned(),
            "16,2,teacher1,1,invalid,\"there is no student of this name; correct the name, or add the account first\"".to_owned(),
            "17,2,student1,1,invalid,content is blank; write what was handed in".to_owned(),
            "18,2,student1,1,invalid,content holds the NUL character; take it out".to_owned(),
            "19,2,student1,1,invalid,content is not UTF-8; save the file as UTF-8".to_owned(),
        ]
    );
    assert_each_row_has_its_effects_once(&world, 5).await;
    let content: String = sqlx::query_scalar("SELECT content FROM submission s JOIN account a ON a.id = s.student_id WHERE task_id = 2 AND name = 'student1'")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(content, "first line\r\nsecond, \"quoted\" 行");
    // Whoever looks at a submission finds the import behind it.
    world.engine.flush().await;
    let found = world
        .get(
            &two,
            &format!(
                "/api/v1/requests/{}?action=task_submit",
                key_of(&world, "2", "student2", "work").await
            ),
        )
        .await;
    assert_eq!(found.json()["arrivals"], 2);
    let by_import = sqlx::query_scalar::<_, i64>(
        "SELECT count(*) FROM request_arrival WHERE client_id = 'import' AND trace_id = $1",
    )
    .bind(&imported.trace_id)
    .fetch_one(&world.pool)
    .await
    .unwrap();
    assert_eq!(by_import, 10);

    let (second, _) = import(&world.engine, csv).await;
    assert_eq!(
        second.report,
        Report {
            new: 0,
            reused: 6,
            conflict_same: 0,
            ..expected
        },
        "what was refused before is refused again, and is not taken for reused"
    );
    assert_each_row_has_its_effects_once(&world, 5).await;
}

async fn key_of(world: &World, task_id: &str, student: &str, content: &str) -> String {
    let found = world.engine.list_students(&[student.to_owned()]).await;
    let id = found.unwrap()[0].id.to_string();
    domain::key::import_key(task_id, &id, 1, content)
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_same_rows_in_another_order_and_with_others_are_reused(pool: PgPool) {
    let world = World::new(pool).await;
    add_pupils(&world.pool, 600).await;
    let row = |n: u32| format!("2,pupil{n},1,work of {n}\n");
    let (first, rejects) = import(
        &world.engine,
        HEADER.to_owned() + &(1..=500).map(row).collect::<String>(),
    )
    .await;
    assert_eq!((first.report.new, first.report.rows()), (500, 500));
    assert!(rejects.is_empty());
    let other_columns = "content,submit_version,student,task_id\n".to_owned()
        + &(1..=600)
            .rev()
            .map(|n| format!("\"work of {n}\",1,pupil{n},2\r\n"))
            .collect::<String>();
    let (second, _) = import(&world.engine, other_columns).await;
    assert_eq!(
        (
            second.report.reused,
            second.report.new,
            second.report.rows()
        ),
        (500, 100, 600)
    );
    assert_each_row_has_its_effects_once(&world, 600).await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn attempts_at_a_practice_task_are_taken_in_the_order_of_the_file(pool: PgPool) {
    let world = World::new(pool).await;
    add_pupils(&world.pool, 20).await;
    let rows: String = (1..=20)
        .flat_map(|pupil| {
            (1..=12).map(move |n| format!("{PRACTICE},pupil{pupil},{n},attempt {n}\n"))
        })
        .collect();
    let (imported, rejects) = import(&world.engine, HEADER.to_owned() + &rows).await;
    assert_eq!(imported.report.new, 240, "{rejects:?}");
    assert_each_row_has_its_effects_once(&world, 240).await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_corrected_row_meets_the_constraint_and_never_a_mismatch(pool: PgPool) {
    let world = World::new(pool).await;
    let csv = |content: &str| format!("{HEADER}2,student1,1,{content}\n");
    assert_eq!(import(&world.engine, csv("draft")).await.0.report.new, 1);
    let (corrected, rejects) = import(&world.engine, csv("final")).await;
    assert_eq!(corrected.report.conflict_other, 1);
    assert!(rejects[1].contains("/api/v1/submissions/"), "{rejects:?}");
    assert_each_row_has_its_effects_once(&world, 1).await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_import_beside_a_running_execution_waits_for_its_result(pool: PgPool) {
    let world = World::new(pool).await;
    let student = world
        .engine
        .list_students(&["student1".to_owned()])
        .await
        .unwrap()
        .remove(0);
    let key = key_of(&world, "2", "student1", "work").await;
    // Another process holds the business row; whoever comes first waits behind it while it executes.
    let mut other = world.pool.begin().await.unwrap();
    sqlx::query("INSERT INTO submission (task_id, student_id, submit_version, content) VALUES (2, $1, 1, 'work')")
        .bind(student.id)
        .execute(&mut *other)
        .await
        .unwrap();
    let arrival = Arrival {
        action: TASK_SUBMIT,
        key: IdempotencyKey::from_text(&key).unwrap(),
        command: serde_json::json!({"task_id": "2", "submit_version": 1, "content": "work"}),
        client_id: "import".into(),
        trace_id: "0".repeat(32),
        wait: Duration::ZERO,
    };
    let another = world.another_instance().await;
    let running = tokio::spawn(async move { another.submit(&student, arrival).await });
    until(&world.pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())").await;
    let importing = {
        let engine = world.engine.clone();
        tokio::spawn(async move { import(&engine, format!("{HEADER}2,student1,1,work\n")).await })
    };
    // It has found the record and looks at it again and again.
    until(&world.pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%FROM idempotency_record WHERE id = $1 AND subject_id%' AND query NOT LIKE '%pg_stat_activity%' AND datname = current_database())").await;
    other.rollback().await.unwrap();
    assert_eq!(running.await.unwrap().unwrap().status, 201);
    assert_eq!(importing.await.unwrap().0.report.reused, 1);
    assert_each_row_has_its_effects_once(&world, 1).await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_stopped_import_finishes_what_is_on_its_way_and_goes_on_later(pool: PgPool) {
    let world = World::new(pool).await;
    add_pupils(&world.pool, 2_000).await;
    let csv = HEADER.to_owned()
        + &(1..=2_000)
            .map(|n| format!("2,pupil{n},1,work of {n}\n"))
            .collect::<String>();
    let blocker = block(&world.pool, "pupil700").await;
    let stop = Stop::default();
    let importing = {
        let (engine, csv, stop) = (world.engine.clone(), csv.clone(), stop.clone());
        tokio::spawn(async move { import_until(&engine, csv, &stop).await })
    };
    until(&world.pool, "SELECT count(*) >= 400 FROM submission").await;
    stop.take_no_more();
    blocker.rollback().await.unwrap();
    let (stopped, rejects) = importing.await.unwrap();
    assert!(
        matches!(stopped.end, Err(ImportError::Stopped)),
        "{:?}",
        stopped.end
    );
    let taken = stopped.report.new;
    assert_eq!(stopped.report.rows(), taken, "{rejects:?}");
    assert!((400..2_000).contains(&taken), "{taken}");
    assert_each_row_has_its_effects_once(&world, i64::try_from(taken).unwrap()).await;

    let (resumed, _) = import(&world.engine, csv).await;
    assert_eq!(
        (resumed.report.reused, resumed.report.new),
        (taken, 2_000 - taken)
    );
    assert_each_row_has_its_effects_once(&world, 2_000).await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_second_stop_leaves_what_is_on_its_way_and_reports_it_as_failed(pool: PgPool) {
    let world = World::new(pool).await;
    let blocker = block(&world.pool, "student1").await;
    let stop = Stop::default();
    let importing = {
        let (engine, stop) = (world.engine.clone(), stop.clone());
        let csv = format!("{HEADER}2,student1,1,work\n");
        tokio::spawn(async move { import_until(&engine, csv, &stop).await })
    };
    until(&world.pool, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())").await;
    stop.wait_no_more();
    let (stopped, rejects) = importing.await.unwrap();
    assert_eq!((stopped.report.failed, stopped.report.rows()), (1, 1));
    assert!(
        rejects[1].ends_with("run the same command again"),
        "{rejects:?}"
    );
    blocker.rollback().await.unwrap();
}

/// Holds a student's business row back, so that whoever wants to write it waits, and all sets behind it too.
async fn block(pool: &PgPool, student: &str) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let mut transaction = pool.begin().await.unwrap();
    sqlx::query("INSERT INTO submission (task_id, student_id, submit_version, content) SELECT 2, id, 1, 'held back' FROM account WHERE name = $1")
        .bind(student)
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction
}

/// Waits until a condition holds in the database.
async fn until(pool: &PgPool, condition: &'static str) {
    tokio::time::timeout(Duration::from_secs(30), async {
        while !sqlx::query_scalar::<_, bool>(condition)
            .fetch_one(pool)
            .await
            .unwrap()
        {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("this did not become true: {condition}"));
}

/// The real program on this test's database.
fn server(pool: &PgPool, args: &[&str]) -> Command {
    let url = pool.connect_options().to_url_lossy();
    let mut command = Command::new(env!("CARGO_BIN_EXE_server"));
    command
        .args(args)
        .env("DATABASE_URL", url.as_str())
        .env_remove("YICI_DIRECT_DATABASE_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

async fn run(pool: &PgPool, args: &[&str]) -> Output {
    let mut command = server(pool, args);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The number that stands beside a name in the printed table.
fn number(output: &Output, name: &str) -> u64 {
    let table = stdout(output);
    let line = table.lines().find(|line| line.trim().starts_with(name));
    let line = line.unwrap_or_else(|| panic!("{name} is not in {table} {}", stderr(output)));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_killed_import_is_completed_by_the_next_and_no_row_is_there_twice(pool: PgPool) {
    let world = World::new(pool).await;
    add_pupils(&world.pool, 3_000).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.csv");
    let rows: String = (1..=3_000)
        .map(|n| format!("2,pupil{n},1,\"work of {n},\nin two lines\"\n"))
        .collect();
    std::fs::write(&file, HEADER.to_owned() + &rows).unwrap();
    let args = ["import", file.to_str().unwrap()];

    // The blocker makes sure that it cannot be through before it is killed.
    let blocker = block(&world.pool, "pupil1500").await;
    let mut child = server(&world.pool, &args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(&world.pool, "SELECT count(*) >= 1000 FROM submission").await;
    until(
        &world.pool,
        "SELECT EXISTS (SELECT FROM idempotency_record WHERE state = 'PROCESSING')",
    )
    .await;
    child.kill().unwrap();
    child.wait().unwrap();
    blocker.rollback().await.unwrap();
    let left = world.count("SELECT count(*) FROM submission").await;
    assert!((1_000..3_000).contains(&left), "{left}");
    // The killed one's last statements end before its claims are looked at.
    until(&world.pool, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'yici work' AND datname = current_database())").await;
    // Its leases run out; nobody wants to wait for that.
    sqlx::query(
        "UPDATE idempotency_record SET lease_until = clock_timestamp() WHERE state = 'PROCESSING'",
    )
    .execute(&world.pool)
    .await
    .unwrap();
    let done = world.count("SELECT count(*) FROM submission").await;

    let resumed = run(&world.pool, &args).await;
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    assert_eq!(number(&resumed, "rows"), 3_000);
    assert_eq!(number(&resumed, "reused") + number(&resumed, "new"), 3_000);
    assert_eq!(number(&resumed, "reused"), u64::try_from(done).unwrap());
    assert_each_row_has_its_effects_once(&world, 3_000).await;

    let third = run(&world.pool, &args).await;
    assert_eq!(
        (third.status.code(), number(&third, "reused")),
        (Some(0), 3_000)
    );
    assert_each_row_has_its_effects_once(&world, 3_000).await;
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_command_prints_the_report_lists_rejects_and_says_by_its_status_whether_all_was_taken(
    pool: PgPool,
) {
    let world = World::new(pool).await;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (good, bad, header, rejects) = (
        path("good.csv"),
        path("bad.csv"),
        path("header.csv"),
        path("rejects.csv"),
    );
    std::fs::write(&good, format!("{HEADER}2,student1,1,work\n")).unwrap();
    std::fs::write(
        &bad,
        format!("{HEADER}2,student1,1,work\n2,student1,1,other\n2,nobody,1,work\n"),
    )
    .unwrap();
    std::fs::write(&header, "task,student,version,content\n2,student2,1,work\n").unwrap();

    let first = run(&world.pool, &["import", &good]).await;
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    assert_eq!(
        stdout(&first),
        "rows                                1\n\
         new                                 1\n\
         reused                              0\n\
         constraint conflict, same content   0\n\
         conflict, other content             0\n\
         refused                             0\n\
         invalid                             0\n\
         failed                              0\n"
    );
    let listed = run(&world.pool, &["import", &bad, "--rejects", &rejects]).await;
    assert_eq!(listed.status.code(), Some(1));
    assert_eq!(number(&listed, "reused"), 1);
    let list = std::fs::read_to_string(&rejects).unwrap();
    let mut lines: Vec<&str> = list.lines().collect();
    lines.sort_unstable();
    assert!(
        lines[0].starts_with("3,2,student1,1,conflict_other,"),
        "{list}"
    );
    assert!(lines[1].starts_with("4,2,nobody,1,invalid,"), "{list}");
    assert_eq!(lines.len(), 3);
    assert!(stderr(&listed).contains("2 of 3 rows were not taken"));
    let shown = run(&world.pool, &["import", &bad]).await;
    assert!(stderr(&shown).contains("4,2,nobody,1,invalid,"));

    for (args, message) in [
        (vec!["import", &header], "`task` is not known"),
        (vec!["import", "/nowhere/at/all.csv"], "cannot open"),
        (
            vec!["import", &good, "--rejects", &good],
            "the file that is to be imported",
        ),
    ] {
        let refused = run(&world.pool, &args).await;
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains(message), "{}", stderr(&refused));
        assert_eq!(stdout(&refused), "");
    }
    assert!(std::fs::read_to_string(&good).unwrap().contains("work"));
    assert_each_row_has_its_effects_once(&world, 1).await;
}
