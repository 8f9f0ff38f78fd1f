//! `server simulate` against a server that serves, one that is killed half way, and one that somebody else is at, too.

use std::{path::Path, process::Output};

use sqlx::PgPool;
use tokio::process::{Child, Command};

use crate::process::Server;

const VARIABLES: &[(&str, &str)] = &[
    ("YICI_DEMO_STUDENTS", "8"),
    ("YICI_RATE_LIMIT_PER_ACCOUNT", "0"),
];

fn simulate(server: &Server, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_server"))
        .args(["simulate", "--students", "8", "--url", server.base()])
        .args(more)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn told(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{}\n{out}\n{err}", output.status)
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_panel_agrees_also_when_the_same_seed_comes_twice(pool: PgPool) {
    let server = Server::start_with(&pool, VARIABLES).await;
    for _ in 0..2 {
        let output = simulate(&server, &["--intents", "100", "--seed", "1"])
            .wait_with_output()
            .await
            .unwrap();
        let told = told(&output);
        assert!(output.status.success(), "{told}");
        assert!(told.contains("100 intents"), "{told}");
        assert!(told.contains("The panel agrees in every bucket."), "{told}");
    }
    let made: i64 = sqlx::query_scalar("SELECT count(*) FROM submission")
        .fetch_one(&pool)
        .await
        .unwrap();
    let new: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM request_arrival a JOIN idempotency_record r ON r.id = a.record_id
         WHERE a.outcome = 'new' AND r.state = 'SUCCEEDED'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert!(made > 0 && made == new, "{made} submissions, {new} new");
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn the_panel_agrees_when_the_server_was_killed_half_way(pool: PgPool) {
    let mut server = Server::start_with(&pool, VARIABLES).await;
    let disturb = format!("kill -9 {}", server.id());
    let simulation = simulate(&server, &["--intents", "200", "--disturb", &disturb]);
    server.ended().await;
    let address = server.base().replace("http://", "");
    let again = [VARIABLES, &[("YICI_LISTEN", &address)]].concat();
    let _server = Server::start_with(&pool, &again).await;
    let output = simulation.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{}", told(&output));
}

/// Or its comparison could not fail.
#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn arrivals_of_somebody_else_are_told(pool: PgPool) {
    let server = Server::start_with(&pool, VARIABLES).await;
    let token = server.sign_in("student1").await;
    // Half way nothing of the simulation is compared yet.
    let dir = tempfile::tempdir().unwrap();
    let (reached, go_on) = (dir.path().join("reached"), dir.path().join("go_on"));
    let wait = format!(
        "touch {}; for i in $(seq 600); do [ -e {} ] && exit; sleep 0.05; done; exit 1",
        reached.display(),
        go_on.display()
    );
    let simulation = simulate(&server, &["--intents", "40", "--disturb", &wait]);
    appears(&reached).await;
    server.submit(&token, "somebody else's", "work").await;
    std::fs::write(&go_on, "").unwrap();
    let output = simulation.wait_with_output().await.unwrap();
    let told = told(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("DIFFERS"), "{told}");
}

async fn appears(path: &Path) {
    let there = async {
        while !path.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), there)
        .await
        .unwrap();
}
