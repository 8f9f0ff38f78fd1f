//! The keyboard of the pages of ops: `?` tells which keys there are. A key does what pressing the thing with the mouse does.

use leptos::{ev, html, prelude::*};
use web_sys::{FocusOptions, HtmlElement, KeyboardEvent, wasm_bindgen::JsCast};

use crate::{clock::clock, text::words};

/// Listens, and shows the help.
#[component]
pub(crate) fn Keys() -> impl IntoView {
    let words = words();
    let dialog = NodeRef::<html::Dialog>::new();
    let goes = StoredValue::new(false);
    // Whoever comes from another page by its link goes on within this one; what had the focus there is gone.
    let came_by_link = untrack(|| clock().now().is_some());
    Effect::new(move || {
        let main = document()
            .get_element_by_id("main")
            .filter(|_| came_by_link);
        if let Some(main) = main.and_then(|e| e.dyn_into::<HtmlElement>().ok()) {
            let still = FocusOptions::new();
            still.set_prevent_scroll(true);
            let _ = main.focus_with_options(&still);
        }
    });
    Effect::new(move || {
        let handle = window_event_listener(ev::keydown, move |event| {
            if event.ctrl_key() || event.alt_key() || event.meta_key() || is_typing(&event) {
                return;
            }
            // While the help is open it is all there is.
            if dialog.get_untracked().is_some_and(|dialog| dialog.open()) {
                return;
            }
            let went = goes.try_update_value(|goes| std::mem::replace(goes, false)) == Some(true);
            let selector = match (went, event.key().as_str()) {
                (false, "?") => {
                    if let Some(dialog) = dialog.get_untracked() {
                        let _ = dialog.show_modal();
                    }
                    return;
                }
                (false, "g") => {
                    goes.set_value(true);
                    return;
                }
                (true, "p") => ".top nav a[href='/panel']",
                (true, "r") => ".top nav a[href='/records']",
                (true, "a") => ".top nav a[href='/approvals']",
                (true, "u") => ".top nav a[href='/audit']",
                (false, "p") => ".pulse button",
                (false, "1") => ".glance .choices a:nth-child(1)",
                (false, "2") => ".glance .choices a:nth-child(2)",
                (false, "3") => ".glance .choices a:nth-child(3)",
                (false, "4") => ".glance .choices a:nth-child(4)",
                (false, "/") => ".filter input",
                _ => return,
            };
            let found = document().query_selector(selector).ok().flatten();
            if let Some(element) = found.and_then(|e| e.dyn_into::<HtmlElement>().ok()) {
                event.prevent_default();
                if selector.ends_with("input") {
                    let _ = element.focus();
                } else {
                    element.click();
                }
            }
        });
        on_cleanup(move || handle.remove());
    });
    // "g r=records · …": which keys, and what they do.
    let lines = words.ops.help_text.split(" · ").filter_map(|line| {
        let (keys, what) = line.split_once('=')?;
        let keys: Vec<_> = keys
            .split(' ')
            .map(|key| view! { <kbd>{key}</kbd> })
            .collect();
        Some(view! { <div><dt>{keys}</dt><dd>{what}</dd></div> })
    });
    view! {
        <dialog class="help" node_ref=dialog aria-labelledby="help">
            <h2 id="help">{words.ops.help_title}</h2>
            <dl>{lines.collect_view()}</dl>
            <form method="dialog"><button class="plain">{words.ops.close}</button></form>
        </dialog>
    }
}

/// Whether the key is meant for a field.
fn is_typing(event: &KeyboardEvent) -> bool {
    let target = event
        .target()
        .and_then(|t| t.dyn_into::<HtmlElement>().ok());
    target.is_some_and(|e| matches!(e.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT"))
}
