//! The line under the button that says where the submission stands.

use domain::{RecordState, action::TaskKind, phase::Phase};
use leptos::prelude::*;

use super::{
    api::Asked,
    machine::{Hurdle, Machine},
};
use crate::{
    components::{At, Shape, icon},
    device, path,
    text::{fill, grouped, words},
};

/// Where the submission stands, in one line.
#[component]
pub(super) fn PhaseLine(
    machine: Machine,
    done: Memo<bool>,
    asked: Option<Asked>,
    refused: Option<String>,
    blank: RwSignal<bool>,
    drafted: RwSignal<bool>,
) -> impl IntoView {
    let words = words();
    let phase = Memo::new(move |_| machine.intent.with(|intent| intent.phase.clone()));
    // Before anything else that a form without a script can be told: its own text did not go in.
    let asked_refusal = asked
        .as_ref()
        .and_then(|asked| asked.status.as_ref())
        .filter(|status| status.state == RecordState::FailedFinal)
        .and_then(|status| status.code.clone());
    let (asked, refused) = (StoredValue::new(asked), StoredValue::new(refused));
    move || {
        if machine.hurdle.get() == Some(Hurdle::SignedOut) {
            return view! { <span class="phase-refused">{icon(Shape::BarredSquare)} <span>{words.phase_signed_out} " " <a href=machine.task.with(|task| path::sign_in(&format!("/tasks/{}", task.id))) rel="external">{words.sign_in}</a></span></span> }.into_any();
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
            Phase::Refused { code } => refusal_line(machine, &code),
            Phase::Submitted => done_line(machine),
            Phase::Idle if asked_refusal.is_some() && !drafted.get() => {
                refusal_line(machine, asked_refusal.as_deref().unwrap_or_default())
            }
            Phase::Idle if machine.notice.with(Option::is_some) => {
                refusal_line(machine, &machine.notice.get().unwrap_or_default())
            }
            // What was typed here and is not what counts is said to be that.
            Phase::Idle if done.get() && drafted.get() => refusal_line(machine, "already-submitted"),
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

/// When and from where it was submitted, and what it earned.
fn done_line(machine: Machine) -> AnyView {
    let words = words();
    let points = machine
        .attempts
        .with(|attempts| attempts.first().map_or(0, |attempt| attempt.points));
    let points = (points != 0).then(|| {
        let text = fill(words.points_earned, &[("n", &grouped(points))]);
        view! { " · " <span class="number">{text}</span> }
    });
    view! {
        <span class="phase-submitted">
            {icon(Shape::Check)}
            <span>{words.phase_submitted} " " {origin(machine)} {points}</span>
        </span>
    }
    .into_any()
}

/// Why it was refused; when another submission counts, also when and from where that came.
fn refusal_line(machine: Machine, code: &str) -> AnyView {
    let words = words();
    let practice = machine.task.with(|task| task.kind == TaskKind::Practice);
    let text = if practice && code == "already-submitted" {
        words.refused_attempt_taken
    } else {
        words.refusal(code)
    };
    let first = (code == "already-submitted").then(|| origin(machine));
    view! {
        <span class="phase-refused">
            {icon(Shape::BarredSquare)}
            <span>{text} {first.map(|first| view! { " (" {first} ")" })}</span>
        </span>
    }
    .into_any()
}

/// When the submission that counts was written, and from where.
fn origin(machine: Machine) -> AnyView {
    let words = words();
    let Some(at) = machine
        .submission
        .with(|s| s.as_ref().map(|s| s.created_at.clone()))
    else {
        return ().into_any();
    };
    // The list is read after the submission; until then nothing is said of the device.
    let from = machine.attempts.with(|attempts| {
        let newest = attempts.iter().find(|attempt| attempt.created_at == at)?;
        let own = machine.intent.with(|intent| intent.client_id.clone());
        Some(device::place(words, newest.client_id.as_deref(), &own))
    });
    view! { <At at=at today=true/> {from.map(|from| view! { " · " <span>{from}</span> })} }
        .into_any()
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
