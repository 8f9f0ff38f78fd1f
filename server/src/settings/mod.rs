//! The command line and the environment: what the server can be told, checked before anything is started.
//!
//! Each setting is an environment variable and a flag of `serve`. A bad value is refused by the variable's name; its value is
//! repeated only where it cannot be a secret. An empty value counts as unset, because that is how shells and compose files
//! write "not set".

mod command_line;
#[cfg(test)]
mod tests;
mod values;

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use domain::{IdempotencyKey, Role, compensation::CompensationAction, view::RecordFilter};
use engine::{EngineConfig, FrontLockConfig, FrontLockOnFailure, RemoteConfig, SecondPerson};
use secrecy::SecretString;

use crate::reward_provider::Mode;
use crate::{simulate::Simulation, telemetry::LogFormat};
use command_line::Cli;
use values::{account_name, compensation_action, idempotency_key, role};

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
        /// As the servers on this database.
        engine: EngineSettings,
    },
    /// Send the traffic of students to a running server.
    Simulate(Simulation),
    /// List records.
    Records {
        /// Where.
        database: DatabaseSettings,
        /// As the servers on this database.
        engine: EngineSettings,
        /// Which.
        filter: Box<RecordFilter>,
        /// As JSON instead of a table.
        json: bool,
    },
    /// Play the provider of rewards.
    RewardProvider {
        /// Where to serve.
        listen: SocketAddr,
        /// How it behaves.
        mode: Mode,
        /// How late it answers when it is slow.
        delay: Duration,
        /// Where it remembers what it gave.
        log: Option<PathBuf>,
    },
    /// Do something about a record.
    Compensate {
        /// Where.
        database: DatabaseSettings,
        /// As the servers on this database.
        engine: EngineSettings,
        /// What.
        asked: AskedCompensation,
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

    /// How the log is written, and where traces go: settings of `serve`.
    pub fn telemetry(&self) -> (LogFormat, Option<&SecretString>) {
        match self {
            Self::Serve { settings, .. } => (settings.log_format, settings.otlp_endpoint.as_ref()),
            _ => (LogFormat::default(), None),
        }
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
    /// The engine's.
    pub engine: EngineSettings,
    /// `YICI_SCAN_INTERVAL_SECONDS`: the scanner's pause.
    pub scan_interval: Duration,
    /// `YICI_FRONT_LOCK_TTL_MS`: when a front lock lapses.
    pub front_lock_ttl: Duration,
    /// `YICI_FRONT_LOCK_ON_FAILURE`: what happens when the front lock's store is away.
    pub front_lock_on_failure: FrontLockOnFailure,
    /// `YICI_RATE_LIMIT_PER_ACCOUNT`: requests per second; `None`: no limit.
    pub rate_limit_per_account: Option<NonZeroU32>,
    /// `YICI_RATE_LIMIT_PER_ADDRESS`: requests per second without identity; `None`: no limit.
    pub rate_limit_per_address: Option<NonZeroU32>,
    /// `YICI_DEMO_STUDENTS`: how many students the demo has, 1 to 100,000.
    pub demo_students: u32,
    /// `YICI_LOG_FORMAT`: how the log is written.
    pub log_format: LogFormat,
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: where traces go.
    pub otlp_endpoint: Option<SecretString>,
}

impl Settings {
    /// The lock in front of claims, if there is to be one.
    pub fn front_lock(&self) -> Option<FrontLockConfig> {
        self.redis_url.clone().map(|url| FrontLockConfig {
            url,
            ttl: self.front_lock_ttl,
            on_failure: self.front_lock_on_failure,
        })
    }
}

/// What every process on one database should agree about.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// `YICI_LEASE_SECONDS`: how long a claim is presumed alive.
    pub lease: Duration,
    /// `YICI_STUCK_AFTER_SECONDS`: when an unfinished record counts as stuck.
    pub stuck_after: Duration,
    /// `YICI_RETENTION_HOURS`: how long a finished record answers its key.
    pub retention: Duration,
    /// `YICI_SECOND_PERSON`: which compensations need a second admin.
    pub second_person: SecondPerson,
    /// `YICI_REWARD_URL`: the external reward provider, without a slash at the end.
    pub reward_url: Option<SecretString>,
    /// `YICI_REWARD_TIMEOUT_MS`: how long the provider may take to answer.
    pub reward_timeout: Duration,
    /// `YICI_WEBHOOK_URL`: where messages are delivered to, without a slash at the end.
    pub webhook_url: Option<SecretString>,
    /// `YICI_WEBHOOK_TIMEOUT_MS`: how long it may take to answer.
    pub webhook_timeout: Duration,
}

impl EngineSettings {
    /// The engine's configuration for a process of this name.
    pub fn config(&self, instance_name: impl Into<String>) -> EngineConfig {
        EngineConfig {
            instance_name: instance_name.into(),
            lease: self.lease,
            stuck_after: self.stuck_after,
            retention: self.retention,
            second_person: self.second_person,
            reward: self.reward_url.clone().map(|url| RemoteConfig {
                url,
                timeout: self.reward_timeout,
            }),
            webhook: self.webhook_url.clone().map(|url| RemoteConfig {
                url,
                timeout: self.webhook_timeout,
            }),
            ..EngineConfig::default()
        }
    }
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

/// A compensation from the command line.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct AskedCompensation {
    /// The record's id
    #[arg(value_name = "ID")]
    pub record_id: String,
    /// verify, complete, release, re_execute or fail
    #[arg(long, value_parser = compensation_action)]
    pub action: CompensationAction,
    /// Why; it is kept in the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The admin who asks [default: nobody by name]
    #[arg(long = "as", value_name = "NAME", value_parser = account_name)]
    pub admin: Option<String>,
    /// Only if the record still has this version [default: whatever it has]
    #[arg(long, value_name = "NUMBER")]
    pub expected_version: Option<i64>,
    /// Names this intent, so that the command can be repeated [default: a new one each time]
    #[arg(long, value_name = "KEY", value_parser = idempotency_key)]
    pub key: Option<IdempotencyKey>,
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
