//! Words for what is not there: empty, loading, forbidden, failed.

use domain::Role;
use leptos::prelude::*;
use leptos_meta::Title;
#[cfg(not(feature = "ssr"))]
use leptos_router::components::Redirect;

use crate::{
    fault::{Fault, FaultKind},
    path,
    session::AccountResource,
    text::{fill, words},
};

/// A list or a chart that holds nothing.
#[component]
pub(crate) fn Empty(
    /// What will stand here, and when.
    #[prop(into)]
    text: String,
) -> impl IntoView {
    view! { <p class="empty">{text}</p> }
}

/// A placeholder of the final size while data is on its way.
#[component]
pub(crate) fn Skeleton(
    /// How many lines the content will have, about.
    lines: usize,
) -> impl IntoView {
    let lines: Vec<_> = (0..lines)
        .map(|_| view! { <span class="skeleton-line"></span> })
        .collect();
    view! {
        <div class="skeleton" aria-busy="true">
            <span class="visually-hidden">{words().loading}</span>
            {lines}
        </div>
    }
}

/// Sends the reader to another page: by the answer's status when the server renders, whatever the client accepts, and by the router after that.
#[component]
pub(crate) fn Elsewhere(#[prop(into)] path: String) -> impl IntoView {
    #[cfg(feature = "ssr")]
    crate::request::send_to(&path);
    #[cfg(not(feature = "ssr"))]
    return view! { <Redirect path=path/> };
}

/// A fault in words, with the way out.
pub(crate) fn fault_view(fault: Fault) -> AnyView {
    view! { <FaultView fault=fault/> }.into_any()
}

/// A fault in words, with the way out; on the server it sets the page's status too.
#[component]
pub(crate) fn FaultView(fault: Fault) -> impl IntoView {
    if fault.kind == FaultKind::SignedOut {
        return view! { <Elsewhere path=path::sign_in(&here())/> }.into_any();
    }
    #[cfg(feature = "ssr")]
    crate::request::set_status(fault.status());
    let words = words();
    let (title, text) = match fault.kind {
        FaultKind::WrongRole => (words.forbidden_title, words.forbidden),
        FaultKind::NotFound => (words.not_found_title, words.not_found),
        FaultKind::Network => (words.failed_title, words.failed_network),
        FaultKind::Failed | FaultKind::SignedOut => (words.failed_title, words.failed),
    };
    let retry = matches!(fault.kind, FaultKind::Failed | FaultKind::Network)
        .then(|| view! { <a href="" rel="external">{words.retry}</a> });
    let trace = fault.trace_id.map(|id| {
        view! { <p class="quiet">{fill(words.trace, &[("id", &id)])}</p> }
    });
    view! {
        <Title text=format!("{title} · {}", words.product)/>
        <section class="message">
            <h1>{title}</h1>
            <p>{text}</p>
            <p class="ways-out">{retry} <HomeLink/></p>
            {trace}
        </section>
    }
    .into_any()
}

/// The page that is asked for.
fn here() -> String {
    #[cfg(feature = "ssr")]
    return crate::request::page_path().unwrap_or_default();
    #[cfg(not(feature = "ssr"))]
    return leptos_router::hooks::use_location()
        .pathname
        .get_untracked();
}

/// A link to the page that this account starts on.
#[component]
fn HomeLink() -> impl IntoView {
    let account = expect_context::<AccountResource>().0;
    let home = move || {
        account
            .get()
            .and_then(Result::ok)
            .flatten()
            .map_or("/", |account| Role::home(account.role))
    };
    view! { <Suspense><a href=home>{words().to_home}</a></Suspense> }
}
