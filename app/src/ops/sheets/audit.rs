//! `/audit`: who tried what, refused attempts too.

use domain::view::{AuditEntry, AuditFilter};
use leptos::prelude::*;

use super::{
    Query, Sheet, listed,
    parts::{address, field, pager, when},
    sheet,
};
use crate::{components::Empty, fault::Fault, request, text::sheet_words};

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
    let rows: Vec<_> = page.entries.into_iter().map(row).collect();
    let is_empty = rows.is_empty();
    let view = view! {
        <div class="page-head"><h1 id="audit">{own.audit_title}</h1></div>
        <form method="get" action="/audit" class="filter" role="search" aria-label=own.filter>
            {field("actor", own.column_who, filter.actor, "")}
            {field("action", own.column_what, filter.action, "")}
            {field("object", own.column_object, filter.object, "")}
            <div class="filter-do"><button class="primary">{own.do_filter}</button> <a href="/audit">{own.clear_filter}</a></div>
        </form>
        <section class="box" aria-labelledby="audit">
            {is_empty.then(|| view! { <Empty text=own.audit_empty/> })}
            <div class="scroll" role="region" tabindex="0" aria-labelledby="audit" hidden=is_empty>
                <table class="plain-table rows-table">
                    <thead>
                        <tr>
                            <th scope="col">{own.column_at}</th>
                            <th scope="col">{own.column_who}</th>
                            <th scope="col">{own.column_what}</th>
                            <th scope="col">{own.column_object}</th>
                            <th scope="col">{own.column_detail}</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            {pager(None, next)}
        </section>
    };
    Ok(sheet(own.audit_title, view))
}

fn row(entry: AuditEntry) -> impl IntoView {
    let own = sheet_words();
    let object = match entry.object.strip_prefix("record/") {
        Some(id) => {
            view! { <a href=format!("/records/{id}")>{entry.object.clone()}</a> }.into_any()
        }
        None => entry.object.clone().into_any(),
    };
    let text = |name: &str| {
        entry
            .detail
            .get(name)
            .and_then(|v| v.as_str())
            .map(str::to_owned)
    };
    let whole = serde_json::to_string_pretty(&entry.detail).unwrap_or_default();
    let outcome = text("outcome").map(|outcome| view! { <code>{outcome}</code> " " });
    view! {
        <tr>
            <td>{when(&entry.at, "second")}</td>
            <td>{entry.actor_name.unwrap_or_else(|| own.by_scanner.to_owned())}</td>
            <td><code>{entry.action}</code></td>
            <td>{object}</td>
            <td class="wide-cell">
                {outcome} <span class="odd">{text("reason")}</span>
                <details><summary>{own.whole_entry}</summary><pre class="content" tabindex="0">{whole}</pre></details>
            </td>
        </tr>
    }
}
