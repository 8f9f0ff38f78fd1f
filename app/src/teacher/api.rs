//! The teacher's server functions. Forms are plain; each is answered with a page, which a reload does not send again.

use domain::{
    action::TaskKind,
    view::{ClassOverview, ClassView, PupilTask, StudentView, TaskView},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// How many students one page shows.
pub const PAGE_STUDENTS: u32 = 50;

/// The classes of a teacher and how one of them stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Every class.
    pub classes: Vec<ClassView>,
    /// The chosen class, or the first.
    pub class: Option<ClassOverview>,
}

/// Which class, and which of its students.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProgressQuery {
    /// The class; the first one without it.
    pub class: Option<String>,
    /// The beginning of a name.
    pub q: Option<String>,
    /// Only students who have not handed in this task.
    pub open: Option<String>,
    /// The cursor of the page.
    pub after: Option<String>,
}

/// A form for a new task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskForm {
    /// The classes to choose from.
    pub classes: Vec<ClassView>,
    /// The key of the intent that the form is: pressed twice, it makes one task.
    pub key: String,
}

/// The classes of the teacher who asks, and how the chosen one stands.
///
/// # Errors
/// A [`Fault`] without a teacher's identity, for another one's class, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "load_progress", input = server_fn::codec::Json)]
pub async fn load_progress(query: ProgressQuery) -> Result<Progress, Fault> {
    use crate::{fault::FaultKind, request};
    let actor = request::require(ssr::is_teacher).await?;
    let engine = request::engine()?;
    let classes = engine.list_classes(&actor).await;
    let classes = classes.map_err(|e| request::store_fault(&e))?;
    let chosen = query.class.as_ref().or(classes.first().map(|c| &c.id));
    let Some(chosen) = chosen.cloned() else {
        return Ok(Progress {
            classes,
            class: None,
        });
    };
    let class = engine
        .class_overview(&actor, &chosen, &ssr::filter(query))
        .await;
    let class = class.map_err(|e| request::store_fault(&e))?;
    let class = class.ok_or_else(|| request::fault(FaultKind::NotFound))?;
    Ok(Progress {
        classes,
        class: Some(class),
    })
}

/// The tasks of a student of the teacher who asks, as the student sees them, without the texts.
///
/// # Errors
/// A [`Fault`] without a teacher's identity, for another one's student, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "load_pupil")]
pub async fn load_pupil(student_id: String) -> Result<(StudentView, Vec<TaskView>), Fault> {
    use crate::{fault::FaultKind, request};
    let actor = request::require(ssr::is_teacher).await?;
    let found = request::engine()?.pupil_tasks(&actor, &student_id).await;
    let found = found.map_err(|e| request::store_fault(&e))?;
    let (student, mut tasks) = found.ok_or_else(|| request::fault(FaultKind::NotFound))?;
    for submission in tasks.iter_mut().filter_map(|task| task.submission.as_mut()) {
        submission.content.clear();
    }
    Ok((student, tasks))
}

/// One task of a student of the teacher who asks, with the version that is to be shown whole.
///
/// # Errors
/// A [`Fault`] without a teacher's identity, for another one's student or task, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "load_pupil_task")]
pub async fn load_pupil_task(
    student_id: String,
    task_id: String,
    version: Option<i32>,
) -> Result<PupilTask, Fault> {
    use crate::{fault::FaultKind, request};
    let actor = request::require(ssr::is_teacher).await?;
    let engine = request::engine()?;
    let found = engine.pupil_task(&actor, &student_id, &task_id, version);
    let found = found.await.map_err(|e| request::store_fault(&e))?;
    found.ok_or_else(|| request::fault(FaultKind::NotFound))
}

/// Lets a student hand in a task once more, unless the version that the teacher saw is not the current one any more.
///
/// # Errors
/// A [`Fault`] without a teacher's identity, for another one's student or task, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "reopen_task")]
pub async fn reopen_task(
    student_id: String,
    task_id: String,
    seen_version: i32,
) -> Result<TaskView, Fault> {
    use crate::{fault::FaultKind, request};
    let actor = request::require(ssr::is_teacher).await?;
    let engine = request::engine()?;
    let task = engine
        .reopen_task(&actor, &task_id, &student_id, Some(seen_version))
        .await;
    let task = task.map_err(|e| request::store_fault(&e))?;
    let task = task.ok_or_else(|| request::fault(FaultKind::NotFound))?;
    if request::wants_page() {
        let (student, task) = (ssr::digits(&student_id), ssr::digits(&task_id));
        leptos_axum::redirect(&format!("/progress/students/{student}/tasks/{task}"));
    }
    Ok(task)
}

/// An empty form for a new task.
///
/// # Errors
/// A [`Fault`] without a teacher's identity, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "new_task_form")]
pub async fn new_task_form() -> Result<TaskForm, Fault> {
    use crate::request;
    let actor = request::require(ssr::is_teacher).await?;
    let classes = request::engine()?.list_classes(&actor).await;
    Ok(TaskForm {
        classes: classes.map_err(|e| request::store_fault(&e))?,
        key: format!("task_create:{}:{}", actor.id, uuid::Uuid::new_v4()),
    })
}

