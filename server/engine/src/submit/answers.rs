//! The contract's outcome table: which answer belongs to which record.

use domain::{Bucket, Defence, ProblemCode, RecordState, key::request_location, problem::Problem};
use serde_json::json;

use super::{Intent, finish::FinishJob};
use crate::{
    Answer,
    store::{
        actions::{ClaimRef, Verdict},
        record::{Executor, FinishRow, FoundRecord, StoredAnswer},
    },
};

/// When a caller should ask again, in seconds.
const RETRY_AFTER: u32 = 1;

/// The answer to the arrival that executed.
pub(super) fn of_execution(
    response: Option<&StoredAnswer>,
    bucket: Bucket,
    intent: &Intent,
) -> Answer {
    match response {
        // A fenced owner's arrival met what another execution had finished.
        Some(response) => replay(response, bucket, bucket == Bucket::Reused),
        None if bucket == Bucket::Unknown => unknown(intent),
        None => Answer {
            bucket,
            defence: usual_defence(bucket),
            ..temporary_failure(intent)
        },
    }
}

/// The answer to an arrival that found a record, and whether it was the same request.
pub(super) fn of_record(record: &FoundRecord, intent: &Intent) -> (bool, Answer) {
    if record.fingerprint != intent.fingerprint.as_bytes() {
        return (false, mismatch(intent));
    }
    let answer = match (&record.response, record.state) {
        (Some(response), _) => replay(response, Bucket::Reused, true),
        (None, RecordState::Processing) if record.lease_is_live => processing(intent),
        // Waits to be run again, by the caller's next request or by the scanner.
        (None, RecordState::FailedRetryable) => {
            pending(intent, Bucket::Processing, RecordState::FailedRetryable)
        }
        _ => unknown(intent),
    };
    (true, answer)
}

fn replay(response: &StoredAnswer, bucket: Bucket, replayed: bool) -> Answer {
    Answer {
        bucket,
        defence: usual_defence(bucket),
        status: response.status,
        body: response.body.clone(),
        location: response.location.clone(),
        retry_after: None,
        replayed,
    }
}

/// The defence that answers arrivals of a bucket, unless another one was quicker.
const fn usual_defence(bucket: Bucket) -> Defence {
    match bucket {
        Bucket::New => Defence::None,
        Bucket::ConstraintConflict => Defence::Constraint,
        Bucket::Reused | Bucket::Processing | Bucket::Unknown | Bucket::Mismatch => Defence::Record,
    }
}

/// 202: the key is executing.
pub(super) fn processing(intent: &Intent) -> Answer {
    pending(intent, Bucket::Processing, RecordState::Processing)
}

/// 202: nobody knows yet whether it happened.
pub(super) fn unknown(intent: &Intent) -> Answer {
    pending(intent, Bucket::Unknown, RecordState::Unknown)
}

fn pending(intent: &Intent, bucket: Bucket, state: RecordState) -> Answer {
    let body = json!({ "key": intent.key, "action": intent.action_type(), "state": state });
    Answer {
        bucket,
        defence: usual_defence(bucket),
        status: 202,
        body: body.to_string(),
        location: Some(request_location(&intent.key, intent.action_type())),
        retry_after: Some(RETRY_AFTER),
        replayed: false,
    }
}

/// 422: the key was used for another request; nothing changes.
pub(super) fn mismatch(intent: &Intent) -> Answer {
    let detail = "This key already names another request. Repeat that one unchanged, or use a new key for a new intent.";
    problem(
        ProblemCode::KeyReused,
        detail,
        Bucket::Mismatch,
        &intent.trace_id,
    )
}

/// 503: it failed for a reason that may pass; the same key runs again.
pub(super) fn temporary_failure(intent: &Intent) -> Answer {
    let detail = "The request was taken but could not be finished now. Repeat it with the same key; nothing will be done twice.";
    let answer = problem(
        ProblemCode::TemporaryFailure,
        detail,
        Bucket::New,
        &intent.trace_id,
    );
    Answer {
        retry_after: Some(RETRY_AFTER),
        ..answer
    }
}

fn problem(code: ProblemCode, detail: &str, bucket: Bucket, trace_id: &str) -> Answer {
    Answer {
        bucket,
        defence: usual_defence(bucket),
        status: code.status(),
        body: to_json(&Problem::new(code, detail, trace_id)),
        location: None,
        retry_after: None,
        replayed: false,
    }
}

fn to_json(problem: &Problem) -> String {
    serde_json::to_string(problem).expect("a problem of strings and numbers is always JSON")
}

/// The answer that a refusal for good stores.
pub(crate) fn refusal(code: ProblemCode, location: Option<String>, trace_id: &str) -> StoredAnswer {
    let problem = Problem {
        submission: location,
        ..Problem::new(code, code.advice(), trace_id)
    };
    StoredAnswer {
        status: code.status(),
        body: to_json(&problem),
        location: None,
    }
}

/// How a verdict ends its record.
pub(super) fn finish_row(job: &FinishJob, verdict: Verdict) -> FinishRow {
    let refuse = |code, location| refusal(code, location, &job.trace_id);
    let (state, response, code, bucket) = match verdict {
        Verdict::Done {
            status,
            body,
            location,
        } => (
            RecordState::Succeeded,
            StoredAnswer {
                status,
                body,
                location: Some(location),
            },
            None,
            Bucket::New,
        ),
        Verdict::ConflictSame { body, location } => {
            let response = StoredAnswer {
                status: 200,
                body,
                location: Some(location),
            };
            (
                RecordState::Succeeded,
                response,
                None,
                Bucket::ConstraintConflict,
            )
        }
        Verdict::Passing => return retryable_row(job.claim, job.executor),
        Verdict::NotKnown => return unknown_row(job.claim, job.executor),
        Verdict::ConflictOther { code, location } => (
            RecordState::FailedFinal,
            refuse(code, location),
            Some(code),
            Bucket::ConstraintConflict,
        ),
        Verdict::Refused { code } => (
            RecordState::FailedFinal,
            refuse(code, None),
            Some(code),
            Bucket::New,
        ),
    };
    FinishRow {
        claim: job.claim,
        executor: job.executor,
        state,
        response: Some(response),
        error_code: code.map(Into::into),
        bucket,
        defence: if bucket == Bucket::ConstraintConflict {
            Defence::Constraint
        } else {
            Defence::None
        },
    }
}

/// How a record ends whose execution failed for a reason that may pass.
pub(super) fn retryable_row(claim: ClaimRef, executor: Executor) -> FinishRow {
    FinishRow {
        claim,
        executor,
        state: RecordState::FailedRetryable,
        response: None,
        error_code: Some(ProblemCode::TemporaryFailure.into()),
        bucket: Bucket::New,
        defence: Defence::None,
    }
}

/// How a record is left whose effect outside may have happened.
fn unknown_row(claim: ClaimRef, executor: Executor) -> FinishRow {
    FinishRow {
        state: RecordState::Unknown,
        error_code: None,
        bucket: Bucket::Unknown,
        ..retryable_row(claim, executor)
    }
}
