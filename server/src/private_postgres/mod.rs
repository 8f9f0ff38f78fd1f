//! The server's own Postgres: one cluster under the data directory, for when no `DATABASE_URL` is set.
//!
//! Owns the cluster's files, its process and its password. It must not hold SQL (that is the engine's), must never give up
//! durability for speed, and must never be reachable by other users of the machine: it listens on loopback only and asks
//! for a random password that is kept, readable by its owner alone, next to the data.
//!
//! ```text
//! data/postgres.lock       flock'ed by the one server process that owns the cluster
//! data/postgres/           owned by the user that Postgres runs as, mode 0700; perhaps a link, see `home`
//!   cluster/               PGDATA
//!   password               of the role `yici`
//!   log  log.1             what Postgres has to say
//! ```

mod binaries;
mod cluster;
mod home;
mod postmaster;
mod run_user;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use secrecy::{ExposeSecret, SecretString};
use sqlx::migrate::MigrateDatabase;

use cluster::Cluster;

/// The database that the application uses inside the cluster.
const DATABASE: &str = "yici";

/// How long a second process waits for the lock before it gives up: long enough for a server that is just stopping or for
/// a short command, short enough for a person who started a second server by mistake.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// How long a joining command waits until the owner's cluster answers.
const JOIN_PATIENCE: Duration = Duration::from_secs(30);

