//! The sheets, written by the server only: typed views, so that every text in them is escaped, made into the HTML of a page.

mod approvals;
mod arrivals;
mod audit;
mod bulk;
mod letters;
mod parts;
mod record;
mod records;
mod timeline;

use axum::{extract::Query as Form, http::Uri};
use engine::{Actor, StoreError};
use leptos::prelude::*;

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

/// A sheet of a view.
fn sheet(title: &str, view: impl IntoView) -> Sheet {
    Sheet {
        title: title.to_owned(),
        html: view.into_any().to_html(),
    }
}
