//! `/approvals`: what waits for a second person, and what was done lately.

use domain::{Role, compensation::CompensationStatus, view::CompensationView};
use engine::Actor;
use leptos::prelude::*;

use super::{
    Query, Sheet, listed,
    parts::{action_word, address, consequence, finding_word, notice, pager, refusal_word, when},
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
    let rows: Vec<_> = all
        .compensations
        .into_iter()
        .filter(|c| c.status != CompensationStatus::AwaitingApproval)
        .map(row)
        .collect();
    let (none_waits, none_done) = (cards.is_empty(), rows.is_empty());
    let view = view! {
        {done} {decided}
        <div class="page-head"><h1 id="approvals">{own.approvals_title}</h1></div>
        <section class="box" aria-labelledby="waiting">
            <h2 id="waiting">{own.waiting_title}</h2>
            {none_waits.then(|| view! { <Empty text=own.waiting_empty/> })}
            {cards}
        </section>
        <section class="box" aria-labelledby="lately">
            <h2 id="lately">{own.lately_title}</h2>
            {none_done.then(|| view! { <Empty text=own.lately_empty/> })}
            <div class="scroll" role="region" tabindex="0" aria-labelledby="lately" hidden=none_done>
                <table class="plain-table rows-table">
                    <thead>
                        <tr>
                            <th scope="col">{own.column_at}</th>
                            <th scope="col">{own.column_what}</th>
                            <th scope="col">{own.column_record}</th>
                            <th scope="col">{own.column_status}</th>
                            <th scope="col">{own.column_who}</th>
                            <th scope="col">{own.reason}</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            {pager(None, next)}
        </section>
    };
    Ok(sheet(own.approvals_title, view))
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
    let reason = format!("reason-{}", asked.id);
    let decide = if actor.role != Role::Admin {
        view! { <p class="quiet">{own.admins_act}</p> }.into_any()
    } else if is_own {
        view! { <p class="quiet">{own.not_ones_own}</p> }.into_any()
    } else {
        view! {
            <form method="post" action="/api/fn/decide" class="decide" data-still="">
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
            <h3>{action_word(asked.action)} " · " <a href=format!("/records/{}", asked.record_id)>{fill(own.record_title, &[("id", &asked.record_id)])}</a></h3>
            <p class="quiet">{who} " · " {when(&asked.created_at, "ago")}</p>
            <p class="odd">{asked.reason.clone()}</p>
            <p>{consequence(asked.action)}</p>
            {found}
            {decide}
        </article>
    }
}

fn row(done: CompensationView) -> impl IntoView {
    let own = sheet_words();
    let refusal = done
        .refusal
        .as_deref()
        .map(|code| view! { <span class="quiet">" – " {refusal_word(code)}</span> });
    view! {
        <tr>
            <td>{when(&done.created_at, "second")}</td>
            <td>{action_word(done.action)}</td>
            <td><a href=format!("/records/{}", done.record_id)>{fill(own.record_title, &[("id", &done.record_id)])}</a></td>
            <td>{status_word(done.status)} {refusal}</td>
            <td>{done.actor_name.unwrap_or_else(|| own.command_line.to_owned())}</td>
            <td class="odd wide-cell">{done.reason}</td>
        </tr>
    }
}

fn status_word(status: CompensationStatus) -> &'static str {
    let own = sheet_words();
    match status {
        CompensationStatus::Proposed => own.status_proposed,
        CompensationStatus::Applied => own.status_applied,
        CompensationStatus::AwaitingApproval => own.status_awaiting,
        CompensationStatus::Rejected => own.status_rejected,
        CompensationStatus::Expired => own.status_expired,
        CompensationStatus::Refused => own.status_refused,
    }
}
