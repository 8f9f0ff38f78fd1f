//! The teacher's server functions.

use domain::view::{ClassProgress, ClassView};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// The classes of a teacher and how one of them stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Every class.
    pub classes: Vec<ClassView>,
    /// The chosen class, or the first.
    pub class: Option<ClassProgress>,
    /// How many students it has; not more than [`MAX_STUDENTS`] of them are in it.
    pub students: usize,
}

/// How many students one page shows: a table of more is not read by anybody.
pub const MAX_STUDENTS: usize = 200;

/// The classes of the teacher who asks, and how the chosen one stands.
///
/// # Errors
/// A [`Fault`] without a teacher's identity, for another one's class, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "load_progress")]
pub async fn load_progress(class_id: Option<String>) -> Result<Progress, Fault> {
    use crate::{fault::FaultKind, request};
    let actor = request::require(|role| role == domain::Role::Teacher).await?;
    let engine = request::engine()?;
    let classes = engine
        .list_classes(&actor)
        .await
        .map_err(|e| request::store_fault(&e))?;
    let Some(chosen) = class_id.or_else(|| classes.first().map(|c| c.id.clone())) else {
        return Ok(Progress {
            classes,
            class: None,
            students: 0,
        });
    };
    let class = engine.class_progress(&actor, &chosen).await;
    let class = class.map_err(|e| request::store_fault(&e))?;
    let mut class = class.ok_or_else(|| request::fault(FaultKind::NotFound))?;
    let students = class.students.len();
    class.students.truncate(MAX_STUDENTS);
    Ok(Progress {
        classes,
        class: Some(class),
        students,
    })
}
