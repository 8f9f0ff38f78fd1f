//! What can go wrong below the engine, sorted by what to do about it.

use std::sync::Arc;

/// A statement did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Postgres cannot be reached, or has no connection to give.
    #[error("the store cannot be reached")]
    Unavailable(#[source] Arc<sqlx::Error>),
    /// Postgres refused for a reason that may pass: a deadlock, a serialization failure, a lock that took too long.
    #[error("the store refused for now")]
    Transient(#[source] Arc<sqlx::Error>),
    /// A fault of ours: wrong SQL, a broken constraint, a row that cannot be read.
    #[error("the store failed")]
    Fault(#[source] Arc<sqlx::Error>),
    /// A stored row is not as the code expects it.
    #[error("a stored value is not as expected: {0}")]
    Corrupt(String),
}

/// An arrival could not be answered; nothing was accepted unless the variant says so.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    /// See [`StoreError`].
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No action of this name is registered.
    #[error("no such action")]
    UnknownAction,
    /// The command is not as the action expects it.
    #[error("the command is not valid: {0}")]
    InvalidCommand(String),
    /// Its effect lies outside, and no provider is set.
    #[error("no provider is set for this action")]
    NoProvider,
    /// The front lock's store is away, and new keys are refused meanwhile.
    #[error("the front lock's store is away")]
    FrontLockUnavailable,
    /// The process is stopping and takes no more work.
    #[error("the process is stopping")]
    Stopping,
}

impl StoreError {
    /// Whether repeating the same statement may succeed.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Transient(_))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        let sort: fn(Arc<sqlx::Error>) -> Self = match &error {
            E::Io(_)
            | E::Tls(_)
            | E::PoolTimedOut
            | E::PoolClosed
            | E::WorkerCrashed
            | E::Protocol(_) => Self::Unavailable,
            E::Database(database) => match database.code().as_deref() {
                // serialization_failure, deadlock_detected, lock_not_available, query_canceled
                Some("40001" | "40P01" | "55P03" | "57014") => Self::Transient,
                // connection exceptions, too_many_connections, shutdowns, read-only after a failover, disk full
                Some(code)
                    if code.starts_with("08")
                        || code.starts_with("57P")
                        || code.starts_with("53") =>
                {
                    Self::Unavailable
                }
                Some("25006") => Self::Unavailable,
                _ => Self::Fault,
            },
            _ => Self::Fault,
        };
        sort(Arc::new(error))
    }
}
