//! The parent's server functions.

use domain::view::{ChildReport, StudentView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// The children of a parent and how the tasks of one of them stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Every child.
    pub children: Vec<StudentView>,
    /// The chosen child, or the first.
    pub report: Option<ChildReport>,
}

/// The children of the parent who asks, and how the tasks of the chosen one stand.
///
/// # Errors
/// A [`Fault`] without a parent's identity, for another one's child, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "load_report")]
pub async fn load_report(child_id: Option<String>) -> Result<Report, Fault> {
    use crate::{fault::FaultKind, request};
    let actor = request::require(|role| role == domain::Role::Parent).await?;
    let engine = request::engine()?;
    let children = engine
        .list_children(&actor)
        .await
        .map_err(|e| request::store_fault(&e))?;
    let Some(chosen) = child_id.or_else(|| children.first().map(|c| c.id.clone())) else {
        return Ok(Report {
            children,
            report: None,
        });
    };
    let report = engine.child_report(&actor, &chosen).await;
    let report = report.map_err(|e| request::store_fault(&e))?;
    let report = report.ok_or_else(|| request::fault(FaultKind::NotFound))?;
    Ok(Report {
        children,
        report: Some(report),
    })
}
