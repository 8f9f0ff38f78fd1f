//! The dead letters of a record: messages that nobody tries any more until an admin says so, with a reason.

use domain::{
    Role,
    view::{MessageView, RecordDetail},
};
use engine::Actor;
use leptos::prelude::*;

use super::parts::when;
use crate::text::{fill, sheet_words};

/// The dead letters, each with what an admin can do about it; nothing where there are none.
pub(super) fn letters(actor: &Actor, record: &RecordDetail) -> Option<impl IntoView + use<>> {
    let own = sheet_words();
    let dead: Vec<_> = record
        .outbox
        .iter()
        .filter(|message| message.dead_at.is_some())
        .map(|message| letter(actor, &record.id, message))
        .collect();
    (!dead.is_empty()).then(|| {
        view! {
            <section class="box" aria-labelledby="letters">
                <h2 id="letters">{own.letters_title}</h2>
                {dead}
            </section>
        }
    })
}

fn letter(actor: &Actor, record_id: &str, message: &MessageView) -> impl IntoView + use<> {
    let own = sheet_words();
    let tried = fill(own.letter_tried, &[("n", &message.attempts.to_string())]);
    let since = message.dead_at.clone().map(|at| when(&at, "ago"));
    let error = message
        .last_error
        .clone()
        .map(|error| view! { <p class="odd">{error}</p> });
    let act = if actor.role == Role::Admin {
        replay(record_id, &message.id).into_any()
    } else {
        view! { <p class="quiet">{own.admins_act}</p> }.into_any()
    };
    view! {
        <div class="letter" data-letter=message.id.clone()>
            <p><code>{message.topic.clone()}</code> " " <span class="quiet">{tried} " " {since}</span></p>
            {error}
            {act}
        </div>
    }
}

fn replay(record_id: &str, message_id: &str) -> impl IntoView + use<> {
    let own = sheet_words();
    let reason = format!("reason-letter-{message_id}");
    view! {
        <details class="act" name="act">
            <summary>{own.letter_replay}</summary>
            <form method="post" action="/api/fn/replay_message" data-act="replay">
                <p>{own.does_replay}</p>
                <input type="hidden" name="record" value=record_id.to_owned()/>
                <input type="hidden" name="message" value=message_id.to_owned()/>
                <label for=reason.clone()>{own.reason}</label>
                <textarea id=reason name="reason" required maxlength="1000" rows="2"></textarea>
                <button class="primary">{own.letter_replay}</button>
            </form>
        </details>
    }
}
