//! Who may do what.

use serde::{Deserialize, Serialize};

/// What an account is; one role each.
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
pub enum Role {
    /// Submits tasks.
    Student,
    /// Sees the progress of the own classes.
    Teacher,
    /// Sees the report of the own children.
    Parent,
    /// Sees the panel.
    Ops,
    /// Sees the panel, compensates and keeps accounts.
    Admin,
}

impl Role {
    /// Whether the panel, the records and the audit may be seen.
    pub const fn sees_panel(self) -> bool {
        matches!(self, Self::Ops | Self::Admin)
    }

    /// The page that a person of this role starts on.
    pub const fn home(self) -> &'static str {
        match self {
            Self::Student => "/tasks",
            Self::Teacher => "/progress",
            Self::Parent => "/report",
            Self::Ops | Self::Admin => "/panel",
        }
    }
}
