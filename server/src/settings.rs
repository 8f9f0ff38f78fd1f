//! The command line and the environment: what the server can be told, checked before anything is started.
//!
//! Each setting is an environment variable and a flag of `serve`. A bad value is refused by the variable's name; its value is
//! repeated only where it cannot be a secret. An empty value counts as unset, because that is how shells and compose files
//! write "not set".

use std::{
    fmt, net::SocketAddr, num::NonZeroU32, ops::RangeInclusive, path::PathBuf, str::FromStr,
    time::Duration,
};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use domain::Role;
use secrecy::SecretString;
use sqlx::postgres::PgConnectOptions;

/// A day, in seconds.
const DAY_SECONDS: u64 = 24 * 3600;

/// What the server was asked to do, with checked settings.
#[derive(Debug)]
pub enum Invocation {
    /// Serve pages and API.
    Serve {
        /// All settings.
        settings: Box<Settings>,
        /// Load the demo's data first.
        demo: bool,
    },
    /// Bring the database's schema up to date and end.
    Migrate(DatabaseSettings),
    /// Make an account; the password comes on standard input.
    AccountAdd {
        /// Where.
        database: DatabaseSettings,
        /// What.
        account: NewAccount,
    },
    /// Issue tokens for machine clients; prints `name,token` lines.
    TokenIssue {
        /// Where.
        database: DatabaseSettings,
        /// For whom.
        owners: TokenOwners,
    },
    /// Bring submissions in from a file.
    Import {
        /// Where.
        database: DatabaseSettings,
        /// The CSV file.
        file: PathBuf,
        /// Where the rows that were not taken are listed; `None`: on standard error.
        rejects: Option<PathBuf>,
    },
}

impl Invocation {
    /// Reads this process's arguments and environment. `--help`, `--version` and a misused command line end the process, as
    /// command lines do.
    ///
    /// # Errors
    /// When a setting is bad.
    pub fn from_env() -> Result<Self, SettingsError> {
        Cli::parse().command.check()
    }

    /// Reads arguments (the first one is the program's name) and this process's environment.
    ///
    /// # Errors
    /// When the command line is misused or a setting is bad.
    pub fn try_from_args<I, T>(args: I) -> Result<Self, InvocationError>
    where
        I: IntoIterator<Item = T>,
        T: Into<std::ffi::OsString> + Clone,
    {
        let matches = Cli::command().try_get_matches_from(args)?;
        Ok(Cli::from_arg_matches(&matches)?.command.check()?)
    }
}

/// Why a command line was refused.
#[derive(Debug, thiserror::Error)]
pub enum InvocationError {
    /// It is misused, or asks for help.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// A setting is bad.
    #[error(transparent)]
    Setting(#[from] SettingsError),
}

/// A setting that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: expected {expected}{}", got.as_ref().map(|got| format!(", got `{got}`")).unwrap_or_default())]
pub struct SettingsError {
    /// The environment variable's name, or the flag's where there is no variable.
    pub name: &'static str,
    /// What would have been right.
    pub expected: String,
    /// The value; `None` when it may be a secret.
    pub got: Option<String>,
}

/// All settings of `serve`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The database.
    pub database: DatabaseSettings,
    /// `YICI_LISTEN`: where to serve.
    pub listen: SocketAddr,
    /// `YICI_SITE_DIR`: the built front end, with `pkg/` and perhaps `hash.txt`.
    pub site_dir: PathBuf,
    /// `REDIS_URL`: the front lock's store; `None`: no front lock.
    pub redis_url: Option<SecretString>,
    /// `YICI_LEASE_SECONDS`: how long a claim is presumed alive.
    pub lease: Duration,
    /// `YICI_STUCK_AFTER_SECONDS`: when an unfinished record counts as stuck.
    pub stuck_after: Duration,
    /// `YICI_SCAN_INTERVAL_SECONDS`: the scanner's pause.
    pub scan_interval: Duration,
    /// `YICI_RETENTION_HOURS`: how long a finished record answers its key.
    pub retention: Duration,
    /// `YICI_FRONT_LOCK_TTL_MS`: when a front lock lapses.
    pub front_lock_ttl: Duration,
    /// `YICI_FRONT_LOCK_ON_FAILURE`: what happens when the front lock's store is away.
    pub front_lock_on_failure: FrontLockOnFailure,
    /// `YICI_REWARD_URL`: the external reward provider, without a slash at the end.
    pub reward_url: Option<SecretString>,
    /// `YICI_REWARD_TIMEOUT_MS`: how long the provider may take to answer.
    pub reward_timeout: Duration,
    /// `YICI_RATE_LIMIT_PER_ACCOUNT`: requests per second; `None`: no limit.
    pub rate_limit_per_account: Option<NonZeroU32>,
    /// `YICI_RATE_LIMIT_PER_ADDRESS`: requests per second without identity; `None`: no limit.
    pub rate_limit_per_address: Option<NonZeroU32>,
    /// `YICI_DEMO_STUDENTS`: how many students the demo has, 1 to 100,000.
    pub demo_students: u32,
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: where traces go.
    pub otlp_endpoint: Option<SecretString>,
}

