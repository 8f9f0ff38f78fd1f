//! The arguments as clap reads them, and how they become settings.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use domain::{RecordState, Role, view::RecordFilter};
use engine::{FrontLockOnFailure, SecondPerson};

use super::{
    AskedCompensation, DatabaseSettings, EngineSettings, Invocation, NewAccount, Settings,
    SettingsError, TokenOwners,
    values::{
        Raw, database_url, http_url, listen, narrow, rate, redis_url, refused, state, text, whole,
    },
};

use crate::{reward_provider::Mode, simulate::Simulation, telemetry::LogFormat};

/// A day, in seconds.
const DAY_SECONDS: u64 = 24 * 3600;

/// What a person who imports wants to know and an option's line cannot say.
const IMPORT_HELP: &str = "\
student is the name of the student's account. Rows of one student and one task are taken in the order of the file.
Beside a running server or without one. After a stop or a kill, run the same command again.

Exit status: 0 when every row is new, was taken before, or stands there with the same content; 1 when a row was not taken
or the file was not read to its end; 2 when the command line is misused.";

/// What a person who simulates wants to know and an option's line cannot say.
const SIMULATE_HELP: &str = "\
Students hand in once, again, twice at the same moment, hang up and repeat, use two devices, or change the words under the same
key. Each request has a trace id, so that those whose answer was lost can be looked up, and the comparison is exact as long
as nobody else uses the server meanwhile.

Exit status: 0 when the panel agrees in every bucket; 1 when it does not, or the server could not be used; 2 when the command
line is misused.";

/// What an admin at the command line wants to know and an option's line cannot say.
const COMPENSATE_HELP: &str = "\
verify changes nothing and prints the evidence and what it permits. complete, release, re_execute and fail do what they say,
and are refused when the record has finished, has moved on, or the evidence forbids them. Every attempt is in the audit.

Exit status: 0 when it was done, proposed, or now waits for a second admin; 1 when it was refused; 2 when the command line is
misused.";

/// Yici: one business intent, one effect, one answer.
#[derive(Debug, Parser)]
#[command(name = "server", version, max_term_width = 120)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
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
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// List records, stuck ones with --stuck
    Records {
        #[command(flatten)]
        filter: RecordArgs,
        /// Print the page as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Send the traffic of students on bad networks to a running server with the demo, and compare with its panel
    #[command(after_long_help = SIMULATE_HELP)]
    Simulate {
        /// The server
        #[arg(long, default_value = "http://127.0.0.1:3000", value_name = "URL")]
        url: String,
        /// How many of the demo's students take part
        #[arg(long, default_value_t = 30, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        students: u32,
        /// How many pieces of work at most
        #[arg(long, default_value_t = 1000, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        intents: u64,
        /// For how long at most
        #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3000))]
        seconds: u64,
        /// Let the same students do the same [default: something new each time]
        #[arg(long, value_name = "NUMBER")]
        seed: Option<u64>,
        /// A shell command that is run once, half way, such as one that kills and restarts the server
        #[arg(long, value_name = "COMMAND")]
        disturb: Option<String>,
        /// The password of the demo's accounts
        #[arg(long, default_value = "demo", value_name = "TEXT")]
        password: String,
    },
    /// A small provider of rewards for the demo and for tests; it can misbehave as real ones do
    RewardProvider {
        /// Address and port to serve on
        #[arg(long, default_value = "127.0.0.1:4000", value_name = "ADDRESS:PORT")]
        listen: SocketAddr,
        /// How it behaves; `PUT /mode` changes it
        #[arg(long, value_enum, default_value = "ok")]
        mode: Mode,
        /// How late `slow` answers
        #[arg(long, default_value = "15000", value_name = "MILLISECONDS")]
        delay_ms: u64,
        /// Where it remembers what it gave [default: nowhere]
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
    },
    /// Do something about a record that did not end, with a reason
    #[command(after_long_help = COMPENSATE_HELP)]
    Compensate {
        #[command(flatten)]
        asked: AskedCompensation,
        #[command(flatten)]
        database: DatabaseArgs,
        #[command(flatten)]
        engine: EngineArgs,
    },
}

