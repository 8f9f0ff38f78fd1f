//! What a person may do about a record that did not end, and what the evidence permits.

use serde::{Deserialize, Serialize};

/// What is to be done with a record.
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
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CompensationAction {
    /// Changes nothing; returns the evidence and the proposed action.
    Verify,
    /// SUCCEEDED, from the business row.
    Complete,
    /// FAILED_RETRYABLE: the same key may run again.
    Release,
    /// Runs the stored request under a new epoch.
    ReExecute,
    /// FAILED_FINAL: the caller is told that it did not happen and will not.
    Fail,
}

/// How a compensation stands.
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
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CompensationStatus {
    /// The evidence was looked at and an action proposed; nothing was changed.
    Proposed,
    /// Done.
    Applied,
    /// Waits for a second person.
    AwaitingApproval,
    /// The second person said no.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// It was not permitted, by the record's state, its version or the evidence.
    Refused,
}

/// What the business tables, or the outside, tell about a record's effect.
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
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Finding {
    /// It happened, with the same content, whichever key did it.
    Present,
    /// Another content stands in its place.
    Other,
    /// It did not happen, and cannot happen any more under an epoch that is fenced.
    Absent,
    /// Nobody can tell.
    NotKnown,
}

/// The second person's word.
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
pub enum Decision {
    /// It is to be done.
    Approve,
    /// It is not.
    Reject,
}

/// What became of one record of a bulk.
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
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum BulkOutcome {
    /// Done.
    Applied,
    /// It had finished, moved on, or was alive.
    Skipped,
    /// The evidence forbids it.
    Refused,
    /// The store failed, also when it was tried again.
    Failed,
    /// Waits for a second person.
    AwaitingApproval,
}

impl CompensationAction {
    /// Those that change a record, so that a person has to choose between them.
    pub const CHANGING: &[Self] = &[Self::Complete, Self::Release, Self::ReExecute, Self::Fail];

    /// Whether what was found permits this. `verify` only looks, so it always may.
    pub const fn permitted_by(self, finding: Finding) -> bool {
        match finding {
            // It happened: to say otherwise, or to do it again, would be wrong.
            Finding::Present => matches!(self, Self::Verify | Self::Complete),
            // Its place is taken: it can neither have happened nor happen.
            Finding::Other => matches!(self, Self::Verify | Self::Fail),
            Finding::Absent => !matches!(self, Self::Complete),
            // A person may know what the system cannot, but must not let it run again.
            Finding::NotKnown => matches!(self, Self::Verify | Self::Complete | Self::Fail),
        }
    }
}

impl Finding {
    /// What a verification proposes; `None` when only a person can choose.
    pub const fn proposal(self) -> Option<CompensationAction> {
        match self {
            Self::Present => Some(CompensationAction::Complete),
            Self::Other => Some(CompensationAction::Fail),
            Self::Absent => Some(CompensationAction::ReExecute),
            Self::NotKnown => None,
        }
    }

    /// What it permits, besides looking.
    pub fn permits(self) -> Vec<CompensationAction> {
        CompensationAction::CHANGING
            .iter()
            .copied()
            .filter(|action| action.permitted_by(self))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn evidence_permits_what_the_contract_says() {
        let permitted = |finding: Finding| {
            let names: Vec<_> = finding.permits().iter().map(ToString::to_string).collect();
            names.join(" ")
        };
        assert_eq!(permitted(Finding::Present), "complete");
        assert_eq!(permitted(Finding::Other), "fail");
        assert_eq!(permitted(Finding::Absent), "release re_execute fail");
        assert_eq!(permitted(Finding::NotKnown), "complete fail");
    }

    #[test]
    fn what_is_proposed_is_permitted() {
        for finding in Finding::VARIANTS {
            assert!(CompensationAction::Verify.permitted_by(*finding));
            if let Some(action) = finding.proposal() {
                assert!(action.permitted_by(*finding), "{finding}");
            }
        }
    }
}
