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
    names::{action_word, consequence, finding_word, refusal_word},
    parts::{Line, list, notice, odd, record_link},
    sheet,
};
use crate::{
    components::{CutKey, StateBadge},
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
    let form = (!records.is_empty()).then(|| form(&records, picked));
    let view = view! {
        {error}
        <p class="crumb"><a href="/records">{own.all_records}</a></p>
        <div class="page-head"><h1 id="bulk">{title.clone()}</h1></div>
        {preview(&records)}
        {form}
    };
    Ok(sheet(&title, &records, view))
}

fn preview(records: &[RecordDetail]) -> AnyView {
    let (own, words) = (sheet_words(), words());
    let line = |record: &RecordDetail| {
        let found = record.evidence.as_ref().map(|e| finding_word(e.finding));
        let proposed = match &record.evidence {
            _ if record.state.is_terminal() => own.nothing_any_more,
            Some(evidence) => evidence.proposed.map_or(own.person_chooses, action_word),
            None => own.person_chooses,
        };
        Line {
            id: record.id.clone(),
            cells: vec![
                view! { <StateBadge state=record.state/> }.into_any(),
                view! { <a href=format!("/records/{}", record.id)><CutKey key=record.key.clone()/></a> }.into_any(),
                record.subject_name.clone().into_any(),
                found.into_any(),
                proposed.into_any(),
            ],
        }
    };
    let columns = [
        (words.ops.column_state, ""),
        (words.ops.column_key, ""),
        (words.ops.column_subject, ""),
        (own.evidence_title, "wide-cell"),
        (own.column_proposed, ""),
    ];
    let table = list(
        "bulk",
        &columns,
        records.iter().map(line).collect(),
        own.bulk_empty,
    );
    view! { <section class="box" aria-labelledby="bulk">{table}</section> }.into_any()
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
                <input type="radio" name="action" id=format!("act-{action}") value=action.to_string() required disabled=n == 0/>
                <span><strong>{action_word(*action)}</strong> " · " {count} <br/> <span class="quiet">{consequence(*action)}</span></span>
            </label>
        }
    });
    view! {
        <section class="box" aria-labelledby="acts">
            <h2 id="acts">{own.acts_title}</h2>
            <form method="post" action="/api/fn/start_bulk" class="act-form">
                <input type="hidden" name="ids" value=ids/>
                <input type="hidden" name="key" value=key/>
                <fieldset><legend class="visually-hidden">{own.acts_title}</legend>{choices.collect_view()}</fieldset>
                <label for="reason">{own.reason}</label>
                <textarea id="reason" name="reason" required maxlength="1000" rows="2"></textarea>
                <label class="sure"><input type="checkbox" id="sure" required/> <span>{own.cannot_be_undone}</span></label>
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
    let columns = [
        (own.column_record, ""),
        (own.column_status, ""),
        (own.column_why, "wide-cell"),
    ];
    let results = bulk.results.as_deref().unwrap_or_default();
    let outcomes = list(
        "bulk",
        &columns,
        results.iter().map(line).collect(),
        own.bulk_none_yet,
    );
    let view = view! {
        <p class="crumb"><a href="/records">{own.all_records}</a></p>
        <div class="page-head"><h1 id="bulk">{title.clone()}</h1><p data-bulk=bulk.id.clone()>{how}</p></div>
        <p>{odd(&bulk.reason)}</p>
        <section class="box" aria-labelledby="bulk">{outcomes}</section>
    };
    Ok(sheet(&title, &bulk, view))
}

fn line(result: &BulkResult) -> Line {
    let own = sheet_words();
    let word = match result.outcome {
        BulkOutcome::Applied => own.status_applied,
        BulkOutcome::Skipped => own.outcome_skipped,
        BulkOutcome::Refused => own.status_refused,
        BulkOutcome::Failed => own.outcome_failed,
        BulkOutcome::AwaitingApproval => own.status_awaiting,
    };
    Line {
        id: result.record_id.clone(),
        cells: vec![
            record_link(&result.record_id).into_any(),
            word.into_any(),
            result.detail.as_deref().map(refusal_word).into_any(),
        ],
    }
}
