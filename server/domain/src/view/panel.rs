//! The panel's numbers, all read from durable rows.

use serde::{Deserialize, Serialize};

/// A window of time that the panel looks back over.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::AsRefStr,
    strum::VariantArray,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Window {
    /// Five minutes.
    #[default]
    #[serde(rename = "5m")]
    #[strum(serialize = "5m")]
    FiveMinutes,
    /// One hour.
    #[serde(rename = "1h")]
    #[strum(serialize = "1h")]
    OneHour,
    /// One day.
    #[serde(rename = "24h")]
    #[strum(serialize = "24h")]
    OneDay,
    /// One week.
    #[serde(rename = "7d")]
    #[strum(serialize = "7d")]
    OneWeek,
}

impl Window {
    /// Its length in minutes.
    pub const fn minutes(self) -> i32 {
        match self {
            Self::FiveMinutes => 5,
            Self::OneHour => 60,
            Self::OneDay => 24 * 60,
            Self::OneWeek => 7 * 24 * 60,
        }
    }

    /// How many minutes one point of the series covers: 5 to 84 points in all, few enough to draw and to send each second.
    ///
    /// A window begins on a whole one of these, so that rolled-up counters and the list of arrivals begin where it does.
    pub const fn step_minutes(self) -> i32 {
        match self {
            Self::FiveMinutes | Self::OneHour => 1,
            Self::OneDay => 30,
            Self::OneWeek => 120,
        }
    }
}

/// How many arrivals fell into each bucket, and how often each other event happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Counters {
    /// Arrivals that executed.
    pub new: i64,
    /// Arrivals that were answered with a stored result.
    pub reused: i64,
    /// Arrivals whose key was still executing.
    pub processing: i64,
    /// Arrivals whose outcome was not known.
    pub unknown: i64,
    /// Arrivals whose key had been used for another request.
    pub mismatch: i64,
    /// Arrivals that the business constraint answered.
    pub constraint_conflict: i64,
    /// Executions that ended FAILED_FINAL.
    pub failed_final: i64,
    /// Executions that ended FAILED_RETRYABLE.
    pub failed_retryable: i64,
    /// Front locks that ran out before the work ended.
    pub front_lock_expired_suspected: i64,
    /// Front locks that somebody else held when they were to be released.
    pub front_lock_release_mismatch: i64,
    /// Successes whose caller had gone before the answer.
    pub timeout_after_success: i64,
    /// Records brought to a proper state by the scanner or a person.
    pub compensated: i64,
}

impl Counters {
    /// Adds to the counter of this name; `false` when there is none, so that the caller can report it.
    pub fn add(&mut self, name: &str, n: i64) -> bool {
        let slot = match name {
            "new" => &mut self.new,
            "reused" => &mut self.reused,
            "processing" => &mut self.processing,
            "unknown" => &mut self.unknown,
            "mismatch" => &mut self.mismatch,
            "constraint_conflict" => &mut self.constraint_conflict,
            "failed_final" => &mut self.failed_final,
            "failed_retryable" => &mut self.failed_retryable,
            "front_lock_expired_suspected" => &mut self.front_lock_expired_suspected,
            "front_lock_release_mismatch" => &mut self.front_lock_release_mismatch,
            "timeout_after_success" => &mut self.timeout_after_success,
            "compensated" => &mut self.compensated,
            _ => return false,
        };
        *slot += n;
        true
    }

    /// The number of arrivals: the sum of the six buckets.
    pub const fn arrivals(&self) -> i64 {
        self.new
            + self.reused
            + self.processing
            + self.unknown
            + self.mismatch
            + self.constraint_conflict
    }

    /// The number of executions: only these two buckets run the action.
    pub const fn executions(&self) -> i64 {
        self.new + self.constraint_conflict
    }

    /// Which share of the executions did not fail; `None` without any.
    pub fn success_share(&self) -> Option<f64> {
        let failed = self.failed_final + self.failed_retryable;
        // A failure can be counted in the window of its end, and its arrival in an earlier one.
        let all = self.executions().max(failed);
        share(all - failed, all)
    }

