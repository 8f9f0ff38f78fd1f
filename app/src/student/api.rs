//! The student's server functions. A refusal is a value of the reply: a status would break the form without JavaScript.

use domain::{
    Bucket, RecordState,
    view::{AttemptView, SubmissionView, TaskView},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// The tasks of a student.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskList {
    /// Every task, without the texts that were handed in.
    pub tasks: Vec<TaskView>,
    /// The student's points.
    pub points: i64,
    /// The account that asks.
    pub student_id: String,
}

/// One task, with what a form needs that has no JavaScript to build its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPage {
    /// The task.
    pub task: TaskView,
    /// What was handed in, newest first.
    pub attempts: Vec<AttemptView>,
    /// The submission that the address asks for.
    pub shown: Option<SubmissionView>,
    /// The account that asks.
    pub student_id: String,
    /// The installation of this browser.
    pub client_id: String,
    /// Which intent of this person the form is.
    pub ordinal: u32,
    /// The key of that intent.
    pub key: String,
    /// What became of the request that a plain form sent just before, if that is how the page was reached.
    pub asked: Option<Asked>,
}

/// What became of the request that the page's address names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Its key.
    pub key: String,
    /// What the store knows of it; `None`: it never arrived.
    pub status: Option<Outcome>,
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The state of its record.
    pub state: RecordState,
    /// How much longer its owner is presumed alive, in milliseconds.
    pub lease_remaining_ms: Option<i64>,
    /// The submission, once it is done.
    pub submission: Option<SubmissionView>,
    /// Why it was refused.
    pub code: Option<String>,
}

/// The answer to one press of the button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitReply {
    /// The arrival's bucket; absent when the request was refused before it counted as one.
    pub bucket: Option<Bucket>,
    /// The status that the API would answer with.
    pub status: u16,
    /// The submission, once it is done.
    pub submission: Option<SubmissionView>,
    /// Why it is not done.
    pub code: Option<String>,
    /// The same in a sentence, for reports.
    pub detail: Option<String>,
    /// When to ask again, in seconds.
    pub retry_after: Option<u32>,
}

/// The tasks and points of the student who asks.
///
/// # Errors
/// A [`Fault`] without a student's identity, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "list_tasks")]
pub async fn list_tasks() -> Result<TaskList, Fault> {
    use crate::request;
    let actor = request::require(ssr::is_student).await?;
    let engine = request::engine()?;
    let mut tasks = engine
        .list_tasks(&actor)
        .await
        .map_err(|e| request::store_fault(&e))?;
    for submission in tasks.iter_mut().filter_map(|task| task.submission.as_mut()) {
        submission.content.clear();
    }
    let points = engine
        .points_balance(&actor)
        .await
        .map_err(|e| request::store_fault(&e))?;
    Ok(TaskList {
        tasks,
        points,
        student_id: actor.id.to_string(),
    })
}

/// One task, what became of the `request` that a plain form has just sent, and the `attempt` that is to be shown whole.
///
/// # Errors
/// A [`Fault`] without a student's identity, for another one's task, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "load_task")]
pub async fn load_task(
    task_id: String,
    request: Option<String>,
    attempt: Option<String>,
) -> Result<TaskPage, Fault> {
    use crate::{fault::FaultKind, request as req};
    let actor = req::require(ssr::is_student).await?;
    let engine = req::engine()?;
    let task = engine
        .find_task(&actor, &task_id)
        .await
        .map_err(|e| req::store_fault(&e))?;
    let task = task.ok_or_else(|| req::fault(FaultKind::NotFound))?;
    let asked = match request {
        Some(key) => Some(Asked {
            status: ssr::status_of(&engine, &actor, &key).await?,
            key,
        }),
        None => None,
    };
    let attempts = engine.list_submissions(&actor, &task_id).await;
    let attempts = attempts.map_err(|e| req::store_fault(&e))?;
    let shown = match attempts.iter().find(|a| Some(&a.id) == attempt.as_ref()) {
        Some(attempt) => engine
            .find_submission(&actor, &attempt.id)
            .await
            .map_err(|e| req::store_fault(&e))?,
        None => None,
    };
    let page = ssr::page(task, actor.id.to_string(), req::client_id(), asked);
    Ok(TaskPage {
        attempts,
        shown,
        ..page
    })
}

