//! Who asks, and on behalf of which request.

use domain::Role;

/// The account that a request was authenticated as. Every engine function that touches personal data takes one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The account.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
}

/// The W3C trace id of the request that is being served: 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceId(pub String);

/// Where a request came from, as the audit keeps it: the peer's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(pub String);