    /// Which share of the arrivals asked for something that was asked for before; `None` without any.
    pub fn duplicate_share(&self) -> Option<f64> {
        share(self.arrivals() - self.new, self.arrivals())
    }

    /// Which share of the executions the scanner or a person had to bring to an end; `None` without any.
    pub fn compensation_share(&self) -> Option<f64> {
        share(self.compensated, self.executions().max(self.compensated))
    }
}

/// A part of a whole, from 0 to 1; `None` when there is no whole.
pub(crate) fn share(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// How records stand at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gauges {
    /// Records that are executing.
    pub processing: i64,
    /// Records whose outcome is not known.
    pub unknown: i64,
    /// Records that have been one of these two for too long.
    pub stuck: i64,
    /// Compensations that wait for a second person.
    pub awaiting_approval: i64,
    /// The age of the oldest record that is executing, in seconds; 0 without one.
    pub oldest_processing_seconds: i64,
    /// The age of the oldest stuck record, in seconds; 0 without one.
    pub oldest_stuck_seconds: i64,
}

/// The counters of one action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionCounters {
    /// The action.
    pub action: String,
    /// Its counters in the window.
    pub counters: Counters,
    /// How long its executions took, from arrival to answer.
    #[serde(default)]
    pub flow_ms: Latency,
}

/// The counters of one step of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeriesPoint {
    /// The beginning of the step; RFC 3339.
    pub at: String,
    /// Its counters.
    pub counters: Counters,
}

/// How long the newest arrivals of the window took, in milliseconds; absent without arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Latency {
    /// Half were at most this long.
    pub p50: Option<f64>,
    /// 95 of 100 were at most this long.
    pub p95: Option<f64>,
    /// 99 of 100 were at most this long.
    pub p99: Option<f64>,
}

/// How the front lock is, as the instance sees it that answers.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    strum::Display,
    strum::AsRefStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum FrontLockHealth {
    /// None is set.
    #[default]
    Off,
    /// Its store takes locks.
    Ok,
    /// Its store is away, and the database does without.
    Degraded,
    /// Its store is away, and new keys are refused meanwhile.
    Refusing,
}

/// The answer of `GET /api/v1/panel` and each event of its stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PanelView {
    /// When it was read, by Postgres's clock; RFC 3339.
    pub at: String,
    /// The window.
    pub window: Window,
    /// The counters of the window.
    pub counters: Counters,
    /// The counters of all time.
    pub totals: Counters,
    /// How records stand now.
    pub gauges: Gauges,
    /// The counters of the window for each action.
    pub by_action: Vec<ActionCounters>,
    /// The counters of the window over time, oldest first, without gaps.
    pub series: Vec<SeriesPoint>,
    /// How long arrivals took.
    pub latency_ms: Latency,
    /// How long a record may execute or be unknown before it counts as stuck, in seconds.
    pub stuck_after_seconds: i64,
    /// How the front lock is.
    pub front_lock: FrontLockHealth,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_they_name_and_nothing_without_it() {
        let counters = Counters {
            new: 8,
            constraint_conflict: 2,
            reused: 10,
            failed_final: 1,
            compensated: 1,
            ..Counters::default()
        };
        assert_eq!(counters.success_share(), Some(0.9));
        assert_eq!(counters.duplicate_share(), Some(0.6));
        assert_eq!(counters.compensation_share(), Some(0.1));
        let nothing = Counters::default();
        assert_eq!(nothing.success_share(), None);
        assert_eq!(nothing.duplicate_share(), None);
        assert_eq!(nothing.compensation_share(), None);
    }

    #[test]
    fn ends_whose_arrivals_are_older_than_the_window_stay_within_the_whole() {
        let late = Counters {
            failed_retryable: 3,
            compensated: 2,
            ..Counters::default()
        };
        assert_eq!(late.success_share(), Some(0.0));
        assert_eq!(late.compensation_share(), Some(1.0));
    }
}
