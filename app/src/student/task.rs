//! One task: its text, the editor and the one button.

use domain::{action::TaskKind, phase::Phase, view::TaskStatus};
use leptos::{ev, html, prelude::*};
use leptos_router::hooks::{use_params_map, use_query_map};

use super::{
    api::{TaskPage, load_task},
    handed_in::{Attempts, Submitted},
    list::{TaskFacts, row_key},
    machine::{Hurdle, Machine},
    status::PhaseLine,
};
use crate::{
    components::{PageHead, Skeleton, TaskBadge, fault_view},
    live::Freshness,
    text::{fill, words},
};

/// `/tasks/{id}`.
#[component]
pub(crate) fn TaskDetailPage() -> impl IntoView {
    let (params, query) = (use_params_map(), use_query_map());
    let task_id = Memo::new(move |_| params.read().get("id").unwrap_or_default());
    // What a form without JavaScript left in the address; later moves of this page do not depend on it.
    let request = query.read_untracked().get("request");
    let refused = query.read_untracked().get("refused");
    let attempt = query.read_untracked().get("attempt");
    let page = Resource::new(
        move || task_id.get(),
        move |id| load_task(id, request.clone(), attempt.clone()),
    );
    view! {
        <div class="page page-narrow">
            <p class="crumb"><a href="/tasks">"← " {words().back_to_tasks}</a></p>
            <Suspense fallback=|| view! { <Skeleton lines=10/> }>
                {move || {
                    let refused = refused.clone();
                    Suspend::new(async move {
                        match page.await {
                            Ok(page) => view! { <Task page=page refused=refused/> }.into_any(),
                            Err(fault) => fault_view(fault),
                        }
                    })
                }}
            </Suspense>
        </div>
    }
}

#[component]
fn Task(page: TaskPage, refused: Option<String>) -> impl IntoView {
    let words = words();
    let practice = page.task.kind == TaskKind::Practice;
    let machine = Machine::new(&page);
    machine.start();

    let done = Memo::new(move |_| machine.is_done());
    let badge = move || match machine.task.with(|task| task.status) {
        _ if done.get() => TaskStatus::Submitted,
        status => status,
    };
    let attempt = move || {
        practice.then(|| {
            let n = machine
                .intent
                .with(|intent| intent.submit_version)
                .to_string();
            view! { <span>{fill(words.attempt, &[("n", &n)])}</span> }
        })
    };
    let facts = Memo::new(move |_| machine.task.with(row_key));
    let (client_id, task_id) = (page.client_id.clone(), page.task.id.clone());
    let shown = page.shown.clone();
    view! {
        <PageHead title=page.task.title.clone()>
            {move || view! { <TaskBadge status=badge()/> }}
        </PageHead>
        <p class="task-facts">
            // Read and not only tracked: a memo that nobody reads never runs, and so never changes.
            {move || facts.with(|_| view! { <TaskFacts task=machine.task.get_untracked()/> })}
            {attempt}
        </p>
        <Freshness pulse=machine.pulse at=None/>
        <div class="instructions">{page.task.instructions.clone()}</div>
        <Answer page=page refused=refused machine=machine done=done/>
        {move || {
            let current = done.get() && !practice;
            // What was just handed in comes before what the address asked for.
            let sent = machine.intent.with(|intent| intent.phase == Phase::Submitted);
            let shown = shown.clone().filter(|_| !sent).or_else(|| machine.submission.get());
            shown.map(|submission| view! { <Submitted submission=submission current=current practice=practice/> })
        }}
        <Attempts machine=machine client_id=client_id task_id=task_id practice=practice/>
    }
}

