//! What teachers do, and that students, teachers and parents see the same.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::{Answer, World, fresh_submission, request};

const TASKS: &str = "/api/v1/tasks";

fn new_task() -> Value {
    json!({
        "class_id": "1", "title": "作文", "instructions": "写一篇短文。", "kind": "assignment",
        "due_at": "2999-01-05T18:00:00+08:00", "closes_at": "2999-01-06T10:00:00Z",
    })
}

async fn reopen(world: &World, token: &str, task: &str, student: &str) -> Answer {
    let body = json!({ "student_id": student }).to_string();
    let path = format!("/api/v1/tasks/{task}/reopening");
    let request = request(Method::POST, &path, token)
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    world.send(request).await
}

async fn id_of(world: &World, name: &str) -> String {
    let found = world.engine.list_accounts(&[name.to_owned()], None).await;
    found.unwrap().pop().unwrap().id.to_string()
}

async fn points(world: &World, token: &str) -> i64 {
    let answer = world.get(token, "/api/v1/points").await.json();
    answer["balance"].as_i64().unwrap()
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn two_clicks_make_one_task_and_the_students_have_it(pool: PgPool) {
    let world = World::new(pool).await;
    let (teacher, student) = (world.token("teacher1").await, world.token("student1").await);
    let body = new_task().to_string();
    let clicks = (0..8).map(|_| world.submit(&teacher, TASKS, "form", &body));
    let answers = futures::future::join_all(clicks).await;
    let mut new = 0;
    for answer in &answers {
        assert_eq!(answer.status, 201, "{answer:?}");
        assert_eq!(answer.body, answers[0].body);
        new += i32::from(answer.header("idempotency-status") == Some("new"));
    }
    assert_eq!(new, 1);
    assert_eq!(
        world
            .count("SELECT count(*) FROM task WHERE NOT is_demo")
            .await,
        1
    );
    let again = world.submit(&teacher, TASKS, "form", &body).await;
    assert_eq!(again.header("idempotency-status"), Some("reused"));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));

    let id = answers[0].json()["id"].as_str().unwrap().to_owned();
    let seen = world.get(&student, &format!("{TASKS}/{id}")).await.json();
    assert_eq!(
        (&seen["title"], &seen["status"], &seen["due_at"]),
        (
            &json!("作文"),
            &json!("pending"),
            &json!("2999-01-05T10:00:00Z")
        )
    );
    let audited = "SELECT count(*) FROM audit_entry WHERE action = 'task.create'";
    assert_eq!(world.count(audited).await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_form_that_was_loaded_anew_finds_the_task_that_it_made(pool: PgPool) {
    let world = World::new(pool).await;
    let teacher = world.token("teacher1").await;
    let body = new_task().to_string();
    let first = world.submit(&teacher, TASKS, "one", &body).await;
    // The same moment, said otherwise, and edges that only a text field adds.
    let mut same = new_task();
    same["due_at"] = json!("2999-01-05T10:00:00.000Z");
    same["title"] = json!(" 作文 ");
    let second = world
        .submit(&teacher, TASKS, "two", &same.to_string())
        .await;
    assert_eq!((second.status.as_u16(), &second.body), (200, &first.body));
    assert_eq!(
        second.header("idempotency-status"),
        Some("constraint-conflict")
    );

    let mut other = new_task();
    other["title"] = json!("另一篇");
    let reused = world
        .submit(&teacher, TASKS, "one", &other.to_string())
        .await;
    assert_eq!(
        (reused.status.as_u16(), reused.code().as_str()),
        (422, "key-reused")
    );
    assert_eq!(reused.header("idempotency-status"), Some("mismatch"));
    assert_eq!(
        world
            .submit(&teacher, TASKS, "three", &other.to_string())
            .await
            .status,
        201
    );
    assert_eq!(
        world
            .count("SELECT count(*) FROM task WHERE NOT is_demo")
            .await,
        2
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_task_that_cannot_be_meant_is_told_what_to_mend(pool: PgPool) {
    let world = World::new(pool).await;
    let teacher = world.token("teacher1").await;
    let long = "x".repeat(201);
    for (member, value, status) in [
        ("class_id", json!("999"), 404),
        ("class_id", json!("x"), 404),
        ("title", json!("  "), 400),
        ("title", json!(long), 400),
        ("title", json!("a\nb"), 400),
        ("instructions", json!(" "), 400),
        ("instructions", json!("a\u{0}b"), 400),
        ("kind", json!("exam"), 400),
        ("due_at", json!("tomorrow"), 400),
        ("due_at", json!("2999-01-07T10:00:00Z"), 400),
        ("closes_at", json!("2020-01-01T00:00:00Z"), 400),
        ("more", json!(1), 400),
    ] {
        let mut body = new_task();
        body[member] = value.clone();
        if member == "closes_at" {
            body["due_at"] = Value::Null;
        }
        let answer = world
            .submit(&teacher, TASKS, "key", &body.to_string())
            .await;
        assert_eq!(answer.status.as_u16(), status, "{member} {value}");
    }
    let unkeyed = request(Method::POST, TASKS, &teacher)
        .header("content-type", "application/json")
        .body(Body::from(new_task().to_string()))
        .unwrap();
    assert_eq!(world.send(unkeyed).await.code(), "key-missing");
    assert_eq!(
        world
            .count("SELECT count(*) FROM task WHERE NOT is_demo")
            .await,
        0
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_reopened_task_takes_one_more_version_without_points(pool: PgPool) {
    let world = World::new(pool).await;
    let (teacher, student) = (world.token("teacher1").await, world.token("student1").await);
    let id = id_of(&world, "student1").await;
    let untouched = reopen(&world, &teacher, "1", &id).await.json();
    assert_eq!(
        (&untouched["submit_version"], &untouched["status"]),
        (&json!(1), &json!("pending")),
        "nothing was handed in, so nothing is reopened"
    );
    let path = "/api/v1/tasks/1/submissions";
    let first = world
        .submit(&student, path, "one", &fresh_submission(1))
        .await;
    assert_eq!(
        (first.status.as_u16(), points(&world, &student).await),
        (201, 10)
    );

    // Two clicks at the same moment, and one more: all see the same.
    let clicks = (0..6).map(|_| reopen(&world, &teacher, "1", &id));
    for answer in futures::future::join_all(clicks).await {
        let task = answer.json();
        assert_eq!(
            (&task["submit_version"], &task["status"]),
            (&json!(2), &json!("pending"))
        );
    }
    assert_eq!(world.count("SELECT count(*) FROM task_reopening").await, 1);
    let audited = "SELECT count(*) FROM audit_entry WHERE action = 'task.reopen'";
    assert_eq!(world.count(audited).await, 1);

    let old = world
        .submit(&student, path, "two", &fresh_submission(1))
        .await;
    assert_eq!(old.code(), "already-submitted");
    let second = world
        .submit(&student, path, "three", &fresh_submission(2))
        .await;
    assert_eq!(
        (second.status.as_u16(), points(&world, &student).await),
        (201, 10)
    );
    let listed = world.get(&student, path).await.json();
    let lines: Vec<_> = listed["submissions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            (
                line["submit_version"].as_i64(),
                line["points"].as_i64(),
                line["client_id"].as_str(),
            )
        })
        .collect();
    let expected = [
        (Some(2), Some(0), Some("device")),
        (Some(1), Some(10), Some("device")),
    ];
    assert_eq!(lines, expected);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_late_second_click_of_an_old_page_reopens_nothing_more(pool: PgPool) {
    let world = World::new(pool).await;
    let student = world.token("student1").await;
    let id = id_of(&world, "student1").await;
    let names = ["teacher1".to_owned()];
    let teacher = world
        .engine
        .list_accounts(&names, None)
        .await
        .unwrap()
        .pop()
        .unwrap();
    let path = "/api/v1/tasks/1/submissions";
    world
        .submit(&student, path, "one", &fresh_submission(1))
        .await;
    let click = || world.engine.reopen_task(&teacher, "1", &id, Some(1));
    assert_eq!(click().await.unwrap().unwrap().submit_version, 2);
    world
        .submit(&student, path, "two", &fresh_submission(2))
        .await;
    assert_eq!(click().await.unwrap().unwrap().submit_version, 2);
    assert_eq!(world.count("SELECT count(*) FROM task_reopening").await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn reopening_lets_a_student_in_after_the_closing_and_only_that_student(pool: PgPool) {
    let world = World::new(pool).await;
    let teacher = world.token("teacher1").await;
    let (one, two) = (world.token("student1").await, world.token("student2").await);
    let path = "/api/v1/tasks/1/submissions";
    world.submit(&one, path, "one", &fresh_submission(1)).await;
    sqlx::query("UPDATE task SET closes_at = clock_timestamp() - interval '1 minute' WHERE id = 1")
        .execute(&world.pool)
        .await
        .unwrap();
    let id = id_of(&world, "student1").await;
    let task = reopen(&world, &teacher, "1", &id).await.json();
    assert_eq!(
        (&task["submit_version"], &task["closes_at"]),
        (&json!(2), &Value::Null)
    );
    let again = world.submit(&one, path, "two", &fresh_submission(2)).await;
    assert_eq!(again.status, 201);
    let late = world.submit(&two, path, "one", &fresh_submission(1)).await;
    assert_eq!(late.code(), "task-closed");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_practice_is_never_reopened_and_nobody_else_s_student_is(pool: PgPool) {
    let world = World::new(pool).await;
    let (teacher, student) = (world.token("teacher1").await, world.token("student1").await);
    let id = id_of(&world, "student1").await;
    let practice = "/api/v1/tasks/4/submissions";
    world
        .submit(&student, practice, "one", &fresh_submission(1))
        .await;
    let task = reopen(&world, &teacher, "4", &id).await.json();
    assert_eq!(
        (&task["kind"], &task["submit_version"]),
        (&json!("practice"), &json!(2))
    );
    assert_eq!(world.count("SELECT count(*) FROM task_reopening").await, 0);

    sqlx::query("DELETE FROM class_member WHERE account_id = $1::text::bigint")
        .bind(&id)
        .execute(&world.pool)
        .await
        .unwrap();
    assert_eq!(reopen(&world, &teacher, "1", &id).await.status, 404);
    let himself = id_of(&world, "teacher1").await;
    assert_eq!(reopen(&world, &teacher, "1", &himself).await.status, 404);
    assert_eq!(reopen(&world, &teacher, "1", "x").await.status, 404);
    let path = format!("/progress/students/{id}/tasks/1");
    assert_eq!(world.get(&teacher, &path).await.status, 404);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn student_teacher_and_parent_see_the_same_at_every_step(pool: PgPool) {
    let world = World::new(pool).await;
    let teacher = world.token("teacher1").await;
    let (student, parent) = (world.token("student1").await, world.token("parent1").await);
    let id = id_of(&world, "student1").await;
    let path = "/api/v1/tasks/1/submissions";
    for step in ["nothing", "submit", "reopen", "submit again"] {
        match step {
            "submit" => assert_eq!(
                world
                    .submit(&student, path, step, &fresh_submission(1))
                    .await
                    .status,
                201
            ),
            "reopen" => assert_eq!(reopen(&world, &teacher, "1", &id).await.status, 200),
            "submit again" => {
                assert_eq!(
                    world
                        .submit(&student, path, step, &fresh_submission(2))
                        .await
                        .status,
                    201
                );
            }
            _ => {}
        }
        let facts = |task: &Value, id: &str, submission: Value, at: Value| {
            json!([
                task[id],
                task["title"],
                task["kind"],
                task["due_at"],
                task["status"],
                submission,
                at
            ])
        };
        let own: Vec<Value> = world.get(&student, TASKS).await.json()["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| {
                facts(
                    t,
                    "id",
                    t["submission"]["id"].clone(),
                    t["submission"]["created_at"].clone(),
                )
            })
            .collect();
        let listed = |tasks: &Value| -> Vec<Value> {
            let tasks = tasks.as_array().unwrap().iter();
            tasks
                .map(|t| {
                    facts(
                        t,
                        "task_id",
                        t["submission_id"].clone(),
                        t["submitted_at"].clone(),
                    )
                })
                .collect()
        };
        let report = world
            .get(&parent, &format!("/api/v1/children/{id}/report"))
            .await;
        assert_eq!(listed(&report.json()["tasks"]), own, "parent after {step}");
        let progress = world
            .get(&teacher, "/api/v1/classes/1/progress")
            .await
            .json();
        let students = progress["students"].as_array().unwrap();
        let seen = students.iter().find(|s| s["id"] == json!(id)).unwrap();
        assert_eq!(listed(&seen["tasks"]), own, "teacher after {step}");
    }
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_class_is_read_a_page_at_a_time_or_whole(pool: PgPool) {
    let world = World::new(pool).await;
    let hash = "x".to_owned();
    world.engine.load_demo(25, &hash).await.unwrap();
    let teacher = world.token("teacher1").await;
    let student = world.token("student1").await;
    world
        .submit(
            &student,
            "/api/v1/tasks/1/submissions",
            "one",
            &fresh_submission(1),
        )
        .await;
    let read = async |query: &str| {
        let path = format!("/api/v1/classes/1/progress{query}");
        world.get(&teacher, &path).await.json()
    };
    let ids = |page: &Value| -> Vec<String> {
        let students = page["students"].as_array().unwrap().iter();
        students
            .map(|s| s["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let whole = read("").await;
    assert_eq!((ids(&whole).len(), &whole["next"]), (25, &Value::Null));
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let page = read(&format!("?limit=10{after}")).await;
        paged.extend(ids(&page));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(paged, ids(&whole));
    assert_eq!(ids(&read("?limit=200&open=1").await).len(), 24);
    assert_eq!(
        ids(&read("?limit=200&q=student2").await).len(),
        7,
        "2 and 20 to 25"
    );
    assert_eq!(
        ids(&read("?limit=200&q=stud%25").await).len(),
        0,
        "a sign is only a sign"
    );
    for wrong in ["?limit=0", "?limit=201", "?limit=x", "?more=1", "?q=%00"] {
        let path = format!("/api/v1/classes/1/progress{wrong}");
        assert_eq!(
            world.get(&teacher, &path).await.code(),
            "invalid-query",
            "{wrong}"
        );
    }
}

/// Holds the numbers of a class to the lines of its students.
async fn rates_agree(world: &World, teacher: &engine::Actor, step: &str) -> i64 {
    use domain::view::{StudentFilter, TaskStatus};
    let filter = StudentFilter::default();
    let overview = world.engine.class_overview(teacher, "1", &filter).await;
    let overview = overview.unwrap().unwrap();
    let students = i64::try_from(overview.progress.students.len()).unwrap();
    assert_eq!(overview.students, students, "{step}");
    for rate in &overview.rates {
        let lines = overview.progress.students.iter().flat_map(|s| &s.tasks);
        let lines: Vec<_> = lines.filter(|t| t.task_id == rate.task_id).collect();
        let done = lines.iter().filter(|t| t.status == TaskStatus::Submitted);
        assert_eq!(
            (rate.submitted, rate.students),
            (
                i64::try_from(done.count()).unwrap(),
                i64::try_from(lines.len()).unwrap()
            ),
            "{} after {step}",
            rate.title
        );
    }
    overview.rates.iter().map(|rate| rate.submitted).sum()
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_rates_of_a_class_count_the_same_lines_at_every_step(pool: PgPool) {
    let world = World::new(pool).await;
    let (one, two) = (world.token("student1").await, world.token("student2").await);
    let id = id_of(&world, "student1").await;
    let names = ["teacher1".to_owned()];
    let teacher = world
        .engine
        .list_accounts(&names, None)
        .await
        .unwrap()
        .pop()
        .unwrap();
    let submit = async |token: &str, task: u32, version: u32| {
        let path = format!("/api/v1/tasks/{task}/submissions");
        let key = format!("{task} {version}");
        let answer = world
            .submit(token, &path, &key, &fresh_submission(version))
            .await;
        assert_eq!(answer.status, 201);
    };
    let reopen = async || {
        let opened = world.engine.reopen_task(&teacher, "1", &id, None).await;
        assert!(opened.unwrap().is_some());
    };
    assert_eq!(rates_agree(&world, &teacher, "nothing").await, 0);
    submit(&one, 1, 1).await;
    submit(&two, 1, 1).await;
    assert_eq!(rates_agree(&world, &teacher, "two submissions").await, 2);
    submit(&one, 4, 1).await;
    submit(&one, 4, 2).await;
    assert_eq!(rates_agree(&world, &teacher, "two attempts").await, 3);
    reopen().await;
    assert_eq!(rates_agree(&world, &teacher, "a reopening").await, 2);
    submit(&one, 1, 2).await;
    assert_eq!(rates_agree(&world, &teacher, "the second version").await, 3);
    reopen().await;
    assert_eq!(rates_agree(&world, &teacher, "another reopening").await, 2);
    sqlx::query("DELETE FROM class_member WHERE account_id = $1::text::bigint")
        .bind(&id)
        .execute(&world.pool)
        .await
        .unwrap();
    assert_eq!(rates_agree(&world, &teacher, "a student has left").await, 1);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_request_tells_how_long_its_owner_is_presumed_alive(pool: PgPool) {
    let world = World::new(pool).await;
    let student = world.token("student1").await;
    let path = "/api/v1/requests/one?action=task_submit";
    world
        .submit(
            &student,
            "/api/v1/tasks/1/submissions",
            "one",
            &fresh_submission(1),
        )
        .await;
    let done = world.get(&student, path).await.json();
    assert_eq!(done["lease_remaining_ms"], Value::Null);
    for (lease, expired) in [("20 seconds", false), ("-1 seconds", true)] {
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "UPDATE idempotency_record SET state = 'PROCESSING', lease_until = clock_timestamp() + interval '{lease}',
             response_status = NULL, response_body = NULL, response_location = NULL, expires_at = NULL"
        )))
        .execute(&world.pool)
        .await
        .unwrap();
        let found = world.get(&student, path).await.json();
        let left = found["lease_remaining_ms"].as_i64().unwrap();
        assert_eq!(left == 0, expired, "{left}");
        assert!(left <= 20_000, "{left}");
    }
}
