//! The server functions of the rewards page. A redemption is a plain form: its key is made by the server out of the sequence, so
//! every press, reload and way back is the same intent until it is decided.

use domain::{
    RecordState,
    view::{RedemptionView, RewardView},
};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// The rewards, what the student has, and what became of the redemption that was asked for just before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewardPage {
    /// Every reward, with the form that redeems it.
    pub rewards: Vec<RewardForm>,
    /// The student's points.
    pub points: i64,
    /// What was redeemed, newest first.
    pub redemptions: Vec<RedemptionView>,
    /// What became of the request that was asked about; without one, of the oldest that is undecided on any device.
    pub asked: Option<AskedRedemption>,
}

/// A reward with what its form sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewardForm {
    /// The reward.
    pub reward: RewardView,
    /// The installation of this browser.
    pub client_id: String,
    /// The key of the next redemption.
    pub key: String,
    /// Whether one is undecided already: its points are held.
    pub is_undecided: bool,
}

/// What became of one redemption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedRedemption {
    /// Its key.
    pub key: String,
    /// The state of its record; `None`: it never arrived.
    pub state: Option<RecordState>,
    /// Why it was refused.
    pub code: Option<String>,
}

/// The rewards of the student who asks, and what became of the `request` that was sent just before.
///
/// # Errors
/// A [`Fault`] without a student's identity, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "load_rewards")]
pub async fn load_rewards(request: Option<String>) -> Result<RewardPage, Fault> {
    use crate::request as req;
    let actor = req::require(ssr::is_student).await?;
    ssr::page(&req::engine()?, &actor, request)
        .await
        .map_err(|e| req::store_fault(&e))
}

/// Redeems a reward, and sends a plain form to the page that says what became of it. `Some` is why nothing was accepted.
///
/// # Errors
/// A [`Fault`] without a student's identity, or when the store cannot answer.
#[server(prefix = "/api/fn", endpoint = "redeem_reward")]
pub async fn redeem_reward(
    reward_id: String,
    sequence: i32,
    client_id: String,
    key: String,
) -> Result<Option<String>, Fault> {
    let answered = ssr::redeem(&reward_id, sequence, client_id, &key).await;
    ssr::send_form_back(&key, &answered);
    answered.map(|refused| refused.map(|code| code.to_string()))
}

#[cfg(feature = "ssr")]
mod ssr {
    //! The steps of the functions above that are longer than a line.

    use std::time::Duration;

    use domain::{
        IdempotencyKey, ProblemCode, RecordState, Role, action::POINTS_REDEEM,
        command::RedemptionBody, key::points_redeem_key,
    };
    use engine::{Actor, Arrival, Engine, StoreError, SubmitError};

    use super::{AskedRedemption, Fault, RewardForm, RewardPage};
    use crate::{fault::FaultKind, request};

    /// How many refusals of one sequence are looked through for the next free ordinal.
    const MAX_ORDINAL: u32 = 1_000;

    pub(super) fn is_student(role: Role) -> bool {
        role == Role::Student
    }

    pub(super) async fn page(
        engine: &Engine,
        actor: &Actor,
        request: Option<String>,
    ) -> Result<RewardPage, StoreError> {
        let open = engine.list_open_redemptions(actor).await?;
        let asked = match request.or_else(|| Some(open.first()?.key.clone())) {
            Some(key) => Some(asked(engine, actor, key).await?),
            None => None,
        };
        let client_id = request::client_id();
        let student = actor.id.to_string();
        let rewards = engine.list_rewards(actor).await?;
        let form = |reward: domain::view::RewardView| {
            let key =
                |n| points_redeem_key(&reward.id, &student, reward.next_sequence, &client_id, n);
            // After a refusal that this page shows, the next press is a new intent.
            let is_final = |asked: &&AskedRedemption| asked.state == Some(RecordState::FailedFinal);
            let refused = asked.as_ref().filter(is_final);
            let ordinal = refused
                .and_then(|asked| (1..MAX_ORDINAL).find(|n| key(*n) == asked.key))
                .map_or(1, |n| n + 1);
            RewardForm {
                key: key(ordinal),
                client_id: client_id.clone(),
                is_undecided: open.iter().any(|open| open.reward_id == reward.id),
                reward,
            }
        };
        Ok(RewardPage {
            rewards: rewards.into_iter().map(form).collect(),
            points: engine.points_balance(actor).await?,
            redemptions: engine.list_redemptions(actor).await?,
            asked,
        })
    }

    async fn asked(
        engine: &Engine,
        actor: &Actor,
        key: String,
    ) -> Result<AskedRedemption, StoreError> {
        let found = match IdempotencyKey::from_text(&key) {
            Ok(key) => {
                engine
                    .find_request(actor, POINTS_REDEEM.as_str(), &key)
                    .await?
            }
            Err(_) => None,
        };
        let code = found.as_ref().and_then(|view| {
            let body = &view.response.as_ref()?.body;
            Some(body.get("code")?.as_str()?.to_owned())
        });
        Ok(AskedRedemption {
            key,
            state: found.map(|view| view.state),
            code,
        })
    }

    /// Redeems; `Some` is why nothing was accepted.
    pub(super) async fn redeem(
        reward_id: &str,
        sequence: i32,
        client_id: String,
        key: &str,
    ) -> Result<Option<ProblemCode>, Fault> {
        let actor = request::require(is_student).await?;
        let body = RedemptionBody {
            client_id,
            sequence,
        };
        let (Ok(()), Ok(key)) = (body.check(), IdempotencyKey::from_text(key)) else {
            return Ok(Some(ProblemCode::InvalidBody));
        };
        let arrival = Arrival {
            action: POINTS_REDEEM,
            key,
            command: serde_json::json!({ "reward_id": reward_id, "sequence": body.sequence }),
            client_id: body.client_id,
            trace_id: request::trace_id().unwrap_or_default(),
            wait: Duration::ZERO,
        };
        match request::engine()?.submit(&actor, arrival).await {
            Ok(_) => Ok(None),
            Err(SubmitError::NoProvider) => Ok(Some(ProblemCode::RewardsUnavailable)),
            Err(SubmitError::InvalidCommand(_)) => Ok(Some(ProblemCode::InvalidBody)),
            // Nothing was accepted, and it passes: the page comes again.
            Err(SubmitError::FrontLockUnavailable | SubmitError::Stopping) => {
                Err(request::fault(FaultKind::Failed))
            }
            Err(error) => Err(request::store_fault(&error)),
        }
    }

    /// The page after the form, which a reload does not send again.
    pub(super) fn send_form_back(key: &str, answered: &Result<Option<ProblemCode>, Fault>) {
        if !request::wants_page() {
            return;
        }
        let query = match (answered, IdempotencyKey::from_text(key)) {
            (Err(fault), _) if fault.kind == FaultKind::SignedOut => {
                leptos_axum::redirect("/");
                return;
            }
            (Ok(Some(code)), _) => format!("refused={code}"),
            (_, Ok(key)) => format!("request={}", key.to_path_segment()),
            (_, Err(_)) => String::new(),
        };
        leptos_axum::redirect(&format!("/rewards?{query}"));
    }
}
