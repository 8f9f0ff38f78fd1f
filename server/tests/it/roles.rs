//! Who may do what: every role at every route, in one walk.

use axum::body::Body;
use http::Method;
use sqlx::PgPool;

use crate::support::{NAMES, World, fresh_submission, request};

/// Method, path, and the statuses for nobody, a student, another student, the teacher, the parent, ops and an admin.
pub(crate) const MATRIX: &[(&str, &str, [u16; 7])] = &[
    (
        "GET",
        "/api/v1/session",
        [401, 200, 200, 200, 200, 200, 200],
    ),
    ("GET", "/api/v1/tasks", [401, 200, 200, 403, 403, 403, 403]),
    (
        "GET",
        "/api/v1/tasks/1",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/tasks/999",
        [401, 404, 404, 403, 403, 403, 403],
    ),
    (
        "POST",
        "/api/v1/tasks/2/submissions",
        [401, 201, 201, 403, 403, 403, 403],
    ),
    ("GET", "/api/v1/points", [401, 200, 200, 403, 403, 403, 403]),
    (
        "GET",
        "/api/v1/rewards",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/redemptions",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/redemptions/1",
        [401, 404, 404, 403, 403, 403, 403],
    ),
    // There is no provider here.
    (
        "POST",
        "/api/v1/rewards/1/redemptions",
        [401, 503, 503, 403, 403, 403, 403],
    ),
    // Submission 1 is student1's: the own teacher and the own parent may see it too.
    (
        "GET",
        "/api/v1/submissions/1",
        [401, 200, 404, 200, 200, 404, 404],
    ),
    (
        "GET",
        "/api/v1/requests/first?action=task_submit",
        [401, 200, 404, 404, 404, 404, 404],
    ),
    (
        "GET",
        "/api/v1/classes",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/classes/1/progress",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/classes/2/progress",
        [401, 403, 403, 404, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/children",
        [401, 403, 403, 403, 200, 403, 403],
    ),
    // Child 1 is student1, child 2 is somebody else's.
    (
        "GET",
        "/api/v1/children/1/report",
        [401, 403, 403, 403, 200, 403, 403],
    ),
    (
        "GET",
        "/api/v1/children/2/report",
        [401, 403, 403, 403, 404, 403, 403],
    ),
    ("GET", "/api/v1/panel", [401, 403, 403, 403, 403, 200, 200]),
    (
        "GET",
        "/api/v1/records/1",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "GET",
        "/api/v1/records/999",
        [401, 403, 403, 403, 403, 404, 404],
    ),
    (
        "GET",
        "/api/v1/records.csv",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "GET",
        "/api/v1/arrivals",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "GET",
        "/api/v1/records",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    // The record is the finished first submission: an admin may ask, and is told that there is nothing to do.
    (
        "POST",
        "/api/v1/records/1/compensations",
        [401, 403, 403, 403, 403, 403, 409],
    ),
    (
        "POST",
        "/api/v1/compensations/1/approval",
        [401, 403, 403, 403, 403, 403, 409],
    ),
    (
        "POST",
        "/api/v1/compensations",
        [401, 403, 403, 403, 403, 403, 202],
    ),
    (
        "GET",
        "/api/v1/compensations",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "GET",
        "/api/v1/compensations/bulk/1",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "GET",
        "/api/v1/notifications",
        [401, 403, 403, 200, 200, 403, 403],
    ),
    (
        "POST",
        "/api/v1/outbox/1/replay",
        [401, 403, 403, 403, 403, 403, 409],
    ),
    ("GET", "/api/v1/audit", [401, 403, 403, 403, 403, 200, 200]),
    (
        "POST",
        "/api/fn/list_tasks",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/load_rewards",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/redeem_reward",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/list_notifications",
        [401, 403, 403, 200, 200, 403, 403],
    ),
    ("POST", "/api/fn/panel", [401, 403, 403, 403, 403, 200, 200]),
    (
        "POST",
        "/api/fn/list_stuck_records",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    ("GET", "/metrics", [200, 200, 200, 200, 200, 200, 200]),
    ("GET", "/healthz", [200, 200, 200, 200, 200, 200, 200]),
    ("GET", "/readyz", [200, 200, 200, 200, 200, 200, 200]),
    (
        "GET",
        "/api/openapi.json",
        [200, 200, 200, 200, 200, 200, 200],
    ),
    ("GET", "/api/docs", [200, 200, 200, 200, 200, 200, 200]),
    // What teachers do. Task 1 is the class's, account 1 is student1, account 3 is the teacher.
    ("POST", "/api/v1/tasks", [401, 403, 403, 201, 403, 403, 403]),
    (
        "POST",
        "/api/v1/tasks/1/reopening",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "POST",
        "/api/v1/tasks/999/reopening",
        [401, 403, 403, 404, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/tasks/1/submissions",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/tasks/999/submissions",
        [401, 404, 404, 403, 403, 403, 403],
    ),
    (
        "GET",
        "/api/v1/classes/1/progress?limit=1",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/load_task",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/request_status",
        [401, 200, 200, 403, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/load_progress",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/load_pupil",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/load_pupil_task",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/new_task_form",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/create_task",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/reopen_task",
        [401, 403, 403, 200, 403, 403, 403],
    ),
    (
        "POST",
        "/api/fn/load_report",
        [401, 403, 403, 403, 200, 403, 403],
    ),
    (
        "POST",
        "/api/fn/current_account",
        [200, 200, 200, 200, 200, 200, 200],
    ),
    // Pages: strangers are sent to the sign-in, the wrong role reads why.
    ("GET", "/tasks", [303, 200, 200, 403, 403, 403, 403]),
    ("GET", "/tasks/1", [303, 200, 200, 403, 403, 403, 403]),
    ("GET", "/rewards", [303, 200, 200, 403, 403, 403, 403]),
    ("GET", "/progress", [303, 403, 403, 200, 403, 403, 403]),
    ("GET", "/progress/new", [303, 403, 403, 200, 403, 403, 403]),
    (
        "GET",
        "/progress/students/1",
        [303, 403, 403, 200, 403, 403, 403],
    ),
    (
        "GET",
        "/progress/students/3",
        [303, 403, 403, 404, 403, 403, 403],
    ),
    (
        "GET",
        "/progress/students/1/tasks/1",
        [303, 403, 403, 200, 403, 403, 403],
    ),
    (
        "GET",
        "/progress/students/1/tasks/999",
        [303, 403, 403, 404, 403, 403, 403],
    ),
    ("GET", "/report", [303, 403, 403, 403, 200, 403, 403]),
    (
        "POST",
        "/api/fn/load_sheet",
        [401, 403, 403, 403, 403, 200, 200],
    ),
    (
        "POST",
        "/api/fn/compensate",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/api/fn/decide",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/api/fn/replay_message",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    (
        "POST",
        "/api/fn/start_bulk",
        [401, 403, 403, 403, 403, 403, 200],
    ),
    ("GET", "/records", [303, 403, 403, 403, 403, 200, 200]),
    ("GET", "/records/1", [303, 403, 403, 403, 403, 200, 200]),
    ("GET", "/records/999", [303, 403, 403, 403, 403, 404, 404]),
    ("GET", "/arrivals", [303, 403, 403, 403, 403, 200, 200]),
    ("GET", "/approvals", [303, 403, 403, 403, 403, 200, 200]),
    ("GET", "/compensated", [303, 403, 403, 403, 403, 200, 200]),
    ("GET", "/failures", [303, 403, 403, 403, 403, 200, 200]),
    ("GET", "/audit", [303, 403, 403, 403, 403, 200, 200]),
    (
        "GET",
        "/bulks/new?id=1",
        [303, 403, 403, 403, 403, 403, 200],
    ),
    ("GET", "/bulks/999", [303, 403, 403, 403, 403, 404, 404]),
    ("GET", "/panel", [303, 403, 403, 403, 403, 200, 200]),
];

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn every_role_at_every_route(pool: PgPool) {
    let world = World::new(pool).await;
    let mut tokens = vec![String::new()];
    for name in NAMES {
        tokens.push(world.token(name).await);
    }
    let first = world
        .submit(
            &tokens[1],
            "/api/v1/tasks/1/submissions",
            "first",
            &fresh_submission(1),
        )
        .await;
    assert_eq!(first.status, 201);
    let mut wrong = Vec::new();
    for (method, path, expected) in MATRIX {
        for (who, token) in tokens.iter().enumerate() {
            let posts_form = path.starts_with("/api/fn/");
            let kind = if posts_form && !path.ends_with("load_progress") {
                "application/x-www-form-urlencoded"
            } else {
                "application/json"
            };
            let body = match (*method, posts_form) {
                ("POST", true) if path.ends_with("redeem_reward") => {
                    "reward_id=1&sequence=1&client_id=matrix&key=matrix".to_owned()
                }
                ("POST", true) if path.ends_with("load_progress") => r#"{"query":{}}"#.to_owned(),
                ("POST", true) if path.ends_with("load_task") => "task_id=1".to_owned(),
                ("POST", true) if path.ends_with("request_status") => "key=matrix".to_owned(),
                ("POST", true) if path.ends_with("load_pupil") => "student_id=1".to_owned(),
                ("POST", true) if path.ends_with("load_pupil_task") => {
                    "student_id=1&task_id=1".to_owned()
                }
                ("POST", true) if path.ends_with("reopen_task") => {
                    "student_id=1&task_id=1&seen_version=9".to_owned()
                }
                ("POST", true) if path.ends_with("create_task") => format!(
                    "key=form&class_id=1&title=t&instructions=i&kind=practice\
                     &due_local=&closes_local=&due_at=&closes_at=&of={who}"
                ),
                ("POST", false) if *path == "/api/v1/tasks" => {
                    r#"{"class_id":"1","title":"matrix","instructions":"i","kind":"practice"}"#
                        .to_owned()
                }
                ("POST", false) if path.ends_with("/reopening") => {
                    r#"{"student_id":"1"}"#.to_owned()
                }
                ("POST", true) if path.ends_with("panel") => "window=5m".to_owned(),
                ("POST", true) if path.ends_with("load_sheet") => "path=/records&query=".to_owned(),
                ("POST", true) if path.ends_with("/compensate") => {
                    "record=999&action=verify&reason=matrix&expected_version=1&key=matrix"
                        .to_owned()
                }
                ("POST", true) if path.ends_with("/decide") => {
                    "compensation=999&decision=reject&reason=matrix".to_owned()
                }
                ("POST", true) if path.ends_with("/replay_message") => {
                    "record=999&message=999&reason=matrix".to_owned()
                }
                ("POST", true) if path.ends_with("/start_bulk") => {
                    "ids=999&action=verify&reason=matrix&key=matrix".to_owned()
                }
                ("POST", false) if path.ends_with("/1/compensations") => {
                    r#"{"action":"verify","reason":"matrix","expected_version":2}"#.to_owned()
                }
                ("POST", false) if path.ends_with("/approval") => {
                    r#"{"decision":"approve","reason":"matrix"}"#.to_owned()
                }
                ("POST", false) if path.ends_with("/compensations") => {
                    r#"{"ids":["1"],"action":"verify","reason":"matrix"}"#.to_owned()
                }
                ("POST", false) if path.ends_with("/replay") => r#"{"reason":"matrix"}"#.to_owned(),
                ("POST", false) if path.ends_with("/redemptions") => {
                    r#"{"client_id":"matrix","sequence":1}"#.to_owned()
                }
                ("POST", false) => fresh_submission(1),
                _ => String::new(),
            };
            let request = request(Method::from_bytes(method.as_bytes()).unwrap(), path, token)
                .header("idempotency-key", format!("key of {who}"))
                .header("content-type", kind)
                .body(Body::from(body))
                .unwrap();
            let answer = world.send(request).await;
            if answer.status.as_u16() != expected[who] {
                wrong.push(format!(
                    "{method} {path} as {who}: {} instead of {}",
                    answer.status, expected[who]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_route_that_is_not_in_the_matrix_does_not_exist(pool: PgPool) {
    let world = World::new(pool).await;
    let token = world.token("admin1").await;
    for path in [
        "/api/v1",
        "/api/v1/",
        "/api/v1/accounts",
        "/api/v2/tasks",
        "/api/fn/nothing",
    ] {
        let answer = world.get(&token, path).await;
        assert!(
            [404, 405].contains(&answer.status.as_u16()),
            "{path}: {}",
            answer.status
        );
    }
    let wrong_method = world
        .send(
            request(Method::DELETE, "/api/v1/tasks", &token)
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    assert_eq!(
        (wrong_method.status.as_u16(), wrong_method.code().as_str()),
        (405, "method-not-allowed")
    );
}
