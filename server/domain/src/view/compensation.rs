//! Compensations, bulks and the audit, as ops and admins see them.

use serde::{Deserialize, Serialize};

use super::RecordSummary;
use crate::compensation::{BulkOutcome, CompensationAction, CompensationStatus, Finding};

/// What was found about a record's effect, and what that permits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EvidenceView {
    /// When it was looked at, by Postgres's clock; RFC 3339.
    pub at: String,
    /// What was found.
    pub finding: Finding,
    /// Which actions it permits.
    pub permitted: Vec<CompensationAction>,
    /// What is proposed; absent when only a person can choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<CompensationAction>,
    /// Whether this record's own claim wrote the business row; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_this_record: Option<bool>,
    /// The business row, when there is one with the same content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub row: Option<serde_json::Value>,
    /// Where the business row can be read, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// A compensation by a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompensationView {
    /// The id.
    pub id: String,
    /// The record.
    pub record_id: String,
    /// What was asked for.
    pub action: CompensationAction,
    /// How it stands.
    pub status: CompensationStatus,
    /// Why, in the words of whoever asked.
    pub reason: String,
    /// What was found when it was asked for, or decided; absent when it was refused before anything was looked at.
    pub evidence: Option<EvidenceView>,
    /// The problem's code, when it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The version of the record that it is meant for.
    pub expected_version: i64,
    /// Who asked: the account's id; absent for the command line without a name.
    pub actor: Option<String>,
    /// The account's name.
    pub actor_name: Option<String>,
    /// When it was asked for; RFC 3339.
    pub created_at: String,
    /// Until when a second person may decide; RFC 3339; absent when none is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// The answer to a compensation: what became of it, and the record as it stands now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompensationAnswer {
    /// The compensation.
    pub compensation: CompensationView,
    /// The record; absent when it has been purged meanwhile.
    pub record: Option<RecordSummary>,
}

/// A page of compensations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompensationPage {
    /// The compensations, newest first; those that wait for a second person oldest first when only they are asked for.
    pub compensations: Vec<CompensationView>,
    /// The cursor of the next page; absent on the last.
    pub next: Option<String>,
}

/// A line of the compensation log, which is only ever added to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompensationEvent {
    /// The id.
    pub id: String,
    /// The compensation; absent for the scanner's.
    pub compensation_id: Option<String>,
    /// What happened: `proposed`, `requested`, `approved`, `rejected`, `expired`, `applied` or `refused`.
    pub event: String,
    /// What was to be done.
    pub action: CompensationAction,
    /// Who did it: the account's name; absent for the scanner and for the command line without a name.
    pub actor_name: Option<String>,
    /// Why.
    pub reason: String,
    /// What was found.
    pub evidence: Option<EvidenceView>,
    /// When; RFC 3339.
    pub at: String,
}

/// Whether a bulk has come to its end.
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
pub enum BulkStatus {
    /// Some records are still to be done.
    Running,
    /// Every record has its outcome.
    Done,
}

/// What became of one record of a bulk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkResult {
    /// The record.
    pub record_id: String,
    /// What became of it.
    pub outcome: BulkOutcome,
    /// Why, as a problem's code; absent when it was applied.
    pub detail: Option<String>,
}

/// A bulk: one action on many records, frozen when it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkView {
    /// The id.
    pub id: String,
    /// What is done to each record.
    pub action: CompensationAction,
    /// Why.
    pub reason: String,
    /// Whether it has come to its end.
    pub status: BulkStatus,
    /// How many records it has.
    pub total: i64,
    /// How many of them have their outcome.
    pub done: i64,
    /// What became of each record so far; only when one bulk is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<BulkResult>>,
}

/// The answer about a bulk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkAnswer {
    /// The bulk.
    pub bulk: BulkView,
}

/// Which entries of the audit to list; absent members do not restrict.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
pub struct AuditFilter {
    /// Only entries of this account, by id or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Only entries of this action, or those that begin with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Only entries about this object, such as `record/12`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Continue after this cursor, the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many at most, 1 to 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// An entry of the audit, which is only ever added to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// The id.
    pub id: String,
    /// When; RFC 3339.
    pub at: String,
    /// Who: the account's id; absent for the system.
    pub actor: Option<String>,
    /// The account's name.
    pub actor_name: Option<String>,
    /// What was tried, such as `compensation.complete`.
    pub action: String,
    /// On what, such as `record/12`.
    pub object: String,
    /// From where, why, the outcome, before, after and evidence.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub detail: serde_json::Value,
}

/// A page of the audit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// The entries, newest first.
    pub entries: Vec<AuditEntry>,
    /// The cursor of the next page; absent on the last.
    pub next: Option<String>,
}
