//! What somebody has begun on a page that is written anew: typed text, picked rows, opened parts, the focus. Found again by ids.

use leptos::prelude::document;
use web_sys::{
    Element, HtmlDetailsElement, HtmlElement, HtmlInputElement, HtmlSelectElement,
    HtmlTextAreaElement, wasm_bindgen::JsCast,
};

/// What was begun, by the ids of its elements.
pub(super) struct Kept {
    begun: Vec<(String, Begun)>,
    focus: Option<String>,
}

enum Begun {
    Text(String),
    Checked,
    Open,
}

impl Kept {
    /// What is begun within an element.
    pub(super) fn of(root: &Element) -> Self {
        let mut begun = Vec::new();
        super::sheet::each(root, "[id]", |element| {
            if let Some(found) = Begun::of(element) {
                begun.push((element.id(), found));
            }
        });
        let focus = document()
            .active_element()
            .map(|element| element.id())
            .filter(|id| !id.is_empty());
        Self { begun, focus }
    }

    /// Puts it into the elements that are there now; what has gone is gone.
    pub(super) fn put_back(self) {
        let find = |id: &str| document().get_element_by_id(id);
        for (id, begun) in &self.begun {
            if let Some(element) = find(id) {
                begun.put_into(&element);
            }
        }
        let focus = self.focus.as_deref().and_then(find);
        if let Some(element) = focus.and_then(|e| e.dyn_into::<HtmlElement>().ok()) {
            let _ = element.focus();
        }
    }
}

impl Begun {
    fn of(element: &Element) -> Option<Self> {
        if let Some(area) = element.dyn_ref::<HtmlTextAreaElement>() {
            let text = area.value();
            return (!text.is_empty()).then_some(Self::Text(text));
        }
        if let Some(select) = element.dyn_ref::<HtmlSelectElement>() {
            return Some(Self::Text(select.value()));
        }
        if let Some(input) = element.dyn_ref::<HtmlInputElement>() {
            return match input.type_().as_str() {
                "checkbox" | "radio" => input.checked().then_some(Self::Checked),
                _ => Some(Self::Text(input.value())),
            };
        }
        let details = element.dyn_ref::<HtmlDetailsElement>()?;
        details.open().then_some(Self::Open)
    }

    fn put_into(&self, element: &Element) {
        match self {
            Self::Text(text) => {
                if let Some(area) = element.dyn_ref::<HtmlTextAreaElement>() {
                    area.set_value(text);
                } else if let Some(input) = element.dyn_ref::<HtmlInputElement>() {
                    input.set_value(text);
                } else if let Some(select) = element.dyn_ref::<HtmlSelectElement>() {
                    select.set_value(text);
                }
            }
            Self::Checked => {
                if let Some(input) = element.dyn_ref::<HtmlInputElement>() {
                    input.set_checked(true);
                }
            }
            Self::Open => {
                if let Some(details) = element.dyn_ref::<HtmlDetailsElement>() {
                    details.set_open(true);
                }
            }
        }
    }
}
