//! What admins do: plain forms that need no script. Each carries a key, so pressed twice it is done once, and each ends on the page
//! that says what became of it.

use domain::compensation::{CompensationAction, Decision};
use leptos::prelude::*;

use crate::fault::Fault;

/// Does something about one record.
///
/// # Errors
/// A [`Fault`] without the identity of an admin.
#[server(prefix = "/api/fn", endpoint = "compensate")]
pub async fn compensate(
    record: String,
    action: CompensationAction,
    reason: String,
    expected_version: i64,
    key: String,
) -> Result<(), Fault> {
    let actor = crate::request::require(|role| role == domain::Role::Admin).await?;
    let said =
        ssr::compensate(actor, record.clone(), action, reason, expected_version, key).await?;
    ssr::go(&format!("/records/{}?{said}#done", ssr::id(&record)));
    Ok(())
}

/// Decides, as the second person.
///
/// # Errors
/// A [`Fault`] without the identity of an admin.
#[server(prefix = "/api/fn", endpoint = "decide")]
pub async fn decide(compensation: String, decision: Decision, reason: String) -> Result<(), Fault> {
    let actor = crate::request::require(|role| role == domain::Role::Admin).await?;
    let said = ssr::decide(actor, &compensation, decision, &reason).await?;
    ssr::go(&format!("/approvals?{said}#done"));
    Ok(())
}

/// Does one thing about many records; `ids` are parted by commas.
///
/// # Errors
/// A [`Fault`] without the identity of an admin.
#[server(prefix = "/api/fn", endpoint = "start_bulk")]
pub async fn start_bulk(
    ids: String,
    action: CompensationAction,
    reason: String,
    key: String,
) -> Result<(), Fault> {
    let actor = crate::request::require(|role| role == domain::Role::Admin).await?;
    ssr::go(&ssr::start_bulk(actor, &ids, action, &reason, &key).await?);
    Ok(())
}

/// Lets a dead letter of a record be delivered again.
///
/// # Errors
/// A [`Fault`] without the identity of an admin.
#[server(prefix = "/api/fn", endpoint = "replay_message")]
pub async fn replay_message(record: String, message: String, reason: String) -> Result<(), Fault> {
    let actor = crate::request::require(|role| role == domain::Role::Admin).await?;
    let said = ssr::replay(actor, &message, &reason).await?;
    ssr::go(&format!("/records/{}?{said}#done", ssr::id(&record)));
    Ok(())
}

#[cfg(feature = "ssr")]
mod ssr {
    use axum::http::request::Parts;
    use domain::{
        IdempotencyKey,
        compensation::{CompensationAction, Decision},
        view::CompensationAnswer,
    };
    use engine::{
        Actor, BulkError, BulkTarget, Compensate, CompensateError, Origin, Replayed, Requester,
    };
    use leptos::prelude::*;

    use crate::{fault::Fault, request};

    /// Sends the reader on.
    pub(super) fn go(path: &str) {
        leptos_axum::redirect(path);
    }

    /// An id as it may stand in an address.
    pub(super) fn id(text: &str) -> String {
        text.chars().filter(char::is_ascii_digit).collect()
    }

    pub(super) async fn compensate(
        actor: Actor,
        record_id: String,
        action: CompensationAction,
        reason: String,
        expected_version: i64,
        key: String,
    ) -> Result<String, Fault> {
        let Ok(key) = IdempotencyKey::from_text(&key) else {
            return Ok("error=key".to_owned());
        };
        let asked = Compensate {
            record_id,
            action,
            reason,
            expected_version: Some(expected_version),
            key,
        };
        said(
            request::engine()?
                .compensate(&requester(actor), asked)
                .await,
        )
    }

    pub(super) async fn decide(
        actor: Actor,
        compensation: &str,
        decision: Decision,
        reason: &str,
    ) -> Result<String, Fault> {
        let requester = requester(actor);
        let engine = request::engine()?;
        said(
            engine
                .decide(&requester, compensation, decision, reason)
                .await,
        )
    }

    /// Where the bulk, or why there is none, can be read.
    pub(super) async fn start_bulk(
        actor: Actor,
        ids: &str,
        action: CompensationAction,
        reason: &str,
        key: &str,
    ) -> Result<String, Fault> {
        let back = |code: &str| {
            let ids: Vec<String> = ids
                .split(',')
                .map(|one| format!("&id={}", id(one)))
                .collect();
            format!("/bulks/new?error={code}{}#done", ids.concat())
        };
        let Ok(key) = IdempotencyKey::from_text(key) else {
            return Ok(back("key"));
        };
        let target = BulkTarget::Ids(ids.split(',').map(str::to_owned).collect());
        let engine = request::engine()?;
        let requester = requester(actor);
        let started = engine.start_bulk(&requester, target, action, reason, &key);
        match started.await {
            Ok(bulk) => Ok(format!("/bulks/{}", bulk.id)),
            Err(BulkError::Compensate(error)) => Ok(back(code(error)?)),
            Err(BulkError::InvalidId(_) | BulkError::InvalidSize) => Ok(back("size")),
        }
    }

    pub(super) async fn replay(actor: Actor, message: &str, reason: &str) -> Result<String, Fault> {
        let engine = request::engine()?;
        let replayed = engine
            .replay_message(&requester(actor), message, reason)
            .await;
        match replayed {
            Ok(Replayed::Done) => Ok("replayed=1".to_owned()),
            Ok(Replayed::NotDead) => Ok("error=not-dead".to_owned()),
            Err(error) => Ok(format!("error={}", code(error)?)),
        }
    }

    fn requester(actor: Actor) -> Requester {
        let origin = use_context::<Parts>().and_then(|parts| parts.extensions.get().cloned());
        Requester {
            actor: Some(actor),
            origin: origin.map_or_else(String::new, |Origin(origin)| origin),
            trace_id: request::trace_id().unwrap_or_default(),
        }
    }

    /// What became of it, as a query.
    fn said(answer: Result<CompensationAnswer, CompensateError>) -> Result<String, Fault> {
        match answer {
            Ok(answer) => Ok(format!("done={}", answer.compensation.id)),
            Err(error) => Ok(format!("error={}", code(error)?)),
        }
    }

    /// What a person can mend, by a word; what nobody here can is a fault.
    fn code(error: CompensateError) -> Result<&'static str, Fault> {
        Ok(match error {
            CompensateError::Store(error) => return Err(request::store_fault(&error)),
            CompensateError::Stopping => "stopping",
            CompensateError::Forbidden | CompensateError::Nameless => "forbidden",
            CompensateError::NotFound => "gone",
            CompensateError::KeyReused => "key",
            CompensateError::InvalidReason => "reason",
            CompensateError::SecondPersonNeeded => "second-person",
            CompensateError::AlreadyDecided(_) => "decided",
        })
    }
}
