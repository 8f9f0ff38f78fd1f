//! What this process measures about itself: the names, their help, and the functions that note one event each.
//!
//! These numbers begin at 0 with the process and are its own; what must agree over all instances is read from the database
//! ([`Watched`]). Labels are bounded: registered actions and the words of this file, never a key, an account or a task.

use std::time::{Duration, Instant};

use domain::ActionType;
use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::store::actions::REGISTRY;

mod durable;

pub use durable::{PoolStats, Queues, Unfinished, Watched};

const REQUEST: &str = "idempotency_request_duration_seconds";
const CLAIM: &str = "idempotency_claim_duration_seconds";
const FINISH: &str = "idempotency_finish_duration_seconds";
const VERIFICATION: &str = "idempotency_verification_duration_seconds";
const FENCED: &str = "idempotency_fenced_owner_total";
const FRONT_LOCK: &str = "yici_front_lock_total";
const FRONT_LOCK_SECONDS: &str = "yici_front_lock_duration_seconds";
const RELAY: &str = "yici_relay_messages_total";
const HEARTBEAT: &str = "yici_scanner_heartbeat_timestamp_seconds";
const SCANS: &str = "yici_scanner_scans_total";
const TAKEN: &str = "yici_scanner_records_taken_total";
const RECOVERED: &str = "yici_scanner_records_recovered_total";

/// The histograms of this file, and their buckets' upper bounds in seconds.
///
/// A claim or a finish is one commit: half a millisecond on a good disk, a few on a busy one; from a quarter of a second on
/// something is wrong. A request may wait for 30 s, a verification of an effect outside for its provider.
pub const BUCKETS: &[(&str, &[f64])] = &[
    (REQUEST, SLOW),
    (CLAIM, QUICK),
    (FINISH, QUICK),
    (VERIFICATION, SLOW),
    (FRONT_LOCK_SECONDS, QUICK),
];
/// For one commit.
const QUICK: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];
/// For what somebody may wait for.
pub const SLOW: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// How asking for a front lock came out.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::AsRefStr, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum FrontLockResult {
    /// It was taken.
    Taken,
    /// Somebody else holds it.
    Held,
    /// Its store did not answer.
    Unavailable,
}

/// What became of a message at the relay.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, strum::AsRefStr, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum RelayResult {
    /// It was delivered.
    Delivered,
    /// It will be tried again.
    Failed,
    /// It was tried too often.
    Dead,
}

/// Describes every metric of the engine and makes every series be there at 0.
pub fn describe() {
    use strum::VariantArray;
    let own = "of this process since it started";
    describe_histogram!(
        REQUEST,
        Unit::Seconds,
        format!("Time from an arrival to its answer, {own}.")
    );
    describe_histogram!(
        CLAIM,
        Unit::Seconds,
        format!("Time that claiming a key took, {own}.")
    );
    describe_histogram!(
        FINISH,
        Unit::Seconds,
        format!("Time that effects and final state of an execution took, {own}.")
    );
    describe_histogram!(
        VERIFICATION,
        Unit::Seconds,
        format!("Time that looking for evidence took, {own}.")
    );
    describe_counter!(
        FENCED,
        format!("Owners that came back too late and wrote nothing, {own}.")
    );
    describe_counter!(
        FRONT_LOCK,
        format!("Front locks asked for, by how it came out, {own}.")
    );
    describe_histogram!(
        FRONT_LOCK_SECONDS,
        Unit::Seconds,
        format!("Time that asking for a front lock took, {own}.")
    );
    describe_counter!(
        RELAY,
        format!("Deliveries of messages, by what became of them, {own}.")
    );
    describe_gauge!(
        HEARTBEAT,
        Unit::Seconds,
        "When the scanner of this process last looked, by Postgres's clock; 0: never."
    );
    describe_counter!(SCANS, format!("Scans, by whether they succeeded, {own}."));
    describe_counter!(
        TAKEN,
        format!("Unfinished records that the scanner took, {own}.")
    );
    describe_counter!(
        RECOVERED,
        format!("Records that the scanner brought to a final state, {own}.")
    );
    for action in REGISTRY.iter() {
        let action = action.action_type().as_str();
        for name in [REQUEST, CLAIM, FINISH, VERIFICATION, FRONT_LOCK_SECONDS] {
            drop(histogram!(name, "action" => action));
        }
        counter!(FENCED, "action" => action).increment(0);
        counter!(TAKEN, "action" => action).increment(0);
        counter!(RECOVERED, "action" => action).increment(0);
        for result in FrontLockResult::VARIANTS {
            counter!(FRONT_LOCK, "action" => action, "result" => <&str>::from(*result))
                .increment(0);
        }
    }
    for result in RelayResult::VARIANTS {
        counter!(RELAY, "result" => <&str>::from(*result)).increment(0);
    }
    for result in ["done", "failed"] {
        counter!(SCANS, "result" => result).increment(0);
    }
    gauge!(HEARTBEAT).increment(0.0);
}

/// An arrival was answered.
pub(crate) fn note_request(action: ActionType, took: Duration) {
    histogram!(REQUEST, "action" => action.as_str()).record(took);
}

/// A key was claimed, or its record found.
pub(crate) fn note_claim(action: ActionType, begun: Instant) {
    histogram!(CLAIM, "action" => action.as_str()).record(begun.elapsed());
}

/// An execution was finished, or could not be.
pub(crate) fn note_finish(action: ActionType, begun: Instant) {
    histogram!(FINISH, "action" => action.as_str()).record(begun.elapsed());
}

/// A record was verified.
pub(crate) fn note_verification(action: ActionType, begun: Instant) {
    histogram!(VERIFICATION, "action" => action.as_str()).record(begun.elapsed());
}

/// An owner was fenced.
pub(crate) fn note_fenced(action: ActionType) {
    counter!(FENCED, "action" => action.as_str()).increment(1);
}

/// A front lock was asked for.
pub(crate) fn note_front_lock(action: ActionType, result: FrontLockResult, begun: Instant) {
    counter!(FRONT_LOCK, "action" => action.as_str(), "result" => <&str>::from(result))
        .increment(1);
    histogram!(FRONT_LOCK_SECONDS, "action" => action.as_str()).record(begun.elapsed());
}

/// Messages left the relay.
pub(crate) fn note_relay(result: RelayResult, messages: u64) {
    counter!(RELAY, "result" => <&str>::from(result)).increment(messages);
}

/// The scanner looked, at this moment by Postgres's clock, in seconds since 1970.
pub(crate) fn note_heartbeat(at: f64) {
    gauge!(HEARTBEAT).set(at);
}

/// A scan came to its end.
pub(crate) fn note_scan(succeeded: bool) {
    counter!(SCANS, "result" => if succeeded { "done" } else { "failed" }).increment(1);
}

/// The scanner took a record.
pub(crate) fn note_taken(action: ActionType) {
    counter!(TAKEN, "action" => action.as_str()).increment(1);
}

/// The scanner brought a record to a final state.
pub(crate) fn note_recovered(action: ActionType) {
    counter!(RECOVERED, "action" => action.as_str()).increment(1);
}
