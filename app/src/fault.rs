//! What can go wrong between a page and the server, in the terms that a person can act on.
//!
//! Expected outcomes of a submission are no faults; they are values of its reply.

use leptos::{prelude::*, server_fn::codec::JsonEncoding};
use serde::{Deserialize, Serialize};

/// Why a server function has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The trace of the request, for reports.
    pub trace_id: Option<String>,
}

/// The kinds of faults, each with its own words and its own way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// Nobody is signed in, or not any more.
    SignedOut,
    /// The account's role does not permit it.
    WrongRole,
    /// Nothing there that this account may see.
    NotFound,
    /// The server could not answer.
    Failed,
    /// The server could not be reached.
    Network,
}

impl Fault {
    /// The HTTP status that says the same.
    pub const fn status(&self) -> u16 {
        match self.kind {
            FaultKind::SignedOut => 401,
            FaultKind::WrongRole => 403,
            FaultKind::NotFound => 404,
            FaultKind::Failed | FaultKind::Network => 503,
        }
    }
}

impl FromServerFnError for Fault {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(value: ServerFnErrorErr) -> Self {
        let kind = match value {
            ServerFnErrorErr::Request(_) | ServerFnErrorErr::Response(_) => FaultKind::Network,
            _ => FaultKind::Failed,
        };
        Self {
            kind,
            trace_id: None,
        }
    }
}
