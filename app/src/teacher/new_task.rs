//! `/progress/new`: a form for a new task. It is plain HTML; a script keeps what is typed and knows the reader's time zone.

use domain::teaching::{MAX_INSTRUCTIONS_CHARS, MAX_TITLE_CHARS};
use leptos::{ev, html, prelude::*};
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::api::{TaskForm, new_task_form};
use crate::{
    clock::{self, clock},
    components::{Empty, PageHead, Skeleton, fault_view},
    text::{fill, words},
};

/// Where the browser keeps the form: nothing that was typed is lost by a reload or by a request that failed.
const DRAFT: &str = "yici:new-task";

/// `/progress/new`.
#[component]
pub(crate) fn NewTaskPage() -> impl IntoView {
    let query = use_query_map();
    let class = query.read_untracked().get("class");
    let refused = query.read_untracked().get("refused");
    let form = Resource::new(|| (), |()| new_task_form());
    view! {
        <div class="page page-narrow">
            <p class="crumb"><a href="/progress">"← " {words().progress_title}</a></p>
            <Suspense fallback=|| view! { <Skeleton lines=8/> }>
                {move || {
                    let (class, refused) = (class.clone(), refused.clone());
                    Suspend::new(async move {
                        match form.await {
                            Ok(form) if form.classes.is_empty() => view! { <Empty text=words().progress_empty/> }.into_any(),
                            Ok(form) => view! { <Form form=form class=class refused=refused/> }.into_any(),
                            Err(fault) => fault_view(fault),
                        }
                    })
                }}
            </Suspense>
        </div>
    }
}

/// What was typed, with the key of the intent that it is: sent again, it is the same task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Draft {
    key: String,
    title: String,
    instructions: String,
    due: String,
    closes: String,
}

/// The fields of the form.
#[derive(Clone, Copy)]
struct Fields {
    title: NodeRef<html::Input>,
    instructions: NodeRef<html::Textarea>,
    due: NodeRef<html::Input>,
    closes: NodeRef<html::Input>,
    /// The moments that a script makes of the two.
    due_at: NodeRef<html::Input>,
    closes_at: NodeRef<html::Input>,
    key: NodeRef<html::Input>,
}

impl Fields {
    fn new() -> Self {
        Self {
            title: NodeRef::new(),
            instructions: NodeRef::new(),
            due: NodeRef::new(),
            closes: NodeRef::new(),
            due_at: NodeRef::new(),
            closes_at: NodeRef::new(),
            key: NodeRef::new(),
        }
    }

    /// Keeps what stands in the fields.
    fn keep(self) {
        let text = |field: NodeRef<html::Input>| {
            field.get_untracked().map(|f| f.value()).unwrap_or_default()
        };
        let draft = Draft {
            key: text(self.key),
            title: text(self.title),
            instructions: self
                .instructions
                .get_untracked()
                .map(|f| f.value())
                .unwrap_or_default(),
            due: text(self.due),
            closes: text(self.closes),
        };
        if let (Ok(Some(storage)), Ok(json)) =
            (window().local_storage(), serde_json::to_string(&draft))
        {
            // A full storage is no reason not to write.
            let _ = storage.set_item(DRAFT, &json);
        }
    }

    /// Puts back what was kept, unless something was typed already; without its key where that one is used up.
    fn restore(self, key_too: bool) {
        let (Some(title), Some(instructions)) = (
            self.title.get_untracked(),
            self.instructions.get_untracked(),
        ) else {
            return;
        };
        if !title.value().is_empty() || !instructions.value().is_empty() {
            return self.keep();
        }
        let Some(draft) = kept() else { return };
        title.set_value(&draft.title);
        instructions.set_value(&draft.instructions);
        for (field, text, restored) in [
            (self.due, &draft.due, true),
            (self.closes, &draft.closes, true),
            (self.key, &draft.key, key_too),
        ] {
            if let Some(field) = field.get_untracked().filter(|_| restored) {
                field.set_value(text);
            }
        }
    }

