//! One task: its text, the editor, the one button, and the line that says where the submission stands.

use domain::{
    RecordState,
    action::TaskKind,
    phase::Phase,
    view::{SubmissionView, TaskStatus, TaskView},
};
use leptos::{ev, html, prelude::*};
use leptos_router::hooks::{use_params_map, use_query_map};

use super::{
    api::{Asked, TaskPage, load_task},
    list::TaskFacts,
    machine::{Hurdle, Machine},
};
use crate::{
    components::{At, PageHead, Shape, Skeleton, TaskBadge, fault_view, icon},
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
    let page = Resource::new(
        move || task_id.get(),
        move |id| load_task(id, request.clone()),
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
    let TaskView { kind, status, .. } = page.task;
    let practice = kind == TaskKind::Practice;
    let settled = !practice && status == TaskStatus::Submitted;
    let machine = Machine::new(&page, settled);
    machine.start();

    let done = Memo::new(move |_| {
        machine.intent.with(|intent| match intent.phase {
            Phase::Submitted => true,
            Phase::Idle => settled,
            _ => false,
        })
    });
    let badge = move || {
        if done.get() {
            TaskStatus::Submitted
        } else {
            status
        }
    };
    let closed = page.task.closes_at.clone();
    let task = page.task.clone();
    let attempt = move || {
        practice.then(|| {
            let n = machine
                .intent
                .with(|intent| intent.submit_version)
                .to_string();
            view! { <span>{fill(words.attempt, &[("n", &n)])}</span> }
        })
    };
    view! {
        <PageHead title=page.task.title.clone()>
            {move || view! { <TaskBadge status=badge()/> }}
        </PageHead>
        <p class="task-facts">
            <TaskFacts task=task/>
            {attempt}
            {closed.map(|at| view! { <span>{words.closed_since} " " <At at=at/></span> })}
        </p>
        <div class="instructions">{page.task.instructions.clone()}</div>
        <Answer page=page refused=refused machine=machine done=done/>
        {move || {
            machine
                .submission
                .get()
                .map(|submission| view! { <Submitted submission=submission current=done.get() || !practice practice=practice/> })
        }}
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
    let settled = !practice && page.task.status == TaskStatus::Submitted;
    let locked = Memo::new(move |_| machine.intent.with(|intent| !intent.is_open()));

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
                if let Some(draft) = machine.shelf().draft() {
                    area.set_value(&draft);
                    drafted.set(true);
                }
            }
            None => {}
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
        if event.detail() > 1 {
            event.prevent_default();
        }
    };
    let shortcut = move |event: ev::KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            press();
        }
    };
    let unknown = Memo::new(move |_| machine.intent.with(|intent| intent.phase == Phase::Unknown));
    let label = move || match (done.get(), practice) {
        (true, true) => words.next_attempt,
        (true, false) => words.phase_submitted,
        (false, _) if unknown.get() => words.submit_retry,
        (false, _) => words.submit,
    };
    let (task_id, version) = (page.task.id.clone(), page.task.submit_version);
    view! {
        <form class="answer" class:is-done=move || done.get() method="post" action="/api/fn/submit_task" on:submit=submit>
            <input type="hidden" name="task_id" value=task_id/>
            <input type="hidden" name="submit_version" value=version/>
            <input type="hidden" name="client_id" value=page.client_id/>
            <input type="hidden" name="key" value=page.key/>
            <div class="editor" hidden=settled>
                <label for="content">{words.your_answer}</label>
                <textarea
                    id="content" name="content" rows="10" required=move || !done.get() node_ref=area
                    readonly=move || locked.get() on:input=typed on:keydown=shortcut
                ></textarea>
            </div>
            <div class="actions">
                {(!settled).then(|| view! {
                    <button class="primary" on:click=click aria-disabled=move || spent().then_some("true")>{label}</button>
                })}
                <p class="phase" role="status" aria-live="polite">
                    <PhaseLine machine=machine done=done asked=page.asked refused=refused blank=blank drafted=drafted/>
                </p>
            </div>
        </form>
    }
}

