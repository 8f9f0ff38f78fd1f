//! The private Postgres on real clusters, each in a directory of its own.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
    time::Duration,
};

use secrecy::{ExposeSecret, SecretString};
use server::private_postgres::{PrivatePostgres, PrivatePostgresError};
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};
use tempfile::TempDir;

/// A directory that Postgres's user can enter.
fn open_dir() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o755);
    dir
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn is_root() -> bool {
    let probe = tempfile::NamedTempFile::new().unwrap();
    probe.as_file().metadata().unwrap().uid() == 0
}

async fn connect(url: &SecretString) -> PgConnection {
    PgConnection::connect(url.expose_secret()).await.unwrap()
}

async fn setting(connection: &mut PgConnection, name: &'static str) -> String {
    sqlx::query_scalar("SELECT current_setting($1)")
        .bind(name)
        .fetch_one(connection)
        .await
        .unwrap()
}

async fn write_note(postgres: &PrivatePostgres) {
    let mut connection = connect(postgres.database_url()).await;
    sqlx::raw_sql("CREATE TABLE note (text text); INSERT INTO note VALUES ('kept')")
        .execute(&mut connection)
        .await
        .unwrap();
}

async fn read_note(postgres: &PrivatePostgres) -> String {
    let mut connection = connect(postgres.database_url()).await;
    sqlx::query_scalar("SELECT text FROM note")
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

fn pid_file(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres/cluster/postmaster.pid")
}

fn postmaster_pid(data_dir: &Path) -> String {
    let text = std::fs::read_to_string(pid_file(data_dir)).unwrap();
    text.lines().next().unwrap().to_owned()
}

fn kill(pid: &str) {
    assert!(
        Command::new("kill")
            .args(["-KILL", pid])
            .status()
            .unwrap()
            .success()
    );
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    tokio::time::timeout(Duration::from_secs(20), async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{what} did not happen"));
}

#[tokio::test]
async fn data_survives_stop_and_start() {
    let dir = open_dir();
    let data = dir.path().join("some/where");
    let first = PrivatePostgres::start(&data).await.unwrap();
    assert!(first.is_owner());
    write_note(&first).await;
    first.stop().await.unwrap();
    assert!(!pid_file(&data).exists());

    let second = PrivatePostgres::start(&data).await.unwrap();
    assert_eq!(read_note(&second).await, "kept");
    second.stop().await.unwrap();
}

#[tokio::test]
async fn cluster_is_durable_utf8_and_on_loopback_only() {
    let dir = open_dir();
    let postgres = PrivatePostgres::start(dir.path()).await.unwrap();
    let mut connection = connect(postgres.database_url()).await;
    for (name, value) in [
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("data_checksums", "on"),
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", ""),
        ("server_encoding", "UTF8"),
        ("TimeZone", "UTC"),
    ] {
        assert_eq!(setting(&mut connection, name).await, value, "{name}");
    }
    connection.close().await.unwrap();
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn nobody_gets_in_without_the_password() {
    let dir = open_dir();
    let postgres = PrivatePostgres::start(dir.path()).await.unwrap();
    let right = PgConnectOptions::from_str(postgres.database_url().expose_secret()).unwrap();
    for password in ["", "yici", "postgres"] {
        for user in ["yici", "postgres"] {
            let options = right.clone().username(user).password(password);
            let refused = PgConnection::connect_with(&options).await.unwrap_err();
            let code = refused.as_database_error().and_then(|e| e.code());
            assert_eq!(code.as_deref(), Some("28P01"), "{user} {password:?}");
        }
    }
    let home = dir.path().join("postgres");
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    assert_eq!(mode(&home.join("password")), 0o600);
    assert_eq!(mode(&home.join("log")), 0o600);
    assert!(!format!("{postgres:?}").contains(right_password(&postgres)));
    postgres.stop().await.unwrap();
}

fn right_password(postgres: &PrivatePostgres) -> &str {
    let url = postgres.database_url().expose_secret();
    let rest = url.strip_prefix("postgres://yici:").unwrap();
    rest.split_once('@').unwrap().0
}

#[tokio::test]
async fn second_server_is_refused_and_a_command_is_let_in_as_a_guest() {
    let dir = open_dir();
    let owner = PrivatePostgres::start(dir.path()).await.unwrap();
    write_note(&owner).await;

    let refused = PrivatePostgres::start(dir.path()).await.unwrap_err();
    assert!(
        matches!(&refused, PrivatePostgresError::InUse { holder, .. } if *holder == std::process::id().to_string()),
        "{refused}"
    );

    let guest = PrivatePostgres::start_or_join(dir.path()).await.unwrap();
    assert!(!guest.is_owner());
    assert_eq!(read_note(&guest).await, "kept");
    guest.stop().await.unwrap();
    assert_eq!(read_note(&owner).await, "kept");
    owner.stop().await.unwrap();
}

#[tokio::test]
async fn two_first_starts_at_once_make_one_cluster() {
    let dir = open_dir();
    let (one, two) = tokio::join!(
        PrivatePostgres::start_or_join(dir.path()),
        PrivatePostgres::start_or_join(dir.path())
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one.is_owner() != two.is_owner());
    let (owner, guest) = if one.is_owner() {
        (one, two)
    } else {
        (two, one)
    };
    write_note(&owner).await;
    assert_eq!(read_note(&guest).await, "kept");
    guest.stop().await.unwrap();
    owner.stop().await.unwrap();
}

#[tokio::test]
async fn postmaster_of_a_killed_server_is_taken_over() {
    let dir = open_dir();
    let killed = PrivatePostgres::start(dir.path()).await.unwrap();
    write_note(&killed).await;
    let pid = postmaster_pid(dir.path());
    killed.leave_running();

    let next = PrivatePostgres::start(dir.path()).await.unwrap();
    assert_eq!(postmaster_pid(dir.path()), pid);
    assert!(next.is_owner());
    assert_eq!(read_note(&next).await, "kept");
    next.stop().await.unwrap();
    assert!(!pid_file(dir.path()).exists());
}

#[tokio::test]
async fn killed_postmaster_is_started_again_and_recovers() {
    let dir = open_dir();
    let first = PrivatePostgres::start(dir.path()).await.unwrap();
    write_note(&first).await;
    let pid = postmaster_pid(dir.path());
    kill(&pid);
    first.leave_running();
    assert!(pid_file(dir.path()).exists());

    let second = PrivatePostgres::start(dir.path()).await.unwrap();
    assert_ne!(postmaster_pid(dir.path()), pid);
    assert_eq!(read_note(&second).await, "kept");
    second.stop().await.unwrap();
}

#[tokio::test]
async fn pid_file_that_names_a_stranger_does_not_stop_a_start() {
    let dir = open_dir();
    let first = PrivatePostgres::start(dir.path()).await.unwrap();
    write_note(&first).await;
    let pids = std::fs::read_to_string(pid_file(dir.path())).unwrap();
    first.stop().await.unwrap();
    // After a reboot the number may belong to any process, e.g. to this one.
    let (_, rest) = pids.split_once('\n').unwrap();
    std::fs::write(
        pid_file(dir.path()),
        format!("{}\n{rest}", std::process::id()),
    )
    .unwrap();

    let second = PrivatePostgres::start(dir.path()).await.unwrap();
    assert_eq!(read_note(&second).await, "kept");
    second.stop().await.unwrap();
}

#[tokio::test]
async fn dropping_stops_postgres() {
    let dir = open_dir();
    let postgres = PrivatePostgres::start(dir.path()).await.unwrap();
    drop(postgres);
    until("the stop", || !pid_file(dir.path()).exists()).await;
}

#[tokio::test]
async fn unfinished_init_is_never_taken_for_a_cluster() {
    let dir = open_dir();
    let half = dir.path().join(".postgres.new-killed");
    std::fs::create_dir_all(half.join("cluster")).unwrap();
    std::fs::write(half.join("cluster/PG_VERSION"), "15\n").unwrap();

    let postgres = PrivatePostgres::start(dir.path()).await.unwrap();
    assert!(!half.exists());
    write_note(&postgres).await;
    postgres.stop().await.unwrap();
}

#[tokio::test]
async fn data_of_another_version_is_refused_by_name() {
    let dir = open_dir();
    let postgres = PrivatePostgres::start(dir.path()).await.unwrap();
    postgres.stop().await.unwrap();
    std::fs::write(dir.path().join("postgres/cluster/PG_VERSION"), "9\n").unwrap();

    let refused = PrivatePostgres::start(dir.path()).await.unwrap_err();
    assert!(
        matches!(
            refused,
            PrivatePostgresError::OtherVersion { wanted: 9, .. }
        ),
        "{refused}"
    );
}

#[tokio::test]
async fn start_that_fails_shows_the_log() {
    let dir = open_dir();
    let postgres = PrivatePostgres::start(dir.path()).await.unwrap();
    postgres.stop().await.unwrap();
    std::fs::remove_file(dir.path().join("postgres/cluster/pg_hba.conf")).unwrap();

    let refused = PrivatePostgres::start(dir.path()).await.unwrap_err();
    assert!(refused.to_string().contains("pg_hba.conf"), "{refused}");
}

/// Root's checkout is often below `/root`, which nobody else can enter.
#[tokio::test]
async fn closed_data_directory_of_root_gets_its_cluster_elsewhere() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o700);
    let first = PrivatePostgres::start(dir.path()).await.unwrap();
    write_note(&first).await;
    let home = std::fs::read_link(dir.path().join("postgres")).unwrap();
    first.stop().await.unwrap();

    let second = PrivatePostgres::start(dir.path()).await.unwrap();
    assert_eq!(read_note(&second).await, "kept");
    second.stop().await.unwrap();

    std::fs::remove_dir_all(&home).unwrap();
    let dangling = PrivatePostgres::start(dir.path()).await.unwrap_err();
    assert!(
        matches!(dangling, PrivatePostgresError::DanglingHome { .. }),
        "{dangling}"
    );
}

#[tokio::test]
async fn postgres_never_runs_as_root() {
    if !is_root() {
        return;
    }
    let dir = open_dir();
    let postgres = PrivatePostgres::start(dir.path()).await.unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", postmaster_pid(dir.path())));
    let status = status.unwrap();
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.unwrap()[name.len()..].trim().to_owned()
    };
    assert_ne!(line("Uid:").split_whitespace().next(), Some("0"));
    assert_ne!(line("Gid:").split_whitespace().next(), Some("0"));
    assert_eq!(line("Groups:"), "");
    postgres.stop().await.unwrap();
}
