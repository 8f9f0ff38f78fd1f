//! Times: the stored one before hydration, then the reader's own, with the exact one on hover; on focus too where a page is not a
//! list of them, for each would be one more stop on the way through it.

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
    /// Can be focused.
    #[prop(optional)]
    focus: bool,
) -> impl IntoView {
    let (lang, clock, stored) = (lang(), clock(), StoredValue::new(at.clone()));
    let text = Memo::new(move |_| {
        stored.with_value(|at| match clock.now() {
            None => clock::plain(at),
            Some(now) => clock::relative(lang, at, now),
        })
    });
    view! { <Exact at=at focus=focus>{move || text.get()}</Exact> }
}

/// When something is or was, by the reader's clock: day and minute, or the minute only.
#[component]
pub(crate) fn At(
    /// RFC 3339.
    #[prop(into)]
    at: String,
    /// Without the day, as long as it is today.
    #[prop(optional)]
    today: bool,
    /// Can be focused.
    #[prop(optional)]
    focus: bool,
) -> impl IntoView {
    let (lang, clock, stored) = (lang(), clock(), StoredValue::new(at.clone()));
    let text = Memo::new(move |_| {
        stored.with_value(|at| match (clock.now(), today) {
            (None, _) => clock::plain(at),
            (Some(now), true) if clock::is_same_day(at, now) => clock::hour_minute(lang, at),
            (Some(_), _) => clock::short(lang, at),
        })
    });
    view! { <Exact at=at focus=focus>{move || text.get()}</Exact> }
}

#[component]
fn Exact(at: String, focus: bool, children: Children) -> impl IntoView {
    let (lang, clock, stored) = (lang(), clock(), StoredValue::new(at.clone()));
    let exact = Memo::new(move |_| {
        stored.with_value(|at| match clock.now() {
            None => at.clone(),
            Some(_) => clock::with_utc(lang, at),
        })
    });
    view! {
        <time datetime=at tabindex=focus.then_some("0") data-exact=move || exact.get() title=move || exact.get()>
            {children()}
        </time>
    }
}