    /// Says in UTC what was typed in the reader's time.
    fn fix_times(self) {
        for (typed, sent) in [(self.due, self.due_at), (self.closes, self.closes_at)] {
            if let (Some(typed), Some(sent)) = (typed.get_untracked(), sent.get_untracked()) {
                sent.set_value(&clock::moment(&typed.value()).unwrap_or_default());
            }
        }
    }
}

fn kept() -> Option<Draft> {
    let storage = window().local_storage().ok().flatten()?;
    serde_json::from_str(&storage.get_item(DRAFT).ok().flatten()?).ok()
}

/// Forgets what was kept, once the task is made.
pub(super) fn forget_draft() {
    if let Ok(Some(storage)) = window().local_storage() {
        let _ = storage.remove_item(DRAFT);
    }
}

#[component]
fn Form(form: TaskForm, class: Option<String>, refused: Option<String>) -> impl IntoView {
    let words = words();
    let clock = clock();
    let fields = Fields::new();
    let key_too = refused.as_deref() != Some("key-reused");
    Effect::new(move || fields.restore(key_too));
    let zone = Memo::new(move |_| {
        clock.now()?;
        clock::zone()
    });
    let zone = move || {
        let zone = zone.get().unwrap_or_else(|| "UTC".to_owned());
        fill(words.task_times, &[("zone", &zone)])
    };
    let sent = StoredValue::new(false);
    let submit = move |event: ev::SubmitEvent| {
        fields.fix_times();
        fields.keep();
        // The browser goes to the next page with the first press; a second one on the way would only repeat it.
        if sent.get_value() {
            event.prevent_default();
        }
        sent.set_value(true);
    };
    // A page that is brought back may be sent again.
    crate::pageshow::on_return(move || sent.set_value(false));
    let error = refused.map(|code| {
        let text = words.task_refusal(&code);
        view! { <p class="form-error" role="alert">{text}</p> }
    });
    let options: Vec<_> = form
        .classes
        .into_iter()
        .map(|option| {
            let chosen = class.as_ref() == Some(&option.id);
            view! { <option value=option.id selected=chosen>{option.name}</option> }
        })
        .collect();
    view! {
        <PageHead title=words.task_new/>
        <form class="new-task" method="post" action="/api/fn/create_task" on:submit=submit on:input=move |_| fields.keep()>
            {error}
            <input type="hidden" name="key" value=form.key autocomplete="off" node_ref=fields.key/>
            <input type="hidden" name="due_at" value="" node_ref=fields.due_at/>
            <input type="hidden" name="closes_at" value="" node_ref=fields.closes_at/>
            <div class="field">
                <label for="class_id">{words.task_class}</label>
                <select id="class_id" name="class_id">{options}</select>
            </div>
            <div class="field">
                <label for="title">{words.task_title}</label>
                <input id="title" name="title" required maxlength=MAX_TITLE_CHARS.to_string() autocomplete="off" node_ref=fields.title/>
            </div>
            <div class="field">
                <label for="instructions">{words.instructions}</label>
                <textarea
                    id="instructions" name="instructions" rows="8" required maxlength=MAX_INSTRUCTIONS_CHARS.to_string()
                    node_ref=fields.instructions
                ></textarea>
            </div>
            <fieldset class="field kinds">
                <legend>{words.task_kind}</legend>
                <label><input type="radio" name="kind" value="assignment" checked/> <span>{words.kind_assignment} <span class="quiet">{words.task_assignment_hint}</span></span></label>
                <label><input type="radio" name="kind" value="practice"/> <span>{words.kind_practice} <span class="quiet">{words.task_practice_hint}</span></span></label>
            </fieldset>
            <div class="field-row">
                <div class="field">
                    <label for="due_local">{words.task_due}</label>
                    <input id="due_local" name="due_local" type="datetime-local" node_ref=fields.due/>
                </div>
                <div class="field">
                    <label for="closes_local">{words.task_closes}</label>
                    <input id="closes_local" name="closes_local" type="datetime-local" node_ref=fields.closes/>
                </div>
            </div>
            <p class="quiet">{zone} " " {words.task_closes_hint}</p>
            <div class="actions">
                <button class="primary">{words.task_assign}</button>
                <p class="quiet">{words.task_once}</p>
            </div>
        </form>
    }
}
