//! `/records/{id}`: what happened, what is known now, and what can be done.

use domain::{
    RecordState, Role,
    compensation::CompensationAction,
    view::{EvidenceView, RecordDetail},
};
use engine::Actor;
use leptos::prelude::*;

use super::{
    Query, Sheet,
    letters::letters,
    names::{action_word, consequence, finding_word, is_final, refusal_word},
    parts::{copy, notice, when},
    sheet,
    timeline::{event_text, timeline},
};
use crate::{
    components::{StateBadge, StuckBadge},
    fault::{Fault, FaultKind},
    request,
    text::{fill, grouped, sheet_words, words},
};

/// Keys longer than this are shown in the size of the text.
const LONG_KEY: usize = 60;

/// Writes the page.
pub(super) async fn write(actor: &Actor, id: &str, query: &Query) -> Result<Sheet, Fault> {
    let own = sheet_words();
    let found = request::engine()?.find_record(id).await;
    let record = found
        .map_err(|e| request::store_fault(&e))?
        .ok_or_else(|| request::fault(FaultKind::NotFound))?;
    let title = fill(own.record_title, &[("id", &record.id)]);
    let answer = record.answer.as_ref().map(|answer| {
        let head = fill(own.answer_status, &[("status", &answer.status.to_string())]);
        view! {
            <section class="box" aria-labelledby="answer">
                <div class="box-head"><h2 id="answer">{own.answer_title}</h2>{copy(answer.body.clone())}</div>
                <p class="quiet">{head} " " {answer.location.clone().map(|at| view! { <code class="odd">{at}</code> })}</p>
                <pre class="content" tabindex="0" aria-labelledby="answer">{answer.body.clone()}</pre>
            </section>
        }
    });
    let view = view! {
        {done(&record, query)}
        {head(&record)}
        <div class="record-halves">
            <section class="box" aria-labelledby="timeline">
                <h2 id="timeline">{own.timeline_title}</h2>
                {timeline(&record)}
            </section>
            <div class="record-side">
                {evidence(record.evidence.as_ref())}
                {acts(actor, &record)}
                {letters(actor, &record)}
                {facts(&record)}
            </div>
        </div>
        {answer}
    };
    Ok(sheet(&title, &record, view))
}

/// What became of what was just done.
fn done(record: &RecordDetail, query: &Query) -> Option<impl IntoView + use<>> {
    let own = sheet_words();
    if let Some(code) = query.get("error") {
        return Some(notice(false, refusal_word(&code).to_owned()));
    }
    if query.get("replayed").is_some() {
        return Some(notice(true, own.letter_replayed.to_owned()));
    }
    let id = query.get("done")?;
    let event = record
        .compensations
        .iter()
        .rfind(|event| event.compensation_id.as_deref() == Some(&id))?;
    let who = event.actor_name.as_deref().unwrap_or(own.by_scanner);
    let mut text = event_text(event, who);
    let is_good = event.event != "refused";
    if !is_good {
        // Checked in this order by the engine too.
        text = match (record.state.is_terminal(), &event.evidence) {
            (_, Some(_)) => own.refused_evidence,
            (true, None) => own.refused_terminal,
            (false, None) => own.refused_stale,
        }
        .to_owned();
    }
    Some(notice(is_good, text))
}

fn head(record: &RecordDetail) -> impl IntoView + use<> {
    let (own, words) = (sheet_words(), words());
    let title = fill(own.record_title, &[("id", &record.id)]);
    let subject = format!("/records?subject={}", record.subject);
    let class = if record.key.len() > LONG_KEY {
        "record-key is-long"
    } else {
        "record-key"
    };
    view! {
        <p class="crumb"><a href="/records">{own.all_records}</a></p>
        <header class="record-head">
            <h1 class="visually-hidden">{title}</h1>
            <p class=class><code class="key">{record.key.clone()}</code> {copy(record.key.clone())}</p>
            <p class="record-facts">
                <StateBadge state=record.state/>
                {record.stuck_seconds.map(|seconds| view! { <StuckBadge seconds=seconds/> })}
                <span><code>{record.action.clone()}</code></span>
                <span>{words.ops.column_subject} " " <a href=subject>{record.subject_name.clone()}</a></span>
                <span>{words.ops.column_attempt} " " {record.attempt}</span>
                <span>{words.ops.column_arrivals} " " {grouped(record.arrival_count)}</span>
                <span>{words.ops.column_seen} " " {when(&record.created_at, "ago")}</span>
                {record.error_code.clone().map(|code| view! { <code>{code}</code> })}
            </p>
        </header>
    }
}

