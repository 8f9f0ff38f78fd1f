//! `/approvals`: what waits for a second person, and what was done lately.

use domain::{Role, compensation::CompensationStatus, view::CompensationView};
use engine::Actor;
use leptos::prelude::*;

use super::{
    Query, Sheet, listed,
    names::{action_word, consequence, finding_word, refusal_word, status_word},
    parts::{Line, address, list, notice, odd, pager, record_link, when},
    sheet,
};
use crate::{
    components::Empty,
    fault::Fault,
    request,
    text::{fill, sheet_words},
};

/// Writes the page.
pub(super) async fn write(actor: &Actor, query: &Query) -> Result<Sheet, Fault> {
    let own = sheet_words();
    let engine = request::engine()?;
    let status = Some(CompensationStatus::AwaitingApproval);
    let waiting = listed(engine.list_compensations(status, None, Some(100)).await)?;
    let after = query.get("after");
    let all = listed(
        engine
            .list_compensations(None, after.as_deref(), Some(50))
            .await,
    )?;
    let done = query
        .get("error")
        .map(|code| notice(false, refusal_word(&code).to_owned()));
    let decided = query.get("done").and_then(|id| {
        let decided = all.compensations.iter().find(|c| c.id == id)?;
        Some(notice(
            decided.status != CompensationStatus::Refused,
            fill(own.now_is, &[("status", status_word(decided.status))]),
        ))
    });
    let cards: Vec<_> = waiting
        .compensations
        .iter()
        .map(|c| card(actor, c))
        .collect();
    let next = all
        .next
        .clone()
        .map(|after| address("/approvals", &[("after", Some(after))]));
    let done_lately = all
        .compensations
        .iter()
        .filter(|c| c.status != CompensationStatus::AwaitingApproval);
    let lately = done_lately.map(line).collect();
    let columns = [
        (own.column_at, ""),
        (own.column_what, ""),
        (own.column_record, ""),
        (own.column_status, "wide-cell"),
        (own.column_who, ""),
        (own.reason, "wide-cell"),
    ];
    let view = view! {
        {done} {decided}
        <div class="page-head"><h1 id="approvals">{own.approvals_title}</h1></div>
        <section class="box" aria-labelledby="waiting">
            <h2 id="waiting">{own.waiting_title}</h2>
            {cards.is_empty().then(|| view! { <Empty text=own.waiting_empty/> })}
            <div class="approvals">{cards}</div>
        </section>
        <section class="box" aria-labelledby="lately">
            <h2 id="lately">{own.lately_title}</h2>
            {list("lately", &columns, lately, own.lately_empty)}
            {pager(None, next)}
        </section>
    };
    Ok(sheet(own.approvals_title, &(&waiting, &all), view))
}

fn card(actor: &Actor, asked: &CompensationView) -> impl IntoView + use<> {
    let own = sheet_words();
    let who = asked
        .actor_name
        .clone()
        .unwrap_or_else(|| own.command_line.to_owned());
    let is_own = asked.actor.as_deref() == Some(&actor.id.to_string());
    let found = asked
        .evidence
        .as_ref()
        .map(|e| view! { <p class="quiet">{finding_word(e.finding)}</p> });
    let until = asked.expires_at.as_deref().map(|at| {
        view! { " · " {own.decide_until} " " {when(at, "short")} }
    });
    let reason = format!("reason-{}", asked.id);
    let decide = if actor.role != Role::Admin {
        view! { <p class="quiet">{own.admins_act}</p> }.into_any()
    } else if is_own {
        view! { <p class="quiet">{own.not_ones_own}</p> }.into_any()
    } else {
        view! {
            <form method="post" action="/api/fn/decide" class="decide">
                <input type="hidden" name="compensation" value=asked.id.clone()/>
                <label for=reason.clone()>{own.reason}</label>
                <textarea id=reason name="reason" required maxlength="1000" rows="2"></textarea>
                <div class="actions">
                    <button class="primary" name="decision" value="approve">{own.approve}</button>
                    <button class="plain" name="decision" value="reject">{own.reject}</button>
                </div>
            </form>
        }
        .into_any()
    };
    view! {
        <article class="approval" data-compensation=asked.id.clone()>
            <h3>{action_word(asked.action)} " · " {record_link(&asked.record_id)}</h3>
            <p class="quiet">{who} " · " {when(&asked.created_at, "ago")} {until}</p>
            <blockquote>{odd(&asked.reason)}</blockquote>
            <p>{consequence(asked.action)}</p>
            {found}
            {decide}
        </article>
    }
}

fn line(done: &CompensationView) -> Line {
    let own = sheet_words();
    let refusal = done
        .refusal
        .as_deref()
        .map(|code| view! { <span class="quiet">" – " {refusal_word(code)}</span> });
    let who = done.actor_name.clone();
    Line {
        id: done.id.clone(),
        cells: vec![
            when(&done.created_at, "second").into_any(),
            action_word(done.action).into_any(),
            record_link(&done.record_id).into_any(),
            view! { {status_word(done.status)} {refusal} }.into_any(),
            who.unwrap_or_else(|| own.command_line.to_owned())
                .into_any(),
            odd(&done.reason).into_any(),
        ],
    }
}