/// Makes a task and assigns it to a class; answers with the task's id, or why it was refused. `due_local` and `closes_local` are what
/// was typed; `due_at` and `closes_at` the moments that a script made of them, without which they are taken as UTC.
///
/// # Errors
/// A [`Fault`] without a teacher's identity, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "create_task")]
pub async fn create_task(
    key: String,
    class_id: String,
    title: String,
    instructions: String,
    kind: TaskKind,
    due_local: String,
    closes_local: String,
    due_at: String,
    closes_at: String,
) -> Result<Result<String, String>, Fault> {
    use domain::teaching::NewTask;
    let new = NewTask {
        class_id: class_id.clone(),
        title,
        instructions,
        kind,
        due_at: ssr::moment(due_at, &due_local),
        closes_at: ssr::moment(closes_at, &closes_local),
    };
    let made = ssr::create(&key, new).await;
    ssr::send_form_back(&class_id, &made);
    made
}

#[cfg(feature = "ssr")]
mod ssr {
    //! The steps of the functions above that are longer than a line.

    use domain::{IdempotencyKey, ProblemCode, Role, teaching::NewTask, view::StudentFilter};
    use engine::Assigned;

    use super::{Fault, PAGE_STUDENTS, ProgressQuery};
    use crate::{fault::FaultKind, path, request};

    pub(super) fn is_teacher(role: Role) -> bool {
        role == Role::Teacher
    }

    pub(super) fn filter(query: ProgressQuery) -> StudentFilter {
        // A NUL is in no name, and Postgres refuses the question.
        let given = |text: Option<String>| text.filter(|t| !t.is_empty() && !t.contains('\0'));
        StudentFilter {
            q: given(query.q),
            open: given(query.open),
            after: given(query.after),
            limit: Some(PAGE_STUDENTS),
        }
    }

    pub(super) fn digits(id: &str) -> String {
        id.chars().filter(char::is_ascii_digit).collect()
    }

    /// The moment that a script sent, else what was typed, taken as UTC; nothing when nothing was typed.
    pub(super) fn moment(sent: String, typed: &str) -> Option<String> {
        match (sent.is_empty(), typed.is_empty()) {
            (_, true) => None,
            (false, _) => Some(sent),
            // A field for date and time leaves the seconds out when they are zero.
            (true, _) if typed.len() == "2026-12-05T18:00".len() => Some(format!("{typed}:00Z")),
            (true, _) => Some(format!("{typed}Z")),
        }
    }

    pub(super) async fn create(key: &str, new: NewTask) -> Result<Result<String, String>, Fault> {
        let actor = request::require(is_teacher).await?;
        let Ok(key) = IdempotencyKey::from_text(key) else {
            return Ok(Err(ProblemCode::KeyInvalid.to_string()));
        };
        let assigned = request::engine()?.assign_task(&actor, &key, new).await;
        Ok(match assigned.map_err(|e| request::store_fault(&e))? {
            Assigned::New(task) | Assigned::Reused(task) | Assigned::Exists(task) => Ok(task.id),
            Assigned::KeyReused => Err(ProblemCode::KeyReused.to_string()),
            Assigned::NoSuchClass => Err(ProblemCode::NotFound.to_string()),
            Assigned::Invalid(why) => Err(why.as_ref().to_owned()),
        })
    }

    /// The page after the form.
    pub(super) fn send_form_back(class_id: &str, made: &Result<Result<String, String>, Fault>) {
        if !request::wants_page() {
            return;
        }
        let class = digits(class_id);
        match made {
            Ok(Ok(task)) => {
                leptos_axum::redirect(&format!("/progress?class={class}&created={task}"));
            }
            Ok(Err(code)) => leptos_axum::redirect(&format!("/progress/new?refused={code}")),
            Err(fault) if fault.kind == FaultKind::SignedOut => {
                leptos_axum::redirect(&path::sign_in("/progress/new"));
            }
            // The store did not answer: the form is to be sent again, with its key.
            Err(_) => leptos_axum::redirect("/progress/new?refused=failed"),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_was_typed_is_utc_unless_a_script_knew_better() {
            let of = |sent: &str, typed: &str| moment(sent.to_owned(), typed);
            assert_eq!(of("", ""), None);
            assert_eq!(
                of("2026-12-05T10:00:00.000Z", ""),
                None,
                "it was emptied again"
            );
            assert_eq!(
                of("", "2026-12-05T18:00").as_deref(),
                Some("2026-12-05T18:00:00Z")
            );
            assert_eq!(
                of("", "2026-12-05T18:00:30").as_deref(),
                Some("2026-12-05T18:00:30Z")
            );
            let sent = "2026-12-05T10:00:00.000Z";
            assert_eq!(of(sent, "2026-12-05T18:00").as_deref(), Some(sent));
        }
    }
}