/// Why the private Postgres could not be started, reached or stopped.
#[derive(Debug, thiserror::Error)]
pub enum PrivatePostgresError {
    /// A file or directory could not be used.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried, e.g. `create`.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A program could not be run at all.
    #[error("cannot run {program}")]
    Run {
        /// The program.
        program: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another process owns this data directory.
    #[error(
        "the private Postgres in {} is in use by another server (process {holder}); stop it, or give this one its own YICI_DATA_DIR or a DATABASE_URL",
        data_dir.display()
    )]
    InUse {
        /// The data directory.
        data_dir: PathBuf,
        /// The process id that its owner left, or `unknown`.
        holder: String,
    },
    /// No usable Postgres server programs on this machine.
    #[error(
        "no Postgres server programs (initdb, pg_ctl, postgres; version {MIN} or later) found for user {user}; looked in {looked}. Install one (Debian: `apt-get install postgresql`, macOS: `brew install postgresql@17`), or set DATABASE_URL",
        MIN = binaries::MINIMUM_MAJOR
    )]
    NoBinaries {
        /// The user that has to be able to run them.
        user: String,
        /// Where they were looked for.
        looked: String,
    },
    /// The data was written by a major version whose programs are not here.
    #[error(
        "{} was written by Postgres {wanted}, and only version {found} was found; install Postgres {wanted}, or move the directory away to begin with an empty database",
        dir.display()
    )]
    OtherVersion {
        /// The cluster's directory.
        dir: PathBuf,
        /// Its major version.
        wanted: u32,
        /// The major versions found.
        found: String,
    },
    /// Postgres does not run as root, and neither `postgres` nor `nobody` exists.
    #[error(
        "Postgres does not run as root and this machine has neither a user `postgres` nor `nobody`; start the server as another user, or set DATABASE_URL"
    )]
    NoUser,
    /// The cluster belongs to somebody else.
    #[error(
        "{} belongs to user id {owner}, and this server runs as user id {me}; start it as that user, or choose another YICI_DATA_DIR",
        dir.display()
    )]
    OtherOwner {
        /// The cluster's directory.
        dir: PathBuf,
        /// Its owner.
        owner: u32,
        /// The effective user id of this process.
        me: u32,
    },
    /// The user that Postgres runs as cannot enter a directory on the way to its data.
    #[error(
        "user {user}, which Postgres runs as, cannot enter {}; allow it (chmod o+x), or choose another YICI_DATA_DIR",
        dir.display()
    )]
    NotEnterable {
        /// The first directory that it cannot enter.
        dir: PathBuf,
        /// The user.
        user: String,
    },
    /// `data/postgres` links to a directory that is gone.
    #[error(
        "{} links to {}, which does not exist; remove the link to begin with an empty database",
        link.display(),
        target.display()
    )]
    DanglingHome {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A program of Postgres failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// The program.
        program: &'static str,
        /// The last lines of what it said.
        output: String,
    },
    /// Postgres ended again and again instead of starting, or did not get ready.
    #[error("Postgres did not start ({reason}); the last lines of {}:\n{tail}", log.display())]
    NotStarted {
        /// What was seen from outside.
        reason: String,
        /// Its log.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// It runs and the connection was refused.
    #[error("the private Postgres runs and cannot be connected to")]
    Connect(#[source] sqlx::Error),
    /// The thread that did the work panicked or was cancelled.
    #[error("starting or stopping the private Postgres was interrupted")]
    Interrupted(#[source] tokio::task::JoinError),
}

/// A running private cluster.
///
/// Dropping it tells Postgres to stop and does not wait; [`PrivatePostgres::stop`] waits.
#[derive(Debug)]
pub struct PrivatePostgres {
    url: SecretString,
    /// `None` for a guest, which never stops what it does not own.
    cluster: Option<Cluster>,
}

impl PrivatePostgres {
    /// Starts the cluster under `data_dir`, making it first where there is none, or takes over the one that a killed server
    /// left running. Creates the application's database.
    ///
    /// # Errors
    /// See [`PrivatePostgresError`]; [`PrivatePostgresError::InUse`] when another process owns `data_dir`.
    pub async fn start(data_dir: &Path) -> Result<Self, PrivatePostgresError> {
        let dir = data_dir.to_owned();
        let cluster = blocking(move || Cluster::open(&dir, LOCK_PATIENCE)).await??;
        // From here on an early return drops `private`, which stops the cluster.
        let private = Self {
            url: cluster.url(DATABASE),
            cluster: Some(cluster),
        };
        let url = private.url.expose_secret();
        let exists = sqlx::Postgres::database_exists(url)
            .await
            .map_err(PrivatePostgresError::Connect)?;
        if !exists {
            sqlx::Postgres::create_database(url)
                .await
                .map_err(PrivatePostgresError::Connect)?;
        }
        Ok(private)
    }

    /// For short commands beside a running server: as [`PrivatePostgres::start`], but when another process owns `data_dir`, a
    /// guest of its cluster.
    ///
    /// # Errors
    /// As for [`PrivatePostgres::start`]; [`PrivatePostgresError::InUse`] when the owner's cluster does not answer in time.
    pub async fn start_or_join(data_dir: &Path) -> Result<Self, PrivatePostgresError> {
        let in_use = match Self::start(data_dir).await {
            Err(error @ PrivatePostgresError::InUse { .. }) => error,
            other => return other,
        };
        let deadline = tokio::time::Instant::now() + JOIN_PATIENCE;
        loop {
            let dir = data_dir.to_owned();
            let found = blocking(move || cluster::find_running(&dir, DATABASE)).await??;
            if let Some(url) = found
                && sqlx::Postgres::database_exists(url.expose_secret())
                    .await
                    .unwrap_or(false)
            {
                return Ok(Self { url, cluster: None });
            }
            if tokio::time::Instant::now() > deadline {
                return Err(in_use);
            }
            tokio::time::sleep(postmaster::POLL).await;
        }
    }

    /// Where to connect; holds the password.
    pub fn database_url(&self) -> &SecretString {
        &self.url
    }

    /// Whether this process started the cluster or took it over, and will stop it.
    pub fn is_owner(&self) -> bool {
        self.cluster.is_some()
    }

    /// Stops the cluster ("fast": open transactions are rolled back) and waits until it is down. A guest stops nothing.
    ///
    /// # Errors
    /// When Postgres neither stops nor can be made to.
    pub async fn stop(mut self) -> Result<(), PrivatePostgresError> {
        match self.cluster.take() {
            Some(cluster) => blocking(move || cluster.stop()).await?,
            None => Ok(()),
        }
    }

    /// Gives up ownership and leaves Postgres running, as a killed server does; the next start takes it over.
    pub fn leave_running(mut self) {
        if let Some(cluster) = self.cluster.take() {
            cluster.leave_running();
        }
    }
}

/// Runs blocking work on the runtime's thread pool for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PrivatePostgresError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(PrivatePostgresError::Interrupted)
}

/// Adds what was tried to an input/output error.
trait FileContext<T> {
    fn file(self, what: &'static str, path: &Path) -> Result<T, PrivatePostgresError>;
}

impl<T> FileContext<T> for io::Result<T> {
    fn file(self, what: &'static str, path: &Path) -> Result<T, PrivatePostgresError> {
        self.map_err(|source| PrivatePostgresError::File {
            what,
            path: path.to_owned(),
            source,
        })
    }
}
