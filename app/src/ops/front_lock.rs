//! One line about the front lock; nothing where there is none.

use domain::view::FrontLockHealth;
use leptos::prelude::*;

use super::live::Live;
use crate::{
    components::{Shape, icon},
    text::words,
};

/// How the front lock is.
#[component]
pub(super) fn FrontLock(live: Live) -> impl IntoView {
    let words = words();
    let health = Memo::new(move |_| live.view.with(|view| view.front_lock));
    let away = |text| {
        Some(view! { <p class="front-lock state-stuck">{icon(Shape::Clock)} {text}</p> }.into_any())
    };
    move || match health.get() {
        FrontLockHealth::Off => None,
        FrontLockHealth::Ok => {
            Some(view! { <p class="quiet">{words.ops.front_lock_ok}</p> }.into_any())
        }
        FrontLockHealth::Degraded => away(words.ops.front_lock_degraded),
        FrontLockHealth::Refusing => away(words.ops.front_lock_refusing),
    }
}