/// Which records are listed.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct RecordArgs {
    /// Only stuck records, the longest first
    #[arg(long)]
    stuck: bool,
    /// Only records in this state
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<RecordState>,
    /// Only records of this action
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only records of this account, by name or id
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// A key, the beginning of one, or a trace id
    #[arg(long, value_name = "TEXT")]
    q: Option<String>,
    /// Go on after this cursor of the page before
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// How many at most, 1 to 200
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: Option<u32>,
}

impl From<RecordArgs> for RecordFilter {
    fn from(args: RecordArgs) -> Self {
        Self {
            stuck: args.stuck.then_some(true),
            state: args.state,
            action: args.action,
            subject: args.subject,
            q: args.q,
            after: args.after,
            limit: args.limit,
            ..Self::default()
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// Make an account; the password comes on standard input
    Add {
        #[command(flatten)]
        account: NewAccount,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Issue one token for each account; prints `name,token` lines
    Issue {
        #[command(flatten)]
        owners: TokenOwners,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Database")]
pub(super) struct DatabaseArgs {
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
#[command(next_help_heading = "Engine")]
pub(super) struct EngineArgs {
    /// How long a claim is presumed alive [default: 30]
    #[arg(long, env = "YICI_LEASE_SECONDS", value_name = "SECONDS")]
    lease_seconds: Option<Raw>,
    /// When an unfinished record counts as stuck [default: 300]
    #[arg(long, env = "YICI_STUCK_AFTER_SECONDS", value_name = "SECONDS")]
    stuck_after_seconds: Option<Raw>,
    /// How long a finished record answers its key [default: 24]
    #[arg(long, env = "YICI_RETENTION_HOURS", value_name = "HOURS")]
    retention_hours: Option<Raw>,
    /// Who may compensate alone: by the action's `policy`, or nobody (`always` a second admin) [default: policy]
    #[arg(long, env = "YICI_SECOND_PERSON", value_name = "policy|always")]
    second_person: Option<Raw>,
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
    /// Where messages are delivered to [default: to their readers on the pages only]
    #[arg(
        long,
        env = "YICI_WEBHOOK_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    webhook_url: Option<Raw>,
    /// How long the webhook may take to answer [default: 5000]
    #[arg(long, env = "YICI_WEBHOOK_TIMEOUT_MS", value_name = "MILLISECONDS")]
    webhook_timeout_ms: Option<Raw>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct ServeArgs {
    #[command(flatten)]
    engine: EngineArgs,
    /// Address and port to serve on [default: 127.0.0.1:3000]
    #[arg(long, env = "YICI_LISTEN", value_name = "ADDRESS:PORT")]
    listen: Option<Raw>,
    /// The built front end [default: target/site]
    #[arg(long, env = "YICI_SITE_DIR", value_name = "DIR")]
    site_dir: Option<Raw>,
    /// Redis for the front lock [default: no front lock]
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_name = "URL")]
    redis_url: Option<Raw>,
    /// The scanner's pause [default: 5]
    #[arg(long, env = "YICI_SCAN_INTERVAL_SECONDS", value_name = "SECONDS")]
    scan_interval_seconds: Option<Raw>,
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
    /// Requests per second of one account, with bursts of four times that; 0: no limit [default: 100]
    #[arg(long, env = "YICI_RATE_LIMIT_PER_ACCOUNT", value_name = "NUMBER")]
    rate_limit_per_account: Option<Raw>,
    /// Requests per second without identity from one address, with bursts of four times that; 0: no limit [default: 50]
    #[arg(long, env = "YICI_RATE_LIMIT_PER_ADDRESS", value_name = "NUMBER")]
    rate_limit_per_address: Option<Raw>,
    /// Students of the demo, 1 to 100000 [default: 30]
    #[arg(long, env = "YICI_DEMO_STUDENTS", value_name = "NUMBER")]
    demo_students: Option<Raw>,
    /// How the log is written, to standard error: for people or as JSON lines [default: human]
    #[arg(long, env = "YICI_LOG_FORMAT", value_name = "human|json")]
    log_format: Option<Raw>,
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
    pub(super) fn check(self) -> Result<Invocation, SettingsError> {
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
            Self::Records {
                filter,
                json,
                database,
                engine,
            } => Invocation::Records {
                database: database.check()?,
                engine: engine.check()?,
                filter: Box::new(filter.into()),
                json,
            },
            Self::Simulate {
                url,
                students,
                intents,
                seconds,
                seed,
                disturb,
                password,
            } => Invocation::Simulate(Simulation {
                url,
                students,
                intents,
                duration: Duration::from_secs(seconds),
                seed,
                disturb,
                password,
            }),
            Self::RewardProvider {
                listen,
                mode,
                delay_ms,
                log,
            } => Invocation::RewardProvider {
                listen,
                mode,
                delay: Duration::from_millis(delay_ms),
                log,
            },
            Self::Compensate {
                asked,
                database,
                engine,
            } => Invocation::Compensate {
                database: database.check()?,
                engine: engine.check()?,
                asked,
            },
            Self::Import {
                file,
                rejects,
                database,
                engine,
            } => Invocation::Import {
                database: database.check()?,
                engine: engine.check()?,
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

impl EngineArgs {
    fn check(&self) -> Result<EngineSettings, SettingsError> {
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
        Ok(EngineSettings {
            lease: Duration::from_secs(lease),
            stuck_after: Duration::from_secs(stuck_after),
            retention: Duration::from_secs(
                3600 * number(
                    "YICI_RETENTION_HOURS",
                    &self.retention_hours,
                    24,
                    1..=10 * 365 * 24,
                    "hours",
                )?,
            ),
            second_person: match text(&self.second_person) {
                None | Some("policy") => SecondPerson::ByPolicy,
                Some("always") => SecondPerson::Always,
                Some(other) => {
                    return Err(SettingsError {
                        name: "YICI_SECOND_PERSON",
                        expected: "`policy` or `always`".to_owned(),
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
            webhook_url: http_url("YICI_WEBHOOK_URL", &self.webhook_url)?,
            webhook_timeout: Duration::from_millis(number(
                "YICI_WEBHOOK_TIMEOUT_MS",
                &self.webhook_timeout_ms,
                5000,
                1..=600_000,
                "milliseconds",
            )?),
        })
    }
}

impl ServeArgs {
    fn check(&self, database: DatabaseSettings) -> Result<Settings, SettingsError> {
        let number = |name, raw, default, range, unit| whole(name, raw, default, range, unit);
        Ok(Settings {
            database,
            listen: listen(&self.listen)?,
            site_dir: PathBuf::from(text(&self.site_dir).unwrap_or("target/site")),
            redis_url: redis_url(&self.redis_url)?,
            engine: self.engine.check()?,
            scan_interval: Duration::from_secs(number(
                "YICI_SCAN_INTERVAL_SECONDS",
                &self.scan_interval_seconds,
                5,
                1..=3600,
                "seconds",
            )?),
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
            log_format: match text(&self.log_format) {
                None | Some("human") => LogFormat::Human,
                Some("json") => LogFormat::Json,
                Some(other) => {
                    return Err(SettingsError {
                        name: "YICI_LOG_FORMAT",
                        expected: "`human` or `json`".to_owned(),
                        got: Some(other.to_owned()),
                    });
                }
            },
            otlp_endpoint: http_url(
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                &self.otel_exporter_otlp_endpoint,
            )?,
        })
    }
}
