//! Good and bad command lines and values.

use super::{command_line::Cli, *};
use clap::builder::Resettable;
use rstest::rstest;
use secrecy::ExposeSecret;

/// Parses a command line as if the environment were empty.
fn parse(args: &[&str]) -> Result<Invocation, InvocationError> {
    fn deaf(command: clap::Command) -> clap::Command {
        command
            .mut_args(|arg| arg.env(Resettable::Reset))
            .mut_subcommands(deaf)
    }
    let line = ["server"].iter().chain(args);
    let matches = deaf(Cli::command()).try_get_matches_from(line)?;
    Ok(Cli::from_arg_matches(&matches)?.command.check()?)
}

fn serve(args: &[&str]) -> Result<Settings, InvocationError> {
    let line: Vec<&str> = ["serve"].iter().chain(args).copied().collect();
    match parse(&line)? {
        Invocation::Serve { settings, .. } => Ok(*settings),
        other => panic!("not serve: {other:?}"),
    }
}

fn setting_error(flag: &str, value: &str) -> SettingsError {
    match serve(&[&format!("{flag}={value}")]) {
        Err(InvocationError::Setting(error)) => error,
        other => panic!("{flag}={value}: {other:?}"),
    }
}

#[test]
fn command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn defaults_are_the_contracts() {
    let settings = serve(&[]).unwrap();
    assert_eq!(settings.listen, "127.0.0.1:3000".parse().unwrap());
    assert!(settings.database.url.is_none());
    assert_eq!(settings.database.data_dir, PathBuf::from("data"));
    assert_eq!(settings.site_dir, PathBuf::from("target/site"));
    assert_eq!(settings.engine.lease, Duration::from_secs(30));
    assert_eq!(settings.engine.stuck_after, Duration::from_secs(300));
    assert_eq!(settings.scan_interval, Duration::from_secs(5));
    assert_eq!(settings.engine.retention, Duration::from_secs(24 * 3600));
    assert_eq!(settings.front_lock_ttl, Duration::from_secs(5));
    assert_eq!(settings.front_lock_on_failure, FrontLockOnFailure::Degrade);
    assert_eq!(settings.engine.reward_timeout, Duration::from_secs(5));
    assert_eq!(settings.rate_limit_per_account, NonZeroU32::new(100));
    assert_eq!(settings.rate_limit_per_address, NonZeroU32::new(50));
    assert_eq!(settings.demo_students, 30);
    assert!(settings.redis_url.is_none() && settings.engine.reward_url.is_none());
    assert!(settings.otlp_endpoint.is_none());
    assert_eq!(settings.log_format, LogFormat::Human);
}

#[rstest]
#[case("--listen", "YICI_LISTEN", &["localhost", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:x", ":3000"])]
#[case("--lease-seconds", "YICI_LEASE_SECONDS", &["0", "-1", "+5", "1.5", "30s", "1e3", "99999999999999999999", "86401"])]
#[case("--stuck-after-seconds", "YICI_STUCK_AFTER_SECONDS", &["0", "-300", "x"])]
#[case("--scan-interval-seconds", "YICI_SCAN_INTERVAL_SECONDS", &["0", "3601", "five"])]
#[case("--retention-hours", "YICI_RETENTION_HOURS", &["0", "18446744073709551615", "-24"])]
#[case("--front-lock-ttl-ms", "YICI_FRONT_LOCK_TTL_MS", &["0", "3600001"])]
#[case("--front-lock-on-failure", "YICI_FRONT_LOCK_ON_FAILURE", &["Degrade", "ignore"])]
#[case("--reward-timeout-ms", "YICI_REWARD_TIMEOUT_MS", &["0", "600001"])]
#[case("--rate-limit-per-account", "YICI_RATE_LIMIT_PER_ACCOUNT", &["-1", "1000001", "4294967296"])]
#[case("--rate-limit-per-address", "YICI_RATE_LIMIT_PER_ADDRESS", &["-1", "none"])]
#[case("--demo-students", "YICI_DEMO_STUDENTS", &["0", "100001", "3 0"])]
#[case("--database-url", "DATABASE_URL", &["localhost", "mysql://h/d", "postgres://", "postgres://h:port/d"])]
#[case("--direct-database-url", "YICI_DIRECT_DATABASE_URL", &["http://h/d"])]
#[case("--redis-url", "REDIS_URL", &["redis://", "http://h", "h:6379", "redis://h:x y", "redis://h/first"])]
#[case("--reward-url", "YICI_REWARD_URL", &["ftp://h", "h", "http://", "http:///x", "http://h?x=1", "http://h#x"])]
#[case("--log-format", "YICI_LOG_FORMAT", &["JSON", "text", "pretty"])]
#[case("--otel-exporter-otlp-endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT", &["h:4318", "grpc://h"])]
fn bad_value_is_refused_by_name(#[case] flag: &str, #[case] name: &str, #[case] values: &[&str]) {
    for value in values {
        let error = setting_error(flag, value);
        assert_eq!(error.name, name, "{value}");
        assert!(error.to_string().starts_with(&format!("{name}: expected ")));
        // Empty and blank values count as unset.
        assert!(serve(&[&format!("{flag}=")]).is_ok());
        assert!(serve(&[&format!("{flag}=  ")]).is_ok());
    }
}