/// Which database to use.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// `DATABASE_URL`; `None`: a private Postgres under `data_dir`.
    pub url: Option<SecretString>,
    /// `YICI_DIRECT_DATABASE_URL`: for migrations and LISTEN when `url` goes through a pooler.
    pub direct_url: Option<SecretString>,
    /// `YICI_DATA_DIR`: what the private Postgres keeps.
    pub data_dir: PathBuf,
}

/// What a new key meets when the front lock's store is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontLockOnFailure {
    /// Go on without the lock: it only spares the database.
    Degrade,
    /// 503 `front-lock-unavailable`.
    Refuse,
}

/// An account to be made.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct NewAccount {
    /// The name to sign in with
    #[arg(value_parser = account_name)]
    pub name: String,
    /// student, teacher, parent, ops or admin
    #[arg(long, value_parser = role)]
    pub role: Role,
    /// The class of a student or a teacher; made when there is none of that name
    #[arg(long, value_name = "NAME", value_parser = account_name)]
    pub class: Option<String>,
    /// The students whose report a parent sees
    #[arg(long = "child", value_name = "NAME", num_args = 1.., value_parser = account_name)]
    pub children: Vec<String>,
}

/// Whose tokens are issued: the named accounts', or those of all accounts of a role.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(required = true, multiple = false)]
pub struct TokenOwners {
    /// The accounts
    #[arg(value_name = "NAME", value_parser = account_name)]
    pub names: Vec<String>,
    /// All accounts of this role instead
    #[arg(long, value_parser = role)]
    pub role: Option<Role>,
}

/// What a person who imports wants to know and an option's line cannot say.
const IMPORT_HELP: &str = "\
student is the name of the student's account. Rows of one student and one task are taken in the order of the file.
Beside a running server or without one. After a stop or a kill, run the same command again.

Exit status: 0 when every row is new, was taken before, or stands there with the same content; 1 when a row was not taken
or the file was not read to its end; 2 when the command line is misused.";

