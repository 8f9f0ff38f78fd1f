//! Who is signed in, as the pages know it. Signing in and out are plain forms to the server's own routes.

use domain::view::Account;
use leptos::prelude::*;

use crate::fault::Fault;

/// The account that is signed in.
///
/// # Errors
/// A [`Fault`] when the server cannot be reached.
#[server(prefix = "/api/fn", endpoint = "current_account")]
pub async fn current_account() -> Result<Option<Account>, Fault> {
    Ok(crate::request::actor().await.map(|actor| Account {
        id: actor.id.to_string(),
        name: actor.name,
        role: actor.role,
    }))
}

/// The account of this page, shared by its parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccountResource(pub(crate) Resource<Result<Option<Account>, Fault>>);