/// The form: plain HTML that works as it is; a script takes over once it runs.
#[component]
fn Answer(
    page: TaskPage,
    refused: Option<String>,
    machine: Machine,
    done: Memo<bool>,
) -> impl IntoView {
    let words = words();
    let area = NodeRef::<html::Textarea>::new();
    let (blank, drafted) = (RwSignal::new(false), RwSignal::new(false));
    let typed_here = StoredValue::new(false);
    let practice = page.task.kind == TaskKind::Practice;
    let holds_text = RwSignal::new(false);
    // Handed in before this page was loaded: there is nothing to write, unless this device still holds something that was not sent.
    let was_settled = machine.is_settled();
    let at_rest = Memo::new(move |_| was_settled && done.get() && !holds_text.get());
    let locked = Memo::new(move |_| machine.intent.with(|intent| !intent.is_open()));
    let signed_out = Memo::new(move |_| machine.hurdle.get() == Some(Hurdle::SignedOut));

    // Text that was typed here is never overwritten, neither by a draft nor by what another tab sent.
    Effect::new(move || {
        let Some(area) = area.get() else { return };
        let sent = machine
            .intent
            .with(|intent| (!intent.is_open()).then(|| intent.content.clone()));
        match sent {
            Some(_) if typed_here.get_value() && !area.value().is_empty() => {}
            Some(sent) => area.set_value(&sent),
            None if area.value().is_empty() => {
                let submitted = machine
                    .submission
                    .with_untracked(|s| s.as_ref().map(|s| s.content.clone()));
                match machine.shelf().draft() {
                    // Another device has handed in the same.
                    Some(draft) if Some(&draft) == submitted.as_ref() => {
                        machine.shelf().forget_draft(&draft)
                    }
                    Some(draft) => {
                        area.set_value(&draft);
                        drafted.set(true);
                    }
                    None => {}
                }
            }
            None => {}
        }
        holds_text.set(!area.value().is_empty());
    });
    // What stands here is what was handed in elsewhere: then it is simply done.
    Effect::new(move || {
        let submitted = machine
            .submission
            .with(|s| s.as_ref().map(|s| s.content.clone()));
        let (Some(area), Some(submitted)) = (area.get(), submitted) else {
            return;
        };
        if done.get() && area.value() == submitted {
            drafted.set(false);
            machine.shelf().forget_draft(&submitted);
        }
    });
    let typed = move |_| {
        let Some(area) = area.get_untracked() else {
            return;
        };
        let text = area.value();
        blank.set(false);
        typed_here.set_value(true);
        drafted.set(!text.is_empty());
        machine.shelf().keep_draft(&text);
    };
    let press = move || {
        let Some(area) = area.get_untracked() else {
            return;
        };
        let content = area.value();
        if content.trim().is_empty() {
            blank.set(true);
            return;
        }
        machine.press(content);
    };
    let again = format!("/tasks/{}", page.task.id);
    let spent = move || done.get() && !practice;
    let submit = move |event: ev::SubmitEvent| {
        event.prevent_default();
        match (done.get_untracked(), practice) {
            (false, _) => press(),
            // A new page gives the next attempt's number; the answer to leaving is that nobody is here to hear of a failure.
            (true, true) => drop(window().location().assign(&again)),
            (true, false) => {}
        }
    };
    // The second half of a slow double click meant the button as it was at the first.
    let click = move |event: ev::MouseEvent| {
        if event.detail() > 1 || signed_out.get_untracked() {
            event.prevent_default();
        }
    };
    let shortcut = move |event: ev::KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            if !event.repeat() && !done.get_untracked() {
                press();
            }
        }
    };
    let unknown = Memo::new(move |_| machine.intent.with(|intent| intent.phase == Phase::Unknown));
    let label = move || match (done.get(), practice) {
        (true, true) => words.next_attempt,
        (false, _) if unknown.get() && !signed_out.get() => words.submit_retry,
        _ => words.submit,
    };
    let disabled = move || (spent() || signed_out.get()).then_some("true");
    let (task_id, version) = (page.task.id.clone(), page.task.submit_version);
    view! {
        <form class="answer" class:is-done=move || done.get() method="post" action="/api/fn/submit_task" on:submit=submit>
            <input type="hidden" name="task_id" value=task_id/>
            <input type="hidden" name="student_id" value=page.student_id/>
            <input type="hidden" name="submit_version" value=version/>
            <input type="hidden" name="client_id" value=page.client_id/>
            <input type="hidden" name="key" value=page.key/>
            <div class="editor" hidden=move || at_rest.get()>
                <label for="content">{words.your_answer}</label>
                <textarea
                    id="content" name="content" rows="10" required=move || !done.get() node_ref=area
                    readonly=move || locked.get() on:input=typed on:keydown=shortcut
                ></textarea>
            </div>
            <div class="actions">
                <button class="primary" hidden=move || at_rest.get() on:click=click aria-disabled=disabled>{label}</button>
                <p class="phase" role="status" aria-live="polite">
                    <PhaseLine machine=machine done=done asked=page.asked refused=refused blank=blank drafted=drafted/>
                </p>
            </div>
        </form>
    }
}