/// Yici: one business intent, one effect, one answer.
#[derive(Debug, Parser)]
#[command(name = "server", version, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the pages and the API
    Serve {
        /// Load the demo's accounts, tasks and rewards first; refused on a database with other accounts
        #[arg(long)]
        demo: bool,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        serve: Box<ServeArgs>,
    },
    /// Bring the database's schema up to date
    Migrate {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Keep accounts
    #[command(subcommand)]
    Account(AccountCommand),
    /// Keep the tokens of machine clients
    #[command(subcommand)]
    Token(TokenCommand),
    /// Bring submissions in from a CSV file, each row once however often it is run
    #[command(after_long_help = IMPORT_HELP)]
    Import {
        /// A CSV file in UTF-8 with the columns task_id,student,submit_version,content
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// List the rows that were not taken here, with line and reason [default: on standard error]
        #[arg(long, value_name = "FILE")]
        rejects: Option<PathBuf>,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

#[derive(Debug, Subcommand)]
enum AccountCommand {
    /// Make an account; the password comes on standard input
    Add {
        #[command(flatten)]
        account: NewAccount,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Issue one token for each account; prints `name,token` lines
    Issue {
        #[command(flatten)]
        owners: TokenOwners,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

/// Text as it came, so that an empty one can count as unset and clap never repeats a secret in its messages.
#[derive(Clone, Default)]
struct Raw(String);

impl FromStr for Raw {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.trim().to_owned()))
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raw(…)")
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Database")]
struct DatabaseArgs {
    /// Postgres to use [default: a private one under the data directory]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<Raw>,
    /// Postgres without the pooler that DATABASE_URL goes through, for migrations and LISTEN
    #[arg(
        long,
        env = "YICI_DIRECT_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    direct_database_url: Option<Raw>,
    /// What the private Postgres keeps [default: ./data]
    #[arg(long, env = "YICI_DATA_DIR", value_name = "DIR")]
    data_dir: Option<Raw>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Settings")]
struct ServeArgs {
    /// Address and port to serve on [default: 127.0.0.1:3000]
    #[arg(long, env = "YICI_LISTEN", value_name = "ADDRESS:PORT")]
    listen: Option<Raw>,
    /// The built front end [default: target/site]
    #[arg(long, env = "YICI_SITE_DIR", value_name = "DIR")]
    site_dir: Option<Raw>,
    /// Redis for the front lock [default: no front lock]
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_name = "URL")]
    redis_url: Option<Raw>,
    /// How long a claim is presumed alive [default: 30]
    #[arg(long, env = "YICI_LEASE_SECONDS", value_name = "SECONDS")]
    lease_seconds: Option<Raw>,
    /// When an unfinished record counts as stuck [default: 300]
    #[arg(long, env = "YICI_STUCK_AFTER_SECONDS", value_name = "SECONDS")]
    stuck_after_seconds: Option<Raw>,
    /// The scanner's pause [default: 5]
    #[arg(long, env = "YICI_SCAN_INTERVAL_SECONDS", value_name = "SECONDS")]
    scan_interval_seconds: Option<Raw>,
    /// How long a finished record answers its key [default: 24]
    #[arg(long, env = "YICI_RETENTION_HOURS", value_name = "HOURS")]
    retention_hours: Option<Raw>,
    /// When a front lock lapses [default: 5000]
    #[arg(long, env = "YICI_FRONT_LOCK_TTL_MS", value_name = "MILLISECONDS")]
    front_lock_ttl_ms: Option<Raw>,
    /// Without Redis: `degrade` goes on without the lock, `refuse` answers 503 to new keys [default: degrade]
    #[arg(
        long,
        env = "YICI_FRONT_LOCK_ON_FAILURE",
        value_name = "degrade|refuse"
    )]
    front_lock_on_failure: Option<Raw>,
    /// The external reward provider [default: none]
    #[arg(
        long,
        env = "YICI_REWARD_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    reward_url: Option<Raw>,
    /// How long the provider may take to answer [default: 5000]
    #[arg(long, env = "YICI_REWARD_TIMEOUT_MS", value_name = "MILLISECONDS")]
    reward_timeout_ms: Option<Raw>,
    /// Requests per second of one account, with bursts of four times that; 0: no limit [default: 100]
    #[arg(long, env = "YICI_RATE_LIMIT_PER_ACCOUNT", value_name = "NUMBER")]
    rate_limit_per_account: Option<Raw>,
    /// Requests per second without identity from one address, with bursts of four times that; 0: no limit [default: 50]
    #[arg(long, env = "YICI_RATE_LIMIT_PER_ADDRESS", value_name = "NUMBER")]
    rate_limit_per_address: Option<Raw>,
    /// Students of the demo, 1 to 100000 [default: 30]
    #[arg(long, env = "YICI_DEMO_STUDENTS", value_name = "NUMBER")]
    demo_students: Option<Raw>,
    /// Where traces go, OTLP over HTTP [default: nowhere]
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    otel_exporter_otlp_endpoint: Option<Raw>,
}

impl Command {
    fn check(self) -> Result<Invocation, SettingsError> {
        Ok(match self {
            Self::Serve {
                demo,
                database,
                serve,
            } => Invocation::Serve {
                settings: Box::new(serve.check(database.check()?)?),
                demo,
            },
            Self::Migrate { database } => Invocation::Migrate(database.check()?),
            Self::Account(AccountCommand::Add { account, database }) => Invocation::AccountAdd {
                account: account.check()?,
                database: database.check()?,
            },
            Self::Token(TokenCommand::Issue { owners, database }) => Invocation::TokenIssue {
                owners,
                database: database.check()?,
            },
            Self::Import {
                file,
                rejects,
                database,
            } => Invocation::Import {
                database: database.check()?,
                file,
                rejects,
            },
        })
    }
}

impl NewAccount {
    /// Refuses what would silently have no effect.
    fn check(self) -> Result<Self, SettingsError> {
        if self.role != Role::Parent && !self.children.is_empty() {
            return Err(refused("--child", "it only together with --role parent"));
        }
        if !matches!(self.role, Role::Student | Role::Teacher) && self.class.is_some() {
            return Err(refused(
                "--class",
                "it only together with --role student or teacher",
            ));
        }
        Ok(self)
    }
}

impl DatabaseArgs {
    fn check(&self) -> Result<DatabaseSettings, SettingsError> {
        Ok(DatabaseSettings {
            url: database_url("DATABASE_URL", &self.database_url)?,
            direct_url: database_url("YICI_DIRECT_DATABASE_URL", &self.direct_database_url)?,
            data_dir: PathBuf::from(text(&self.data_dir).unwrap_or("data")),
        })
    }
}

impl ServeArgs {
    fn check(&self, database: DatabaseSettings) -> Result<Settings, SettingsError> {
        let number = |name, raw, default, range, unit| whole(name, raw, default, range, unit);
        let lease = number(
            "YICI_LEASE_SECONDS",
            &self.lease_seconds,
            30,
            1..=DAY_SECONDS,
            "seconds",
        )?;
        let stuck_after = number(
            "YICI_STUCK_AFTER_SECONDS",
            &self.stuck_after_seconds,
            300,
            1..=30 * DAY_SECONDS,
            "seconds",
        )?;
        Ok(Settings {
            database,
            listen: listen(&self.listen)?,
            site_dir: PathBuf::from(text(&self.site_dir).unwrap_or("target/site")),
            redis_url: redis_url(&self.redis_url)?,
            lease: Duration::from_secs(lease),
            stuck_after: Duration::from_secs(stuck_after),
            scan_interval: Duration::from_secs(number(
                "YICI_SCAN_INTERVAL_SECONDS",
                &self.scan_interval_seconds,
                5,
                1..=3600,
                "seconds",
            )?),
            retention: Duration::from_secs(
                3600 * number(
                    "YICI_RETENTION_HOURS",
                    &self.retention_hours,
                    24,
                    1..=10 * 365 * 24,
                    "hours",
                )?,
            ),
            front_lock_ttl: Duration::from_millis(number(
                "YICI_FRONT_LOCK_TTL_MS",
                &self.front_lock_ttl_ms,
                5000,
                1..=3_600_000,
                "milliseconds",
            )?),
            front_lock_on_failure: match text(&self.front_lock_on_failure) {
                None | Some("degrade") => FrontLockOnFailure::Degrade,
                Some("refuse") => FrontLockOnFailure::Refuse,
                Some(other) => {
                    return Err(SettingsError {
                        name: "YICI_FRONT_LOCK_ON_FAILURE",
                        expected: "`degrade` or `refuse`".to_owned(),
                        got: Some(other.to_owned()),
                    });
                }
            },
            reward_url: http_url("YICI_REWARD_URL", &self.reward_url)?,
            reward_timeout: Duration::from_millis(number(
                "YICI_REWARD_TIMEOUT_MS",
                &self.reward_timeout_ms,
                5000,
                1..=600_000,
                "milliseconds",
            )?),
            rate_limit_per_account: rate(
                "YICI_RATE_LIMIT_PER_ACCOUNT",
                &self.rate_limit_per_account,
                100,
            )?,
            rate_limit_per_address: rate(
                "YICI_RATE_LIMIT_PER_ADDRESS",
                &self.rate_limit_per_address,
                50,
            )?,
            demo_students: narrow(number(
                "YICI_DEMO_STUDENTS",
                &self.demo_students,
                30,
                1..=100_000,
                "students",
            )?),
            otlp_endpoint: http_url(
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                &self.otel_exporter_otlp_endpoint,
            )?,
        })
    }
}

/// The text of a setting, `None` when it is unset or empty.
fn text(raw: &Option<Raw>) -> Option<&str> {
    raw.as_ref()
        .map(|raw| raw.0.as_str())
        .filter(|text| !text.is_empty())
}

/// A refusal that does not repeat the value.
fn refused(name: &'static str, expected: &str) -> SettingsError {
    SettingsError {
        name,
        expected: expected.to_owned(),
        got: None,
    }
}

/// A whole number in a range. Plain digits only: no sign, no fraction, no separators.
fn whole(
    name: &'static str,
    raw: &Option<Raw>,
    default: u64,
    range: RangeInclusive<u64>,
    unit: &str,
) -> Result<u64, SettingsError> {
    let Some(text) = text(raw) else {
        return Ok(default);
    };
    Some(text)
        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .filter(|number| range.contains(number))
        .ok_or_else(|| SettingsError {
            name,
            expected: format!(
                "a whole number of {unit} from {} to {}",
                range.start(),
                range.end()
            ),
            got: Some(text.to_owned()),
        })
}

fn rate(
    name: &'static str,
    raw: &Option<Raw>,
    default: u64,
) -> Result<Option<NonZeroU32>, SettingsError> {
    // The burst is four times the rate and must still be a 32-bit number.
    let limit = whole(name, raw, default, 0..=1_000_000, "requests per second")?;
    Ok(NonZeroU32::new(narrow(limit)))
}

/// For numbers whose range has been checked.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn listen(raw: &Option<Raw>) -> Result<SocketAddr, SettingsError> {
    let text = text(raw).unwrap_or("127.0.0.1:3000");
    text.parse().map_err(|_| SettingsError {
        name: "YICI_LISTEN",
        expected: "an IP address and a port, e.g. 127.0.0.1:3000 or [::1]:3000".to_owned(),
        got: Some(text.to_owned()),
    })
}

