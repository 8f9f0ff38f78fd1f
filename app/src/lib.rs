//! The pages of Yici: rendered by the server, then taken over in the browser.
//!
//! `shell`, `App`, the routes and the entry of the browser stand here; everything else has its own module.

// Reactive closures that are rendered nest deeper than the default allows for.
#![recursion_limit = "256"]
#![expect(
    unreachable_pub,
    reason = "the component macro makes parts of private components pub"
)]
// A half for the browser has not all pages, so not all of what they share is used.
#![cfg_attr(
    not(all(feature = "school", feature = "ops")),
    expect(dead_code, unused_imports, reason = "the other half uses it")
)]

mod bundle;
mod clock;
mod components;
mod device;
pub mod fault;
mod home;
mod live;
#[cfg(feature = "school")]
pub mod news;
mod not_found;
#[cfg(feature = "ops")]
pub mod ops;
mod pageshow;
#[cfg(feature = "school")]
pub mod parent;
pub mod path;
#[cfg(feature = "ssr")]
mod request;
pub mod session;
#[cfg(feature = "school")]
pub mod student;
#[cfg(feature = "school")]
pub mod teacher;
mod text;

use leptos::prelude::*;
use leptos_meta::{HashedStylesheet, MetaTags, provide_meta_context};
use leptos_router::{
    SsrMode,
    components::{Route, Router, Routes},
    path,
};

#[cfg(not(feature = "ops"))]
use crate::bundle::{OtherHalf as PanelPage, OtherHalf as SheetPage};
#[cfg(not(feature = "school"))]
use crate::bundle::{
    OtherHalf as NewTaskPage, OtherHalf as ProgressPage, OtherHalf as PupilPage,
    OtherHalf as PupilTaskPage, OtherHalf as ReportPage, OtherHalf as RewardsPage,
    OtherHalf as TaskDetailPage, OtherHalf as TaskListPage,
};
#[cfg(feature = "ops")]
use crate::ops::{PanelPage, SheetPage};
use crate::{
    clock::Clock,
    components::Frame,
    home::HomePage,
    not_found::NotFoundPage,
    session::{AccountResource, current_account},
};
#[cfg(feature = "school")]
use crate::{
    parent::ReportPage,
    student::{RewardsPage, TaskDetailPage, TaskListPage},
    teacher::{NewTaskPage, ProgressPage, PupilPage, PupilTaskPage},
};

/// The document around the pages.
#[cfg(feature = "ssr")]
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let scripts = bundle::scripts_of(&options);
    view! {
        <!DOCTYPE html>
        <html lang=text::detect().tag()>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <link rel="icon" href="/favicon.svg" type="image/svg+xml"/>
                <HashedStylesheet id="yici" options=options.clone()/>
                <AutoReload options=options.clone()/>
                <HydrationScripts options=scripts/>
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

/// All pages. They are rendered whole before the first byte is sent, so that they are complete without JavaScript and have the right status.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    provide_context(text::detect());
    provide_context(Clock::start());
    provide_context(AccountResource(Resource::new(
        || (),
        |()| current_account(),
    )));
    view! {
        <Router>
            <Frame>
                <Routes fallback=NotFoundPage>
                    <Route path=path!("/") view=HomePage ssr=SsrMode::Async/>
                    <Route path=path!("/tasks") view=TaskListPage ssr=SsrMode::Async/>
                    <Route path=path!("/tasks/:id") view=TaskDetailPage ssr=SsrMode::Async/>
                    <Route path=path!("/rewards") view=RewardsPage ssr=SsrMode::Async/>
                    <Route path=path!("/progress") view=ProgressPage ssr=SsrMode::Async/>
                    <Route path=path!("/progress/new") view=NewTaskPage ssr=SsrMode::Async/>
                    <Route path=path!("/progress/students/:student") view=PupilPage ssr=SsrMode::Async/>
                    <Route path=path!("/progress/students/:student/tasks/:task") view=PupilTaskPage ssr=SsrMode::Async/>
                    <Route path=path!("/report") view=ReportPage ssr=SsrMode::Async/>
                    <Route path=path!("/panel") view=PanelPage ssr=SsrMode::Async/>
                    <Route path=path!("/records") view=SheetPage ssr=SsrMode::Async/>
                    <Route path=path!("/records/:id") view=SheetPage ssr=SsrMode::Async/>
                    <Route path=path!("/arrivals") view=SheetPage ssr=SsrMode::Async/>
                    <Route path=path!("/approvals") view=SheetPage ssr=SsrMode::Async/>
                    <Route path=path!("/compensated") view=SheetPage ssr=SsrMode::Async/>
                    <Route path=path!("/failures") view=SheetPage ssr=SsrMode::Async/>
                    <Route path=path!("/bulks/:id") view=SheetPage ssr=SsrMode::Async/>
                    <Route path=path!("/audit") view=SheetPage ssr=SsrMode::Async/>
                </Routes>
            </Frame>
        </Router>
    }
}

/// The entry in the browser.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    hydrate_body(App);
}
