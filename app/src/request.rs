//! What server functions need of the request that they serve: who asks, the trace, the engine.

use axum::{
    Extension,
    http::{HeaderValue, StatusCode, header, request::Parts},
};
use domain::Role;
use engine::{Actor, Engine, TraceId};
use leptos::prelude::*;
use leptos_axum::ResponseOptions;

use crate::fault::{Fault, FaultKind};

/// Where server functions are called directly, and not while a page is rendered.
const FUNCTIONS: &str = "/api/fn/";

/// Who asks, if anybody is signed in.
pub(crate) async fn actor() -> Option<Actor> {
    leptos_axum::extract::<Extension<Option<Actor>>>()
        .await
        .ok()
        .and_then(|Extension(actor)| actor)
}

/// The account that asks, if its role permits it.
///
/// # Errors
/// [`FaultKind::SignedOut`] or [`FaultKind::WrongRole`].
pub(crate) async fn require(permits: fn(Role) -> bool) -> Result<Actor, Fault> {
    match actor().await {
        None => Err(fault(FaultKind::SignedOut)),
        Some(actor) if permits(actor.role) => Ok(actor),
        Some(_) => Err(fault(FaultKind::WrongRole)),
    }
}

/// The engine.
///
/// # Errors
/// [`FaultKind::Failed`] when the server did not provide one, which is a fault of its wiring.
pub(crate) fn engine() -> Result<Engine, Fault> {
    use_context::<Engine>().ok_or_else(|| fault(FaultKind::Failed))
}

/// The trace of this request.
pub(crate) fn trace_id() -> Option<String> {
    let parts = use_context::<Parts>()?;
    parts.extensions.get::<TraceId>().map(|id| id.0.clone())
}

/// A fault of this request. A direct call also gets its status; a page sets its own when it shows the fault.
pub(crate) fn fault(kind: FaultKind) -> Fault {
    let fault = Fault {
        kind,
        trace_id: trace_id(),
    };
    let direct = use_context::<Parts>().is_some_and(|p| p.uri.path().starts_with(FUNCTIONS));
    // A form without JavaScript is answered with a redirect, which a status would break.
    if direct && !wants_page() {
        set_status(fault.status());
    }
    fault
}

/// The fault of a store that could not answer; logged here, once, and without its cause for the person.
pub(crate) fn store_fault(error: &(dyn std::error::Error + 'static)) -> Fault {
    let fault = fault(FaultKind::Failed);
    tracing::error!(
        error,
        trace_id = fault.trace_id,
        "the store could not answer a page"
    );
    fault
}

/// Whether a plain form asks, which wants to be sent to a page.
pub(crate) fn wants_page() -> bool {
    use_context::<Parts>().is_some_and(|parts| {
        parts
            .headers
            .get(header::ACCEPT)
            .and_then(|v| v.to_str().ok())
            .is_some_and(|v| v.contains("text/html"))
    })
}

/// Sets the status of the answer.
pub(crate) fn set_status(status: u16) {
    if let (Some(options), Ok(status)) = (
        use_context::<ResponseOptions>(),
        StatusCode::from_u16(status),
    ) {
        options.set_status(status);
    }
}

/// Sends the reader of a page to another one.
pub(crate) fn send_to(path: &str) {
    if let (Some(options), Ok(path)) = (
        use_context::<ResponseOptions>(),
        HeaderValue::from_str(path),
    ) {
        options.insert_header(header::LOCATION, path);
        options.set_status(StatusCode::SEE_OTHER);
    }
}

/// The path of the page that is being rendered.
pub(crate) fn page_path() -> Option<String> {
    Some(use_context::<Parts>()?.uri.path().to_owned())
}

/// A cookie of the request.
pub(crate) fn cookie(parts: &Parts, name: &str) -> Option<String> {
    parts
        .headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(';'))
        .find_map(|pair| {
            let (key, value) = pair.trim().split_once('=')?;
            (key == name).then(|| value.to_owned())
        })
}

/// The name of this browser's installation: its cookie `client`, made now if it has none.
///
/// Forms without JavaScript and the hydrated page use the same one, so a press before hydration and one after it are one intent.
pub(crate) fn client_id() -> String {
    let known = use_context::<Parts>()
        .and_then(|parts| cookie(&parts, "client"))
        .filter(|id| id.len() <= 64 && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        .filter(|id| !id.is_empty());
    known.unwrap_or_else(|| {
        let agent = use_context::<Parts>().and_then(|parts| {
            let value = parts.headers.get(header::USER_AGENT)?;
            Some(value.to_str().ok()?.to_owned())
        });
        let kind = crate::device::slug(agent.as_deref().unwrap_or_default());
        let id = format!("web-{kind}-{}", uuid::Uuid::new_v4());
        let cookie = format!("client={id}; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly");
        if let (Some(options), Ok(value)) = (
            use_context::<ResponseOptions>(),
            HeaderValue::from_str(&cookie),
        ) {
            options.append_header(header::SET_COOKIE, value);
        }
        id
    })
}