fn database_url(
    name: &'static str,
    raw: &Option<Raw>,
) -> Result<Option<SecretString>, SettingsError> {
    secret(raw, |text| {
        has_scheme(text, &["postgres", "postgresql"]) && PgConnectOptions::from_str(text).is_ok()
    })
    .ok_or_else(|| {
        refused(
            name,
            "a URL like postgres://user:password@host:5432/database",
        )
    })
}

fn redis_url(raw: &Option<Raw>) -> Result<Option<SecretString>, SettingsError> {
    secret(raw, |text| {
        // A host may be followed by a port and a database number; credentials may hold anything but `/`.
        has_scheme(text, &["redis", "rediss"])
            && text
                .split_once("://")
                .is_some_and(|(_, rest)| http::Uri::from_str(&format!("http://{rest}")).is_ok())
    })
    .ok_or_else(|| refused("REDIS_URL", "a URL like redis://host:6379/0 or rediss://…"))
}

/// A base URL that paths are appended to: no query, and slashes at its end are dropped.
fn http_url(name: &'static str, raw: &Option<Raw>) -> Result<Option<SecretString>, SettingsError> {
    let trimmed = text(raw).map(|text| Raw(text.trim_end_matches('/').to_owned()));
    secret(&trimmed, |text| {
        has_scheme(text, &["http", "https"])
            && !text.contains('#')
            && http::Uri::from_str(text)
                .is_ok_and(|uri| uri.host().is_some_and(|h| !h.is_empty()) && uri.query().is_none())
    })
    .ok_or_else(|| {
        refused(
            name,
            "a URL like http://host:8080 or https://host/path, without a query",
        )
    })
}

