//! The sheets, written by the server only: typed views, so that every text in them is escaped, made into the HTML of a page.

mod approvals;
mod arrivals;
mod audit;
mod bulk;
mod ends;
mod letters;
mod names;
mod parts;
mod record;
mod records;
mod timeline;

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::{extract::Query as Form, http::Uri};
use engine::{Actor, StoreError};
use leptos::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::sheet::Sheet;
use crate::{
    fault::{Fault, FaultKind},
    request, text,
};

/// Writes the page at a path.
pub(super) async fn write(actor: &Actor, path: &str, query: &str) -> Result<Sheet, Fault> {
    // A server function that is called directly has no page around it that would know.
    provide_context(text::detect());
    let query = Query::read(query);
    let mut segments = path.trim_matches('/').split('/');
    let page = (segments.next(), segments.next(), segments.next());
    match page {
        (Some("records"), None, None) => records::write(actor, &query).await,
        (Some("records"), Some(id), None) => record::write(actor, id, &query).await,
        (Some("arrivals"), None, None) => arrivals::write(&query).await,
        (Some("approvals"), None, None) => approvals::write(actor, &query).await,
        (Some("compensated"), None, None) => ends::write_compensated(&query).await,
        (Some("failures"), None, None) => ends::write_failures(&query).await,
        (Some("bulks"), Some("new"), None) => bulk::write_new(actor, &query).await,
        (Some("bulks"), Some(id), None) => bulk::write(id).await,
        (Some("audit"), None, None) => audit::write(&query).await,
        _ => Err(request::fault(FaultKind::NotFound)),
    }
}

/// The query of a page: what a form left empty is absent.
#[derive(Debug, Default)]
struct Query(Vec<(String, String)>);

impl Query {
    fn read(text: &str) -> Self {
        let uri = format!("/?{}", text.trim_start_matches('?')).parse::<Uri>();
        let pairs = uri.ok().and_then(|uri| Form::try_from_uri(&uri).ok());
        let pairs = pairs.map(|Form(pairs)| pairs).unwrap_or_default();
        Self(pairs)
    }

    /// The value of a name.
    fn get(&self, name: &str) -> Option<String> {
        self.all(name).next().map(str::to_owned)
    }

    /// The value of a name, if it is one of its type; anything else restricts nothing.
    fn parsed<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    /// Every value of a name.
    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let pairs = self
            .0
            .iter()
            .filter(move |(key, value)| key == name && !value.is_empty());
        // No database holds this character, so nothing can be found by it.
        pairs
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.contains('\0'))
    }
}

/// The fault of a list: a cursor that is none is an address that leads nowhere.
fn listed<T>(page: Result<Option<T>, StoreError>) -> Result<T, Fault> {
    page.map_err(|e| request::store_fault(&e))?
        .ok_or_else(|| request::fault(FaultKind::NotFound))
}

/// A sheet of a view, and of what was read for it.
fn sheet(title: &str, read: &impl Serialize, view: impl IntoView) -> Sheet {
    Sheet {
        title: title.to_owned(),
        html: view.into_any().to_html(),
        mark: mark(read),
    }
}

/// A mark that differs when something is news.
fn mark(read: &impl Serialize) -> String {
    // What is no JSON would have no mark, and be told as news for ever; all of these are.
    let mut read = serde_json::to_value(read).unwrap_or_default();
    still(&mut read);
    let mut hasher = DefaultHasher::new();
    read.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Leaves out what changes by itself.
fn still(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    // That it became stuck is news, for how long it has been is none.
                    "stuck_seconds" if !member.is_null() => *member = Value::Bool(true),
                    "evidence" => drop(member.as_object_mut().and_then(|e| e.remove("at"))),
                    // The scanner's bookkeeping; what it leads to is another state.
                    "scan_attempts" | "scanned_at" | "scan_note" => *member = Value::Null,
                    _ => still(member),
                }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(still),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::mark;

    #[test]
    fn ages_are_no_news_and_everything_else_is() {
        let page = |seconds: Option<i64>, at: &str, state: &str| {
            mark(
                &json!({"records": [{"stuck_seconds": seconds, "state": state, "evidence": {"at": at, "finding": "absent"}}]}),
            )
        };
        let seen = page(Some(61), "10:00", "PROCESSING");
        assert_eq!(seen, page(Some(75), "10:14", "PROCESSING"));
        assert_ne!(seen, page(None, "10:00", "PROCESSING"));
        assert_ne!(seen, page(Some(61), "10:00", "SUCCEEDED"));
        let scanned =
            |n: u32, arrivals: u32| mark(&json!({"scan_attempts": n, "arrivals": arrivals}));
        assert_eq!(scanned(1, 1), scanned(2, 1));
        assert_ne!(scanned(1, 1), scanned(1, 2));
    }
}
