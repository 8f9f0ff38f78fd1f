//! What the sheets call things: a word for each outcome, defence, action, status, finding and refusal.

use domain::{
    Bucket, Defence,
    compensation::{CompensationAction, CompensationStatus, Finding},
};

use crate::text::{sheet_words, words};

/// The word for an outcome.
pub(super) fn outcome_word(outcome: Bucket) -> &'static str {
    let words = words();
    match outcome {
        Bucket::New => words.ops.bucket_new,
        Bucket::Reused => words.ops.bucket_reused,
        Bucket::Processing => words.ops.bucket_processing,
        Bucket::Unknown => words.ops.bucket_unknown,
        Bucket::Mismatch => words.ops.bucket_mismatch,
        Bucket::ConstraintConflict => words.ops.bucket_conflict,
    }
}

/// The word for a defence.
pub(super) fn defence_word(defence: Defence) -> &'static str {
    let words = sheet_words();
    match defence {
        Defence::None => words.defence_none,
        Defence::Cache => words.defence_cache,
        Defence::InFlight => words.defence_in_flight,
        Defence::Record => words.defence_record,
        Defence::Constraint => words.defence_constraint,
        Defence::FrontLock => words.defence_front_lock,
    }
}

/// The word for an action on a record.
pub(super) fn action_word(action: CompensationAction) -> &'static str {
    let words = sheet_words();
    match action {
        CompensationAction::Verify => words.act_verify,
        CompensationAction::Complete => words.act_complete,
        CompensationAction::Release => words.act_release,
        CompensationAction::ReExecute => words.act_re_execute,
        CompensationAction::Fail => words.act_fail,
    }
}

/// What an action leads to.
pub(super) fn consequence(action: CompensationAction) -> &'static str {
    let words = sheet_words();
    match action {
        CompensationAction::Verify => words.does_verify,
        CompensationAction::Complete => words.does_complete,
        CompensationAction::Release => words.does_release,
        CompensationAction::ReExecute => words.does_re_execute,
        CompensationAction::Fail => words.does_fail,
    }
}

/// Whether an action ends the record, so that nothing undoes it.
pub(super) const fn is_final(action: CompensationAction) -> bool {
    matches!(
        action,
        CompensationAction::Complete | CompensationAction::Fail
    )
}

/// The word for how a compensation stands.
pub(super) fn status_word(status: CompensationStatus) -> &'static str {
    let own = sheet_words();
    match status {
        CompensationStatus::Proposed => own.status_proposed,
        CompensationStatus::Applied => own.status_applied,
        CompensationStatus::AwaitingApproval => own.status_awaiting,
        CompensationStatus::Rejected => own.status_rejected,
        CompensationStatus::Expired => own.status_expired,
        CompensationStatus::Refused => own.status_refused,
    }
}

/// What was found, in words.
pub(super) fn finding_word(finding: Finding) -> &'static str {
    let words = sheet_words();
    match finding {
        Finding::Present => words.found_present,
        Finding::Other => words.found_other,
        Finding::Absent => words.found_absent,
        Finding::NotKnown => words.found_not_known,
    }
}

/// Why something was not done, by its code.
pub(super) fn refusal_word(code: &str) -> &'static str {
    let words = sheet_words();
    match code {
        "stale" => words.refused_stale,
        "already-terminal" => words.refused_terminal,
        "evidence-forbids" => words.refused_evidence,
        "reason" => words.refused_reason,
        "second-person" => words.refused_second_person,
        "decided" => words.refused_decided,
        "not-dead" => words.refused_not_dead,
        "gone" => words.refused_gone,
        "key" => words.refused_key,
        "size" => words.refused_size,
        _ => words.refused_for_now,
    }
}
