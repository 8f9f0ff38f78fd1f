//! Accounts as they are shown.

use serde::{Deserialize, Serialize};

use crate::Role;

/// Who somebody is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Account {
    /// The id.
    pub id: String,
    /// The name to sign in with.
    pub name: String,
    /// The role.
    pub role: Role,
}
