//! The parent's server functions.

use domain::view::{StudentView, TaskView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// The children of a parent and how the tasks of one of them stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Every child.
    pub children: Vec<StudentView>,
    /// The chosen child, or the first.
    pub child: Option<StudentView>,
    /// The child's tasks as the child sees them, without the texts that were handed in.
    pub tasks: Vec<TaskView>,
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
            child: None,
            tasks: Vec::new(),
        });
    };
    let found = engine.child_tasks(&actor, &chosen).await;
    let found = found.map_err(|e| request::store_fault(&e))?;
    let (child, mut tasks) = found.ok_or_else(|| request::fault(FaultKind::NotFound))?;
    for submission in tasks.iter_mut().filter_map(|task| task.submission.as_mut()) {
        submission.content.clear();
    }
    Ok(Report {
        children,
        child: Some(child),
        tasks,
    })
}