/// `None`: refused; `Some(None)`: unset.
#[expect(
    clippy::option_option,
    reason = "refused and unset are told apart by the callers at once"
)]
fn secret(raw: &Option<Raw>, is_good: impl Fn(&str) -> bool) -> Option<Option<SecretString>> {
    match text(raw) {
        None => Some(None),
        Some(text) => is_good(text).then(|| Some(SecretString::from(text))),
    }
}

fn has_scheme(text: &str, schemes: &[&str]) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, rest)| schemes.contains(&scheme) && !rest.is_empty())
}

fn account_name(text: &str) -> Result<String, String> {
    let bad = text.trim() != text || text.is_empty() || text.chars().any(char::is_control);
    if bad {
        return Err(
            "expected a name without spaces around it and without control characters".to_owned(),
        );
    }
    Ok(text.to_owned())
}

fn role(text: &str) -> Result<Role, String> {
    Role::from_str(text).map_err(|_| "expected student, teacher, parent, ops or admin".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(settings.lease, Duration::from_secs(30));
        assert_eq!(settings.stuck_after, Duration::from_secs(300));
        assert_eq!(settings.scan_interval, Duration::from_secs(5));
        assert_eq!(settings.retention, Duration::from_secs(24 * 3600));
        assert_eq!(settings.front_lock_ttl, Duration::from_secs(5));
        assert_eq!(settings.front_lock_on_failure, FrontLockOnFailure::Degrade);
        assert_eq!(settings.reward_timeout, Duration::from_secs(5));
        assert_eq!(settings.rate_limit_per_account, NonZeroU32::new(100));
        assert_eq!(settings.rate_limit_per_address, NonZeroU32::new(50));
        assert_eq!(settings.demo_students, 30);
        assert!(settings.redis_url.is_none() && settings.reward_url.is_none());
        assert!(settings.otlp_endpoint.is_none());
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
    #[case("--redis-url", "REDIS_URL", &["redis://", "http://h", "h:6379", "redis://h:x y"])]
    #[case("--reward-url", "YICI_REWARD_URL", &["ftp://h", "h", "http://", "http:///x", "http://h?x=1", "http://h#x"])]
    #[case("--otel-exporter-otlp-endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT", &["h:4318", "grpc://h"])]
    fn bad_value_is_refused_by_name(
        #[case] flag: &str,
        #[case] name: &str,
        #[case] values: &[&str],
    ) {
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
            settings.reward_url.unwrap().expose_secret(),
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
            "--data-dir=/somewhere",
        ])
        .unwrap();
        assert_eq!(settings.lease, settings.stuck_after);
        assert_eq!(settings.rate_limit_per_account, None);
        assert_eq!(settings.front_lock_on_failure, FrontLockOnFailure::Refuse);
        assert_eq!(settings.demo_students, 100_000);
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
        let added: Result<_, InvocationError> =
            add(&["王芳", "--role", "student", "--class", "3A"]);
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
}