fn evidence(evidence: Option<&EvidenceView>) -> Option<impl IntoView + use<>> {
    let own = sheet_words();
    let evidence = evidence?;
    let by = evidence.by_this_record.map(|own_claim| {
        if own_claim {
            own.found_by_this
        } else {
            own.found_by_other
        }
    });
    let location = evidence.location.clone().map(|at| {
        view! { <p><code class="odd">{at.clone()}</code> {copy(at)}</p> }
    });
    let row = evidence.row.as_ref().map(|row| {
        let text = serde_json::to_string_pretty(row).unwrap_or_default();
        view! { <details><summary>{own.found_row}</summary><pre class="content" tabindex="0">{text}</pre></details> }
    });
    Some(view! {
        <section class="box" aria-labelledby="evidence">
            <h2 id="evidence">{own.evidence_title}</h2>
            <p><strong>{finding_word(evidence.finding)}</strong> {by}</p>
            {location}
            {row}
            <p class="quiet">{own.looked_at} " " {when(&evidence.at, "second")}</p>
        </section>
    })
}

/// What can be done, each with what it leads to; what cannot, with why.
fn acts(actor: &Actor, record: &RecordDetail) -> impl IntoView + use<> {
    let own = sheet_words();
    let open = RecordState::COMPENSABLE.contains(&record.state);
    let why_not = if !open {
        Some(own.nothing_to_do)
    } else if record.lease_is_live {
        Some(own.still_alive)
    } else if actor.role != Role::Admin {
        Some(own.admins_act)
    } else {
        None
    };
    let body = match why_not {
        Some(why) => view! { <p>{why}</p> }.into_any(),
        None => {
            let permitted = record
                .evidence
                .as_ref()
                .map(|e| (e.permitted.clone(), e.proposed));
            let (permitted, proposed) = permitted.unwrap_or_default();
            let forms = CompensationAction::CHANGING.iter().map(|action| {
                if permitted.contains(action) {
                    act(record, *action, proposed == Some(*action)).into_any()
                } else {
                    view! { <p class="act-not quiet">{action_word(*action)} " – " {own.evidence_says_no}</p> }.into_any()
                }
            });
            view! { {forms.collect_view()} }.into_any()
        }
    };
    view! {
        <section class="box" aria-labelledby="acts">
            <h2 id="acts">{own.acts_title}</h2>
            {body}
        </section>
    }
}

fn act(
    record: &RecordDetail,
    action: CompensationAction,
    is_proposed: bool,
) -> impl IntoView + use<> {
    let own = sheet_words();
    // One key for one opened form: pressed twice it is one intent.
    let key = format!("page:{}", uuid::Uuid::new_v4());
    let proposed = is_proposed.then(|| view! { <span class="proposed">{own.proposed}</span> });
    let reason = format!("reason-{action}");
    let sure = is_final(action).then(|| {
        view! {
            <label class="sure"><input type="checkbox" id=format!("sure-{action}") required/> <span>{own.cannot_be_undone}</span></label>
        }
    });
    view! {
        <details class="act" name="act" id=format!("act-{action}")>
            <summary>{action_word(action)} " " {proposed}</summary>
            <form method="post" action="/api/fn/compensate" data-act=action.to_string()>
                <p>{consequence(action)}</p>
                <input type="hidden" name="record" value=record.id.clone()/>
                <input type="hidden" name="action" value=action.to_string()/>
                <input type="hidden" name="expected_version" value=record.version/>
                <input type="hidden" name="key" value=key/>
                <label for=reason.clone()>{own.reason}</label>
                <textarea id=reason name="reason" required maxlength="1000" rows="2"></textarea>
                {sure}
                <button class="primary">{action_word(action)}</button>
            </form>
        </details>
    }
}

fn facts(record: &RecordDetail) -> impl IntoView + use<> {
    let own = sheet_words();
    let until = record.expires_at.as_deref().map(|at| {
        view! { <div><dt>{own.answers_until}</dt><dd>{when(at, "short")}</dd></div> }
    });
    view! {
        <section class="box" aria-labelledby="facts">
            <h2 id="facts">{own.facts_title}</h2>
            <dl class="fact-list">
                <div><dt>{own.column_version}</dt><dd class="number">{record.version}</dd></div>
                <div><dt>{own.column_epoch}</dt><dd class="number">{record.epoch}</dd></div>
                <div><dt>{own.column_trace}</dt><dd><code class="trace">{record.trace_id.clone()}</code> {copy(record.trace_id.clone())}</dd></div>
                <div><dt>{own.column_fingerprint}</dt><dd><code class="trace">{record.fingerprint.clone()}</code></dd></div>
                {until}
            </dl>
            <p><a href=format!("/audit?object=record/{}", record.id)>{own.see_audit}</a></p>
        </section>
    }
}