/// Hands in one version of a task. A plain form is sent back to the task's page, which says what became of it.
///
/// # Errors
/// A [`Fault`] without the identity of the student whose page it is (on a shared device somebody else may have signed in since: one's
/// text must not go in under the other's name), or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "submit_task")]
pub async fn submit_task(
    task_id: String,
    student_id: String,
    submit_version: i32,
    client_id: String,
    key: String,
    content: String,
) -> Result<SubmitReply, Fault> {
    let body = domain::command::SubmissionBody {
        submit_version,
        client_id,
        content: ssr::line_feeds(&content),
    };
    let reply = ssr::submit(&task_id, &student_id, body, &key).await;
    ssr::send_form_back(&task_id, &key, &reply);
    reply
}

/// What became of a request of the student who asks; `None`: it never arrived.
///
/// # Errors
/// A [`Fault`] without a student's identity, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "request_status")]
pub async fn request_status(key: String) -> Result<Option<Outcome>, Fault> {
    let actor = crate::request::require(ssr::is_student).await?;
    ssr::status_of(&crate::request::engine()?, &actor, &key).await
}

#[cfg(feature = "ssr")]
mod ssr {
    //! The steps of the functions above that are longer than a line.

    use std::time::Duration;

    use domain::{
        IdempotencyKey, ProblemCode, Role,
        action::TASK_SUBMIT,
        command::SubmissionBody,
        key::task_submit_key,
        phase::ANSWER_TIMEOUT_MS,
        problem::{OUTAGE_RETRY_AFTER_SECONDS, Problem},
        view::{SubmissionView, TaskView},
    };
    use engine::{Actor, Answer, Arrival, Engine, SubmitError};

    use super::{Asked, Fault, Outcome, SubmitReply, TaskPage};
    use crate::{fault::FaultKind, request};

    /// How long a duplicate waits for the running execution: it must be answered before its page calls the result unknown.
    const WAIT: Duration = Duration::from_millis(ANSWER_TIMEOUT_MS as u64 - 1_000);

    /// How many refusals of one version are looked through for the next free ordinal.
    const MAX_ORDINAL: u32 = 1_000;

    pub(super) fn is_student(role: Role) -> bool {
        role == Role::Student
    }

    /// A form sends CR LF for each line break, a script LF; both must be one content.
    pub(super) fn line_feeds(content: &str) -> String {
        content.replace("\r\n", "\n").replace('\r', "\n")
    }

    pub(super) async fn submit(
        task_id: &str,
        student_id: &str,
        body: SubmissionBody,
        key: &str,
    ) -> Result<SubmitReply, Fault> {
        let actor = request::require(is_student).await?;
        if actor.id.to_string() != student_id {
            return Err(request::fault(FaultKind::SignedOut));
        }
        if let Err(invalid) = body.check() {
            return Ok(refused(ProblemCode::InvalidBody, invalid.to_string()));
        }
        let key = match IdempotencyKey::from_text(key) {
            Ok(key) => key,
            Err(invalid) => return Ok(refused(ProblemCode::KeyInvalid, invalid.to_string())),
        };
        let arrival = Arrival {
            action: TASK_SUBMIT,
            key,
            command: serde_json::json!({
                "task_id": task_id,
                "submit_version": body.submit_version,
                "content": body.content,
            }),
            client_id: body.client_id,
            trace_id: request::trace_id().unwrap_or_default(),
            wait: WAIT,
        };
        match request::engine()?.submit(&actor, arrival).await {
            Ok(answer) => Ok(reply(answer)),
            Err(SubmitError::InvalidCommand(detail)) => {
                Ok(refused(ProblemCode::InvalidBody, detail))
            }
            // Nothing was accepted, and it passes.
            Err(SubmitError::FrontLockUnavailable | SubmitError::Stopping) => Ok(come_again()),
            Err(error) => Err(request::store_fault(&error)),
        }
    }

