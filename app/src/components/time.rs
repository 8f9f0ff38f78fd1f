//! Times: the stored one before hydration, then the reader's own, with the exact one on hover and focus.

use leptos::prelude::*;

use crate::{
    clock::{self, clock},
    text::lang,
};

/// How long ago something was.
#[component]
pub(crate) fn Ago(
    /// RFC 3339.
    #[prop(into)]
    at: String,
) -> impl IntoView {
    let (lang, clock, stored) = (lang(), clock(), StoredValue::new(at.clone()));
    let text = Memo::new(move |_| {
        stored.with_value(|at| match clock.now() {
            None => clock::plain(at),
            Some(now) => clock::relative(lang, at, now),
        })
    });
    view! { <Exact at=at>{move || text.get()}</Exact> }
}

/// When something is or was, by the reader's clock: day and minute, or the minute only.
#[component]
pub(crate) fn At(
    /// RFC 3339.
    #[prop(into)]
    at: String,
    /// Without the day.
    #[prop(optional)]
    today: bool,
) -> impl IntoView {
    let (lang, clock, stored) = (lang(), clock(), StoredValue::new(at.clone()));
    let text = Memo::new(move |_| {
        stored.with_value(|at| match (clock.now(), today) {
            (None, _) => clock::plain(at),
            (Some(_), true) => clock::hour_minute(lang, at),
            (Some(_), false) => clock::short(lang, at),
        })
    });
    view! { <Exact at=at>{move || text.get()}</Exact> }
}

#[component]
fn Exact(at: String, children: Children) -> impl IntoView {
    let (lang, clock, stored) = (lang(), clock(), StoredValue::new(at.clone()));
    let exact = Memo::new(move |_| {
        stored.with_value(|at| match clock.now() {
            None => at.clone(),
            Some(_) => clock::exact(lang, at),
        })
    });
    view! {
        <time datetime=at tabindex="0" data-exact=move || exact.get() title=move || exact.get()>
            {children()}
        </time>
    }
}
