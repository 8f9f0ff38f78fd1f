//! Pages that the browser brings back (back button, sleeping tabs) show old state until they are told to look again.

use leptos::{ev, prelude::*};
use web_sys::{PageTransitionEvent, wasm_bindgen::JsCast};

/// Runs something each time this page is brought back from the back/forward cache.
pub(crate) fn on_return(run: impl Fn() + Clone + 'static) {
    Effect::new(move || {
        let run = run.clone();
        let event = ev::Custom::<ev::Event>::new("pageshow");
        let handle = window_event_listener(event, move |event| {
            if event
                .dyn_ref::<PageTransitionEvent>()
                .is_some_and(PageTransitionEvent::persisted)
            {
                run();
            }
        });
        on_cleanup(move || handle.remove());
    });
}
