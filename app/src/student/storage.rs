//! What a student's browser keeps: the intent that is under way and the draft, so that nothing typed and nothing sent is forgotten.
//!
//! A browser that keeps nothing (a private window, a full disk) still submits; it only cannot resume.

use domain::phase::Intent;
use leptos::prelude::*;
use web_sys::Storage;

const CLIENT: &str = "yici:client";

/// The place of one student's one task in the browser's storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shelf {
    intent: String,
    draft: String,
}

impl Shelf {
    /// Names the place.
    pub(crate) fn new(student_id: &str, task_id: &str) -> Self {
        Self {
            intent: format!("yici:intent:{student_id}:{task_id}"),
            draft: format!("yici:draft:{student_id}:{task_id}"),
        }
    }

    /// Whether a storage event with this key is about the intent.
    pub(crate) fn is_intent(&self, key: Option<String>) -> bool {
        key.is_some_and(|key| key == self.intent)
    }

    /// The intent that was under way; what cannot be read is as good as none.
    pub(crate) fn intent(&self) -> Option<Intent> {
        serde_json::from_str(&get(&self.intent)?).ok()
    }

    /// Keeps the intent.
    pub(crate) fn keep_intent(&self, intent: &Intent) {
        if let Ok(text) = serde_json::to_string(intent) {
            set(&self.intent, &text);
        }
    }

    /// The draft.
    pub(crate) fn draft(&self) -> Option<String> {
        get(&self.draft)
    }

    /// Keeps the draft.
    pub(crate) fn keep_draft(&self, text: &str) {
        if text.is_empty() {
            remove(&self.draft)
        } else {
            set(&self.draft, text)
        }
    }

    /// Forgets the draft once it was submitted; a draft that was typed elsewhere meanwhile stays.
    pub(crate) fn forget_draft(&self, submitted: &str) {
        if self.draft().as_deref() == Some(submitted) {
            remove(&self.draft);
        }
    }
}

/// The name of this installation: the one that was kept, else the one that the server gave this browser, kept from now on.
pub(crate) fn client_id(given: &str) -> String {
    get(CLIENT).filter(|id| !id.is_empty()).unwrap_or_else(|| {
        set(CLIENT, given);
        given.to_owned()
    })
}

fn storage() -> Option<Storage> {
    window().local_storage().ok().flatten()
}

fn get(key: &str) -> Option<String> {
    storage()?.get_item(key).ok().flatten()
}

fn set(key: &str, value: &str) {
    if let Some(storage) = storage() {
        // A full storage is no reason not to submit.
        let _ = storage.set_item(key, value);
    }
}

fn remove(key: &str) {
    if let Some(storage) = storage() {
        let _ = storage.remove_item(key);
    }
}
