//! The server functions of the panel.

use domain::view::{PanelView, RecordPage, Window};
use leptos::prelude::*;

use crate::fault::Fault;

/// How many stuck records the panel shows.
pub const MAX_STUCK: u32 = 50;

/// The panel's numbers.
///
/// # Errors
/// A [`Fault`] without the identity of ops or an admin, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "panel")]
pub async fn panel(window: Window) -> Result<PanelView, Fault> {
    use crate::request;
    request::require(domain::Role::sees_panel).await?;
    let view = request::engine()?.panel(window).await;
    view.map_err(|e| request::store_fault(&e))
}

/// The records that are stuck, oldest first.
///
/// # Errors
/// A [`Fault`] without the identity of ops or an admin, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "list_stuck_records")]
pub async fn list_stuck_records() -> Result<RecordPage, Fault> {
    use crate::request;
    request::require(domain::Role::sees_panel).await?;
    let filter = domain::view::RecordFilter {
        stuck: Some(true),
        limit: Some(MAX_STUCK),
        ..Default::default()
    };
    let page = request::engine()?.list_records(&filter).await;
    // Only a bad cursor has no page, and there is none here.
    page.map(Option::unwrap_or_default)
        .map_err(|e| request::store_fault(&e))
}