    fn come_again() -> SubmitReply {
        SubmitReply {
            bucket: None,
            status: ProblemCode::StoreUnavailable.status(),
            submission: None,
            code: None,
            detail: None,
            retry_after: Some(OUTAGE_RETRY_AFTER_SECONDS),
        }
    }

    fn refused(code: ProblemCode, detail: String) -> SubmitReply {
        SubmitReply {
            bucket: None,
            status: code.status(),
            submission: None,
            code: Some(code.to_string()),
            detail: Some(detail),
            retry_after: None,
        }
    }

    fn reply(answer: Answer) -> SubmitReply {
        let done = matches!(answer.status, 200 | 201);
        let problem = (answer.status >= 400)
            .then(|| serde_json::from_str::<Problem>(&answer.body).ok())
            .flatten();
        let (code, detail) = problem.map(|p| (p.code, p.detail)).unzip();
        SubmitReply {
            bucket: Some(answer.bucket),
            status: answer.status,
            submission: done
                .then(|| serde_json::from_str(&answer.body).ok())
                .flatten(),
            code,
            detail,
            retry_after: answer.retry_after,
        }
    }

    /// Answers a form that no script sent.
    pub(super) fn send_form_back(task_id: &str, key: &str, reply: &Result<SubmitReply, Fault>) {
        if !request::wants_page() {
            return;
        }
        let signed_out = matches!(reply, Err(fault) if fault.kind == FaultKind::SignedOut);
        if signed_out {
            let next = format!("/tasks/{}", plain_id(task_id));
            leptos_axum::redirect(&crate::path::sign_in(&next));
            return;
        }
        // What is put into the address was checked or is escaped: it goes into a header.
        let task = plain_id(task_id);
        let refused_unread = match reply {
            Ok(SubmitReply {
                bucket: None,
                code: Some(code),
                ..
            }) => Some(code),
            _ => None,
        };
        let query = match (refused_unread, IdempotencyKey::from_text(key)) {
            (Some(code), _) => format!("refused={code}"),
            (None, Ok(key)) => format!("request={}", key.to_path_segment()),
            (None, Err(_)) => String::new(),
        };
        leptos_axum::redirect(&format!("/tasks/{task}?{query}"));
    }

    fn plain_id(id: &str) -> String {
        id.chars().filter(char::is_ascii_alphanumeric).collect()
    }

    pub(super) async fn status_of(
        engine: &Engine,
        actor: &Actor,
        key: &str,
    ) -> Result<Option<Outcome>, Fault> {
        let Ok(key) = IdempotencyKey::from_text(key) else {
            return Ok(None);
        };
        let found = engine.find_request(actor, TASK_SUBMIT.as_str(), &key).await;
        let found = found.map_err(|e| request::store_fault(&e))?;
        Ok(found.map(|view| {
            let body = view.response.map(|response| response.body);
            let code = body
                .as_ref()
                .and_then(|body| Some(body.get("code")?.as_str()?.to_owned()));
            Outcome {
                state: view.state,
                lease_remaining_ms: view.lease_remaining_ms,
                submission: body.and_then(|b| serde_json::from_value::<SubmissionView>(b).ok()),
                code,
            }
        }))
    }

    /// The page, with the key of the intent that the form begins: the next one after a refusal that the page shows.
    pub(super) fn page(
        task: TaskView,
        student_id: String,
        client_id: String,
        asked: Option<Asked>,
    ) -> TaskPage {
        let key = |n| task_submit_key(&task.id, &student_id, task.submit_version, &client_id, n);
        let refused = asked
            .as_ref()
            .filter(|asked| asked.status.as_ref().is_some_and(|s| s.code.is_some()))
            .filter(|asked| asked.status.as_ref().is_some_and(|s| s.state.is_terminal()));
        let ordinal = refused
            .and_then(|asked| (1..MAX_ORDINAL).find(|n| key(*n) == asked.key))
            .map_or(1, |n| n + 1);
        let key = key(ordinal);
        TaskPage {
            task,
            attempts: Vec::new(),
            shown: None,
            student_id,
            client_id,
            ordinal,
            key,
            asked,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_form_and_a_script_send_the_same_content() {
            assert_eq!(line_feeds("a\r\nb\rc\n"), "a\nb\nc\n");
        }
    }
}