/// Where the submission stands, in one line.
#[component]
fn PhaseLine(
    machine: Machine,
    done: Memo<bool>,
    asked: Option<Asked>,
    refused: Option<String>,
    blank: RwSignal<bool>,
    drafted: RwSignal<bool>,
) -> impl IntoView {
    let words = words();
    let phase = Memo::new(move |_| machine.intent.with(|intent| intent.phase.clone()));
    let (asked, refused) = (StoredValue::new(asked), StoredValue::new(refused));
    move || {
        if machine.hurdle.get() == Some(Hurdle::SignedOut) {
            return view! { <span class="phase-refused">{icon(Shape::BarredSquare)} <span>{words.phase_signed_out} " " <a href="/" rel="external">{words.sign_in}</a></span></span> }.into_any();
        }
        match phase.get() {
            Phase::Submitting => {
                view! { <span class="phase-submitting">{icon(Shape::HalfRing)} {words.phase_submitting}</span> }.into_any()
            }
            Phase::Unknown => {
                let offline = machine.hurdle.get() == Some(Hurdle::Offline);
                let text = if offline {
                    words.phase_offline
                } else {
                    words.phase_unknown
                };
                view! { <span class="phase-unknown">{icon(Shape::Question)} {text}</span> }.into_any()
            }
            Phase::Refused { code } => {
                view! { <span class="phase-refused">{icon(Shape::BarredSquare)} {words.refusal(&code)}</span> }.into_any()
            }
            Phase::Submitted => done_line(machine),
            Phase::Idle if done.get() => done_line(machine),
            Phase::Idle if blank.get() => {
                view! { <span class="phase-refused">{icon(Shape::BarredSquare)} {words.phase_blank}</span> }.into_any()
            }
            Phase::Idle => match (asked.get_value(), refused.get_value()) {
                _ if drafted.get() => {
                    view! { <span class="quiet">{words.phase_draft}</span> }.into_any()
                }
                (Some(asked), _) => asked_line(asked),
                (None, Some(code)) => {
                    view! { <span class="phase-refused">{icon(Shape::BarredSquare)} {words.refusal(&code)}</span> }.into_any()
                }
                (None, None) => view! { <span class="quiet">{words.phase_idle}</span> }.into_any(),
            },
        }
    }
}

fn done_line(machine: Machine) -> AnyView {
    let at = machine
        .submission
        .get()
        .map(|s| view! { " " <At at=s.created_at today=true/> });
    view! { <span class="phase-submitted">{icon(Shape::Check)} <span>{words().phase_submitted} {at}</span></span> }.into_any()
}

/// What became of the request of a form that no script sent.
fn asked_line(asked: Asked) -> AnyView {
    let words = words();
    let (class, shape, text, pending) = match asked.status.map(|s| (s.state, s.code)) {
        None => (
            "phase-refused",
            Shape::BarredSquare,
            words.plain_missing,
            false,
        ),
        Some((RecordState::Succeeded, _)) => (
            "phase-submitted",
            Shape::Check,
            words.phase_submitted,
            false,
        ),
        Some((RecordState::FailedFinal, code)) => (
            "phase-refused",
            Shape::BarredSquare,
            words.refusal(code.as_deref().unwrap_or_default()),
            false,
        ),
        Some((RecordState::FailedRetryable, _)) => {
            ("phase-unknown", Shape::RoundArrow, words.plain_again, false)
        }
        Some((RecordState::Processing | RecordState::Unknown, _)) => (
            "phase-unknown",
            Shape::HalfRing,
            words.plain_processing,
            true,
        ),
    };
    let look = pending.then(|| view! { " " <a href="" rel="external">{words.plain_check}</a> });
    view! { <span class=class>{icon(shape)} <span>{text} {look}</span></span> }.into_any()
}

#[component]
fn Submitted(submission: SubmissionView, current: bool, practice: bool) -> impl IntoView {
    let words = words();
    let title = if current {
        words.submitted_content
    } else {
        words.submitted_last
    };
    let attempt = practice.then(|| {
        view! { <span>{fill(words.attempt, &[("n", &submission.submit_version.to_string())])}</span> }
    });
    view! {
        <section class="submitted">
            <h2>{title}</h2>
            <p class="task-facts">{attempt} <At at=submission.created_at/></p>
            <div class="content">{submission.content}</div>
        </section>
    }
}
