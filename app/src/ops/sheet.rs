//! Pages that the server writes whole: lists, a record, approvals, the audit. The browser loads no code for what is in them; it
//! shows their times in the reader's clock, copies what is to be copied, and says when there is something newer, which is shown when
//! the reader asks for it: nothing moves under a pointer, a selection or typed text.

use std::time::Duration;

use leptos::{html, prelude::*, task::spawn_local};
use leptos_router::hooks::use_location;
use serde::{Deserialize, Serialize};
use web_sys::{Element, VisibilityState, wasm_bindgen::JsCast};

use super::{keep::Kept, keys::Keys};
use crate::{
    clock::{self, clock},
    components::{Skeleton, fault_view},
    fault::Fault,
    text::{lang, words},
};

/// How often a page in sight looks for something newer.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A written page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sheet {
    /// For the browser's tab.
    pub title: String,
    /// Everything below the frame.
    pub html: String,
    /// Differs when something is news; ages, which grow by themselves, are none.
    pub mark: String,
}

/// The page at a path of ops and admins.
///
/// # Errors
/// A [`Fault`] without the identity of ops or an admin, when there is nothing at the path, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "load_sheet")]
pub async fn load_sheet(path: String, query: String) -> Result<Sheet, Fault> {
    let actor = crate::request::require(domain::Role::sees_panel).await?;
    super::sheets::write(&actor, &path, &query).await
}

/// Any of these pages, by its address.
#[component]
pub(crate) fn SheetPage() -> impl IntoView {
    let location = use_location();
    let address = Memo::new(move |_| (location.pathname.get(), location.search.get()));
    let page = Resource::new(
        move || address.get(),
        |(path, query)| load_sheet(path, query),
    );
    view! {
        <Transition fallback=|| view! { <div class="page"><Skeleton lines=12/></div> }>
            {move || Suspend::new(async move {
                match page.await {
                    Ok(sheet) => view! { <Paper first=sheet address=address.get_untracked()/> }.into_any(),
                    Err(fault) => view! { <div class="page">{fault_view(fault)}</div> }.into_any(),
                }
            })}
        </Transition>
    }
}

#[component]
fn Paper(first: Sheet, address: (String, String)) -> impl IntoView {
    let title = format!("{} · {}", first.title, words().product);
    let drawn = RwSignal::new(());
    let mark = StoredValue::new(first.mark);
    let newer = RwSignal::new(None::<Sheet>);
    let is_live = RwSignal::new(false);
    let node = NodeRef::<html::Div>::new();
    let (lang, clock) = (lang(), clock());
    Effect::new(move || {
        drawn.track();
        let (Some(node), Some(now)) = (node.get(), clock.now()) else {
            return;
        };
        is_live.set(true);
        each(&node, "time[data-show]", |time| {
            let at = time.get_attribute("datetime").unwrap_or_default();
            let text = match time.get_attribute("data-show").as_deref() {
                Some("ago") => clock::relative(lang, &at, now),
                Some("second") => clock::second(lang, &at),
                _ => clock::short(lang, &at),
            };
            if time.text_content().as_deref() != Some(&text) {
                time.set_text_content(Some(&text));
            }
            if !time.has_attribute("data-exact") {
                let exact = clock::with_utc(lang, &at);
                let _ = time.set_attribute("title", &exact);
                let _ = time.set_attribute("data-exact", &exact);
            }
        });
    });
    Effect::new(move || {
        let address = address.clone();
        let look = move || {
            if document().visibility_state() != VisibilityState::Visible {
                return;
            }
            let (path, query) = address.clone();
            spawn_local(async move {
                if let Ok(sheet) = load_sheet(path, query).await {
                    let is_new = mark.try_with_value(|mark| *mark != sheet.mark);
                    newer.try_set((is_new == Some(true)).then_some(sheet));
                }
            });
        };
        if let Ok(timer) = set_interval_with_handle(look, LOOK_EVERY) {
            on_cleanup(move || timer.clear());
        }
    });
    let show = move |_| {
        if let (Some(sheet), Some(node)) = (newer.get_untracked(), node.get_untracked()) {
            let kept = Kept::of(&node);
            mark.set_value(sheet.mark);
            newer.set(None);
            // At once, and not by a signal: there is no moment at which something that was begun is missing.
            node.set_inner_html(&sheet.html);
            kept.put_back();
            drawn.set(());
        }
    };
    let copy = move |event: leptos::ev::MouseEvent| {
        let target = event.target().and_then(|t| t.dyn_into::<Element>().ok());
        let button = target.and_then(|t| t.closest("[data-copy]").ok().flatten());
        if let Some(button) = button {
            let text = button.get_attribute("data-copy").unwrap_or_default();
            let _ = window().navigator().clipboard().write_text(&text);
            each(
                &document().document_element().unwrap_or(button.clone()),
                "[data-copied]",
                |old| {
                    let _ = old.remove_attribute("data-copied");
                },
            );
            let _ = button.set_attribute("data-copied", "");
        }
    };
    let class = move || {
        if is_live.get() {
            "sheet is-live"
        } else {
            "sheet"
        }
    };
    view! {
        <leptos_meta::Title text=title/>
        <Keys/>
        <div class="page">
            <div class="newer" role="status">
                <Show when=move || newer.with(Option::is_some)>
                    <button type="button" class="plain" on:click=show>{words().ops.sheet_newer}</button>
                </Show>
            </div>
            <div node_ref=node class=class on:click=copy inner_html=first.html></div>
        </div>
    }
}

pub(super) fn each(root: &Element, selector: &str, mut run: impl FnMut(&Element)) {
    let Ok(found) = root.query_selector_all(selector) else {
        return;
    };
    for i in 0..found.length() {
        if let Some(element) = found
            .item(i)
            .and_then(|node| node.dyn_into::<Element>().ok())
        {
            run(&element);
        }
    }
}