#[rstest]
#[case("--database-url", "mysql://user:hunter2@host/d")]
#[case("--redis-url", "http://:hunter2@host")]
#[case("--reward-url", "ftp://user:hunter2@host")]
fn refused_url_is_not_repeated(#[case] flag: &str, #[case] value: &str) {
    let error = serve(&[&format!("{flag}={value}")]).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn settings_never_show_secrets() {
    let settings = serve(&[
        "--database-url=postgres://u:hunter2@h:5432/d?sslmode=disable",
        "--direct-database-url=postgresql://u:hunter2@h/d",
        "--redis-url=rediss://:hunter2@h:6379/0",
        "--reward-url=http://u:hunter2@h:8080/base/",
        "--otel-exporter-otlp-endpoint=http://u:hunter2@h:4318",
    ])
    .unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
    assert_eq!(
        settings.engine.reward_url.unwrap().expose_secret(),
        "http://u:hunter2@h:8080/base"
    );
}

#[test]
fn good_values_are_taken() {
    let settings = serve(&[
        "--listen=[::1]:0",
        "--lease-seconds=1",
        "--stuck-after-seconds=1",
        "--retention-hours=87600",
        "--rate-limit-per-account=0",
        "--front-lock-on-failure=refuse",
        "--demo-students=100000",
        "--log-format=json",
        "--data-dir=/somewhere",
    ])
    .unwrap();
    assert_eq!(settings.engine.lease, settings.engine.stuck_after);
    assert_eq!(settings.rate_limit_per_account, None);
    assert_eq!(settings.front_lock_on_failure, FrontLockOnFailure::Refuse);
    assert_eq!(settings.demo_students, 100_000);
    assert_eq!(settings.log_format, LogFormat::Json);
    assert_eq!(settings.database.data_dir, PathBuf::from("/somewhere"));
}

#[test]
fn account_add_takes_a_name_a_role_and_what_fits_it() {
    let add = |args: &[&str]| {
        let line: Vec<&str> = ["account", "add"].iter().chain(args).copied().collect();
        match parse(&line)? {
            Invocation::AccountAdd { account, .. } => Ok(account),
            other => panic!("{other:?}"),
        }
    };
    let added: Result<_, InvocationError> = add(&["王芳", "--role", "student", "--class", "3A"]);
    assert_eq!(added.unwrap().class.as_deref(), Some("3A"));
    let parent = add(&["p", "--role", "parent", "--child", "a", "b", "--child", "c"]).unwrap();
    assert_eq!(parent.children, ["a", "b", "c"]);
    for bad in [
        &["x"][..],
        &["", "--role", "ops"],
        &[" x", "--role", "ops"],
        &["x", "--role", "king"],
        &["x", "--role", "Admin"],
        &["x", "--role", "student", "--child", "y"],
        &["x", "--role", "ops", "--class", "y"],
    ] {
        assert!(add(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn token_issue_takes_names_or_a_role() {
    let owners = |args: &[&str]| {
        let line: Vec<&str> = ["token", "issue"].iter().chain(args).copied().collect();
        match parse(&line)? {
            Invocation::TokenIssue { owners, .. } => Ok(owners),
            other => panic!("{other:?}"),
        }
    };
    let named: Result<_, InvocationError> = owners(&["a", "b"]);
    assert_eq!(named.unwrap().names, ["a", "b"]);
    assert_eq!(
        owners(&["--role", "student"]).unwrap().role,
        Some(Role::Student)
    );
    assert!(owners(&[]).is_err());
    assert!(owners(&["a", "--role", "student"]).is_err());
}

#[test]
fn demo_is_a_flag_of_serve_and_migrate_takes_a_database() {
    assert!(matches!(
        parse(&["serve", "--demo"]).unwrap(),
        Invocation::Serve { demo: true, .. }
    ));
    assert!(matches!(
        parse(&["migrate", "--database-url", "postgres://h/d"]).unwrap(),
        Invocation::Migrate(DatabaseSettings { url: Some(_), .. })
    ));
    assert!(parse(&["migrate", "--database-url", "h"]).is_err());
}

#[test]
fn import_takes_a_file_and_where_rejects_go() {
    let import = |args: &[&str]| {
        let line: Vec<&str> = ["import"].iter().chain(args).copied().collect();
        match parse(&line)? {
            Invocation::Import { file, rejects, .. } => Ok((file, rejects)),
            other => panic!("{other:?}"),
        }
    };
    let plain: Result<_, InvocationError> = import(&["a.csv"]);
    assert_eq!(plain.unwrap(), (PathBuf::from("a.csv"), None));
    assert_eq!(
        import(&["a.csv", "--rejects", "b.csv"]).unwrap().1,
        Some(PathBuf::from("b.csv"))
    );
    for bad in [
        &[][..],
        &[""],
        &["a.csv", "b.csv"],
        &["a.csv", "--rejects", ""],
    ] {
        assert!(import(bad).is_err(), "{bad:?}");
    }
}
