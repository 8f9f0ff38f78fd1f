//! `/audit`: who tried what, refused attempts too.

use domain::view::{AuditEntry, AuditFilter};
use leptos::prelude::*;

use super::{
    Query, Sheet, listed,
    names::{action_word, status_word},
    parts::{Line, address, choice, do_filter, field, list, odd, pager, record_link, when},
    sheet,
};
use crate::{
    fault::Fault,
    request,
    text::{sheet_words, words},
};

/// Writes the page.
pub(super) async fn write(query: &Query) -> Result<Sheet, Fault> {
    let own = sheet_words();
    let filter = AuditFilter {
        actor: query.get("actor"),
        action: query.get("action"),
        object: query.get("object"),
        after: query.get("after"),
        limit: None,
    };
    let page = listed(request::engine()?.list_audit(&filter).await)?;
    let next = page.next.clone().map(|after| {
        let pairs = [
            ("actor", filter.actor.clone()),
            ("action", filter.action.clone()),
            ("object", filter.object.clone()),
            ("after", Some(after)),
        ];
        address("/audit", &pairs)
    });
    let columns = [
        (own.column_at, ""),
        (own.column_who, ""),
        (own.column_what, ""),
        (own.column_object, ""),
        (own.column_status, ""),
        (own.column_detail, "wide-cell"),
    ];
    let actions = ACTIONS
        .iter()
        .map(|action| ((*action).to_owned(), audit_word(action).to_owned()));
    let view = view! {
        <div class="page-head"><h1 id="audit">{own.audit_title}</h1></div>
        <form method="get" action="/audit" class="filter" role="search" aria-label=words().filter>
            {field("actor", own.column_who, filter.actor.clone(), "")}
            {choice("action", own.column_what, filter.action.clone(), actions.collect())}
            {field("object", own.column_object, filter.object.clone(), "")}
            {do_filter((filter != AuditFilter::default()).then_some("/audit"))}
        </form>
        <section class="box" aria-labelledby="audit">
            {list("audit", &columns, page.entries.iter().map(line).collect(), own.audit_empty)}
            {pager(None, next)}
        </section>
    };
    Ok(sheet(own.audit_title, &page, view))
}

fn line(entry: &AuditEntry) -> Line {
    let own = sheet_words();
    let object = match entry.object.strip_prefix("record/") {
        Some(id) => record_link(id).into_any(),
        None => view! { <code>{entry.object.clone()}</code> }.into_any(),
    };
    let text = |name: &str| entry.detail.get(name).and_then(|v| v.as_str());
    let outcome = text("outcome").map(|outcome| match outcome.parse() {
        Ok(status) => status_word(status).into_any(),
        Err(_) => view! { <code>{outcome.to_owned()}</code> }.into_any(),
    });
    let whole = serde_json::to_string_pretty(&entry.detail).unwrap_or_default();
    Line {
        id: entry.id.clone(),
        cells: vec![
            when(&entry.at, "second").into_any(),
            entry.actor_name.clone().unwrap_or_else(|| own.by_scanner.to_owned()).into_any(),
            view! { <span title=entry.action.clone()>{audit_word(&entry.action).to_owned()}</span> }.into_any(),
            object,
            outcome.into_any(),
            view! {
                {text("reason").map(odd)}
                <details><summary>{own.whole_entry}</summary><pre class="content" tabindex="0">{whole}</pre></details>
            }
            .into_any(),
        ],
    }
}

/// What the audit tells of, as the filter offers it; the first one is the beginning of several.
const ACTIONS: [&str; 11] = [
    "compensation.",
    "compensation.verify",
    "compensation.complete",
    "compensation.release",
    "compensation.re_execute",
    "compensation.fail",
    "compensation.reject",
    "compensation.expire",
    "outbox.replay",
    "task.create",
    "task.reopen",
];

/// The word for what was tried; a token that has none is shown as it is.
fn audit_word(action: &str) -> &str {
    let own = sheet_words();
    if let Some(Ok(action)) = action.strip_prefix("compensation.").map(str::parse) {
        return action_word(action);
    }
    match action {
        "compensation." => own.audit_compensations,
        "compensation.reject" => own.audit_reject,
        "compensation.expire" => own.audit_expire,
        "outbox.replay" => own.audit_replay,
        "task.create" => own.audit_task_create,
        "task.reopen" => own.audit_task_reopen,
        other => other,
    }
}
