//! How an arrival ended, and which defence answered it.

use serde::{Deserialize, Serialize};

/// The bucket of an arrival: each arrival falls into exactly one, and `Idempotency-Status` names it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::AsRefStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Bucket {
    /// It executed.
    New,
    /// It was answered with the stored result.
    Reused,
    /// The same key was still executing.
    Processing,
    /// The outcome is not known yet.
    Unknown,
    /// The key was used for another request before.
    Mismatch,
    /// Another key had already written the same business row.
    ConstraintConflict,
}

impl Bucket {
    /// The value of the `Idempotency-Status` header.
    pub const fn header_value(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Reused => "reused",
            Self::Processing => "processing",
            Self::Unknown => "unknown",
            Self::Mismatch => "mismatch",
            Self::ConstraintConflict => "constraint-conflict",
        }
    }
}

/// What is counted beside the buckets of arrivals: ends of executions and suspicions.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::Display,
    strum::EnumString,
    strum::AsRefStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum EndEvent {
    /// An execution ended FAILED_FINAL.
    FailedFinal,
    /// An execution ended FAILED_RETRYABLE.
    FailedRetryable,
    /// A front lock expired while its work still ran.
    FrontLockExpiredSuspected,
    /// A front lock was held by another token when it was to be released.
    FrontLockReleaseMismatch,
    /// An execution succeeded, but its caller had gone before the answer.
    TimeoutAfterSuccess,
    /// A record was brought to a proper state by the scanner or a person.
    Compensated,
}

/// Which of the defences answered an arrival.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::AsRefStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Defence {
    /// None was needed: it executed.
    None,
    /// The bounded memory cache of terminal answers.
    Cache,
    /// The execution that was running at the same process.
    InFlight,
    /// The record in Postgres.
    Record,
    /// The unique constraint of the business table.
    Constraint,
    /// The front lock.
    FrontLock,
}
