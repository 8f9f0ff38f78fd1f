//! Every reason why a request is not done, with its HTTP status and the words of its problem page (RFC 9457).

use serde::{Deserialize, Serialize};

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident $status:literal $title:literal $advice:literal;)*) => {
        /// The `code` of a problem answer.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize,
            strum::Display, strum::EnumString, strum::AsRefStr, strum::VariantArray, strum::IntoStaticStr,
        )]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case")]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub enum ProblemCode {
            $($(#[$doc])* $name,)*
        }

        impl ProblemCode {
            /// The HTTP status of the answer.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// One line that is the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// What the caller can do.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)* }
            }
        }
    };
}

problems! {
    /// No identity.
    Unauthenticated 401 "Sign in first" "Send the session cookie or an `Authorization: Bearer` token that is still valid.";
    /// Wrong name or password.
    SignInFailed 401 "Name or password is wrong" "Check both; nothing tells which one was wrong.";
    /// Wrong role.
    Forbidden 403 "Your role does not permit this" "Ask with an account of the role that the API's description names.";
    /// A state-changing request from another site.
    CrossSite 403 "The request came from another site" "Send it from a page of this site, or without browser headers from a program.";
    /// Nothing there, or nothing that this account may see.
    NotFound 404 "Nothing here that you may see" "Check the address and the account.";
    /// The path is known, the method is not.
    MethodNotAllowed 405 "This method is not offered here" "See `/api/docs`.";
    /// The body is no JSON of the described form.
    InvalidBody 400 "The body is not as described" "Mend the member that `detail` names; nothing was stored.";
    /// A query parameter is not of the described form.
    InvalidQuery 400 "The query is not as described" "Mend the parameter that `detail` names.";
    /// The body is too large.
    BodyTooLarge 413 "The body is larger than 1 MiB" "Send less; nothing was stored.";
    /// The body is not declared as JSON.
    UnsupportedMediaType 415 "The body must be JSON" "Send `Content-Type: application/json`.";
    /// No `Idempotency-Key`.
    KeyMissing 400 "The Idempotency-Key header is missing" "Send one key for one intent, and repeat it in every retry.";
    /// The key breaks the grammar.
    KeyInvalid 400 "The Idempotency-Key is not valid" "Use 1 to 255 printable ASCII characters in exactly one header.";
    /// The same key was used for another request.
    KeyReused 422 "The key was used for another request" "Repeat the first request unchanged, or use a new key for the new intent.";
    /// Another key wrote the same business row with other content.
    AlreadySubmitted 409 "This version was already submitted with other content" "Look at the submission that `submission` links; ask the teacher to reopen the task.";
    /// The task is not this student's.
    TaskNotAssigned 404 "There is no such task for you" "Reload the list of tasks.";
    /// The task takes no submissions any more.
    TaskClosed 409 "The task is closed" "Ask the teacher whether it can be reopened.";
    /// Not the version that is current.
    VersionNotCurrent 409 "The submit_version is not the current one" "Fetch the task again and send the version that it gives.";
    /// No such reward.
    RewardNotFound 404 "There is no such reward" "Reload the list of rewards.";
    /// The sequence is not the next one.
    SequenceNotCurrent 409 "The sequence is not the next one" "Fetch the rewards again and send the `next_sequence` that they give.";
    /// Not enough points.
    InsufficientPoints 409 "There are not enough points" "Earn more points first; see `/api/v1/points`.";
    /// Another key's redemption of the same sequence is undecided.
    RedemptionInProgress 409 "This reward is being redeemed already" "Ask for the first request by its key; the points are held only once.";
    /// The provider refused.
    RewardRefused 409 "The provider refused" "The points are back; choose another reward, or try later with a new key.";
    /// There is no provider.
    RewardsUnavailable 503 "Rewards are not offered here" "Nothing was stored; ask the operator to set `YICI_REWARD_URL`.";
    /// The record has finished and is never touched again.
    AlreadyTerminal 409 "The record has already finished" "Nothing has to be done; look at its stored answer.";
    /// The record is not as it was seen, or its owner is alive.
    Stale 409 "The record has moved on" "Look at the record again and decide anew, with its present version.";
    /// What was found forbids the action.
    EvidenceForbids 422 "The evidence forbids this" "Choose one of the actions in `evidence.permitted`.";
    /// The one who asks cannot be the one who approves.
    SecondPersonNeeded 403 "A second person has to decide" "Ask another admin to approve or reject it.";
    /// The compensation does not wait for a decision any more.
    AlreadyDecided 409 "This was already decided" "Look at the compensation; ask for a new one where that is needed.";
    /// A person ended the request.
    ClosedByAdmin 409 "An administrator closed this request" "It was not done and will not be; send it anew, with a new key, if it is still wanted.";
    /// The message is no dead letter.
    NotDead 409 "The message is no dead letter" "It was delivered, or is still being tried; look at it again.";
    /// More records than one bulk may have.
    BulkTooLarge 422 "Too many records for one bulk" "Narrow the filter.";
    /// Too many requests.
    RateLimited 429 "Too many requests" "Wait for the seconds in `Retry-After`, then repeat with the same key.";
    /// The first execution failed for a reason that may pass.
    TemporaryFailure 503 "It failed for now" "Repeat the same request with the same key after `Retry-After`.";
    /// Postgres cannot be reached.
    StoreUnavailable 503 "The store cannot be reached; nothing was accepted" "Repeat the same request with the same key after `Retry-After`.";
    /// The front lock's store is away, and it was set to refuse then.
    FrontLockUnavailable 503 "New requests are not taken for now; nothing was accepted" "Repeat the same request with the same key after `Retry-After`.";
    /// Our fault.
    Internal 500 "Something went wrong on our side" "Repeat with the same key; if it stays, report the `trace_id`.";
}

/// When whoever was told that something is away may come again, in seconds: about what a failover or a restart takes.
pub const OUTAGE_RETRY_AFTER_SECONDS: u32 = 2;

impl ProblemCode {
    /// The address of the page that explains the problem.
    pub fn type_path(self) -> String {
        format!("/problems/{self}")
    }
}

/// The body of a problem answer (RFC 9457, `application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The page that explains this kind of problem.
    #[serde(rename = "type")]
    pub type_path: String,
    /// One line that is the same for every occurrence.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time, and what to do.
    pub detail: String,
    /// The kind of problem, for programs.
    pub code: String,
    /// The trace of the request, for reports.
    pub trace_id: String,
    /// The submission that stands in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission: Option<String>,
}

impl Problem {
    /// A problem with what happened this time.
    pub fn new(code: ProblemCode, detail: impl Into<String>, trace_id: impl Into<String>) -> Self {
        Self {
            type_path: code.type_path(),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code: code.to_string(),
            trace_id: trace_id.into(),
            submission: None,
        }
    }
}
