//! `/bulks/new`: what would happen to each picked record, and why; `/bulks/{id}`: what became of each.

use domain::{
    Role,
    compensation::{BulkOutcome, CompensationAction},
    view::{BulkResult, BulkStatus, RecordDetail},
};
use engine::Actor;
use leptos::prelude::*;

use super::{
    Query, Sheet,
    parts::{action_word, consequence, finding_word, notice, refusal_word},
    sheet,
};
use crate::{
    components::{CutKey, Empty, StateBadge},
    fault::{Fault, FaultKind},
    request,
    text::{fill, sheet_words, words},
};

/// How many picked records are looked at: a page of the list.
const MAX_PICKED: usize = 200;

/// Writes the preview.
pub(super) async fn write_new(actor: &Actor, query: &Query) -> Result<Sheet, Fault> {
    if actor.role != Role::Admin {
        return Err(request::fault(FaultKind::WrongRole));
    }
    let own = sheet_words();
    let mut ids: Vec<i64> = query.all("id").filter_map(|id| id.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.truncate(MAX_PICKED);
    let engine = request::engine()?;
    let mut records = Vec::new();
    for id in ids {
        let found = engine.find_record(&id.to_string()).await;
        records.extend(found.map_err(|e| request::store_fault(&e))?);
    }
    let error = query
        .get("error")
        .map(|code| notice(false, refusal_word(&code).to_owned()));
    let picked: Vec<_> = records.iter().map(|r| r.id.as_str()).collect();
    let picked = picked.join(",");
    let title = fill(own.bulk_title, &[("n", &records.len().to_string())]);
    let body = if records.is_empty() {
        view! { <Empty text=own.bulk_empty/> }.into_any()
    } else {
        view! { {preview(&records)} {form(&records, picked)} }.into_any()
    };
    let view = view! {
        {error}
        <p class="crumb"><a href="/records">{own.all_records}</a></p>
        <div class="page-head"><h1 id="bulk">{title.clone()}</h1></div>
        {body}
    };
    Ok(sheet(&title, view))
}

fn preview(records: &[RecordDetail]) -> impl IntoView + use<> {
    let (own, words) = (sheet_words(), words());
    let rows = records.iter().map(|record| {
        let found = record.evidence.as_ref().map(|e| finding_word(e.finding));
        let proposed = record.evidence.as_ref().and_then(|e| e.proposed);
        view! {
            <tr>
                <td><StateBadge state=record.state/></td>
                <td><a href=format!("/records/{}", record.id)><CutKey key=record.key.clone()/></a></td>
                <td>{record.subject_name.clone()}</td>
                <td>{found}</td>
                <td>{proposed.map_or(own.person_chooses, action_word)}</td>
            </tr>
        }
    });
    view! {
        <section class="box" aria-labelledby="bulk">
            <div class="scroll" role="region" tabindex="0" aria-labelledby="bulk">
                <table class="plain-table rows-table">
                    <thead>
                        <tr>
                            <th scope="col">{words.column_state}</th>
                            <th scope="col">{words.column_key}</th>
                            <th scope="col">{words.column_subject}</th>
                            <th scope="col">{own.evidence_title}</th>
                            <th scope="col">{own.proposed}</th>
                        </tr>
                    </thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            </div>
        </section>
    }
}

fn form(records: &[RecordDetail], ids: String) -> impl IntoView + use<> {
    let own = sheet_words();
    let key = format!("page:{}", uuid::Uuid::new_v4());
    let choices = CompensationAction::CHANGING.iter().map(|action| {
        let permits = |record: &&RecordDetail| {
            record.evidence.as_ref().is_some_and(|e| e.permitted.contains(action)) && !record.state.is_terminal()
        };
        let n = records.iter().filter(permits).count();
        let count = fill(own.permitted_for, &[("n", &n.to_string()), ("all", &records.len().to_string())]);
        view! {
            <label class="sure">
                <input type="radio" name="action" value=action.to_string() required disabled=n == 0/>
                <span><strong>{action_word(*action)}</strong> " · " {count} <br/> <span class="quiet">{consequence(*action)}</span></span>
            </label>
        }
    });
    view! {
        <section class="box" aria-labelledby="acts">
            <h2 id="acts">{own.acts_title}</h2>
            <form method="post" action="/api/fn/start_bulk" class="act-form" data-still="">
                <input type="hidden" name="ids" value=ids/>
                <input type="hidden" name="key" value=key/>
                <fieldset><legend class="visually-hidden">{own.acts_title}</legend>{choices.collect_view()}</fieldset>
                <label for="reason">{own.reason}</label>
                <textarea id="reason" name="reason" required maxlength="1000" rows="2"></textarea>
                <label class="sure"><input type="checkbox" required/> <span>{own.cannot_be_undone}</span></label>
                <button class="primary">{own.do_bulk}</button>
            </form>
        </section>
    }
}

/// Writes the page of a bulk.
pub(super) async fn write(id: &str) -> Result<Sheet, Fault> {
    let own = sheet_words();
    let found = request::engine()?.find_bulk(id).await;
    let bulk = found
        .map_err(|e| request::store_fault(&e))?
        .ok_or_else(|| request::fault(FaultKind::NotFound))?;
    let title = fill(
        own.bulk_of,
        &[
            ("action", action_word(bulk.action)),
            ("n", &bulk.total.to_string()),
        ],
    );
    let how = match bulk.status {
        BulkStatus::Running => fill(
            own.bulk_running,
            &[
                ("n", &bulk.done.to_string()),
                ("all", &bulk.total.to_string()),
            ],
        ),
        BulkStatus::Done => own.bulk_done.to_owned(),
    };
    let rows: Vec<_> = bulk
        .results
        .unwrap_or_default()
        .into_iter()
        .map(result)
        .collect();
    let view = view! {
        <p class="crumb"><a href="/records">{own.all_records}</a></p>
        <div class="page-head"><h1 id="bulk">{title.clone()}</h1><p data-bulk=bulk.id>{how}</p></div>
        <p class="odd">{bulk.reason}</p>
        <section class="box" aria-labelledby="bulk">
            <table class="plain-table rows-table">
                <thead>
                    <tr>
                        <th scope="col">{own.column_record}</th>
                        <th scope="col">{own.column_status}</th>
                        <th scope="col">{own.column_why}</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </section>
    };
    Ok(sheet(&title, view))
}

fn result(result: BulkResult) -> impl IntoView {
    let own = sheet_words();
    let word = match result.outcome {
        BulkOutcome::Applied => own.status_applied,
        BulkOutcome::Skipped => own.outcome_skipped,
        BulkOutcome::Refused => own.status_refused,
        BulkOutcome::Failed => own.outcome_failed,
        BulkOutcome::AwaitingApproval => own.status_awaiting,
    };
    view! {
        <tr>
            <td><a href=format!("/records/{}", result.record_id)>{fill(own.record_title, &[("id", &result.record_id)])}</a></td>
            <td>{word}</td>
            <td>{result.detail.as_deref().map(refusal_word)}</td>
        </tr>
    }
}
