//! `points_redeem`: a student redeems points for a reward that an external provider gives. The points are held from the claim on;
//! the call is marked before it is sent; what nobody knows stays UNKNOWN until the provider or a person says.

use std::time::Duration;

use domain::{
    ActionType, ProblemCode, action::POINTS_REDEEM, command::RedemptionBody, view::RedemptionView,
};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, PgPool};

use super::{
    Action, Call, CallAnswer, ClaimRef, Evidence, Outside, Policy, Probe, Question, ReadError,
    ReadRequest, Verdict, is_id, parameter,
};
use crate::{
    StoreError,
    store::redemption::{self, RedemptionRow},
};

/// The longest key that providers are sure to take, in characters.
const MAX_PROVIDER_KEY: usize = 255;

/// The action.
#[derive(Debug)]
pub(crate) struct PointsRedeem;

/// The command: the route's parameter and the body without `client_id`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    reward_id: String,
    sequence: i32,
}

impl Action for PointsRedeem {
    fn action_type(&self) -> ActionType {
        POINTS_REDEEM
    }

    fn policy(&self) -> Policy {
        Policy {
            local_effects_only: false,
            lease: None,
            second_person: true,
        }
    }

    fn route(&self) -> &'static str {
        "/rewards/{reward_id}/redemptions"
    }

    fn read(&self, parameters: &[(&str, &str)], body: &[u8]) -> Result<ReadRequest, ReadError> {
        let reward_id = parameter(parameters, "reward_id")?;
        let body: RedemptionBody =
            serde_json::from_slice(body).map_err(|e| ReadError::Body(e.to_string()))?;
        body.check().map_err(|e| ReadError::Body(e.to_string()))?;
        let command = Command {
            reward_id,
            sequence: body.sequence,
        };
        let command = serde_json::to_value(command).map_err(|e| ReadError::Body(e.to_string()))?;
        Ok(ReadRequest {
            client_id: body.client_id,
            command,
        })
    }

    fn check(&self, command: Value) -> Result<Value, String> {
        let command: Command = serde_json::from_value(command).map_err(|e| e.to_string())?;
        if !is_id(&command.reward_id) {
            return Err("reward_id is no id".to_owned());
        }
        if command.sequence < 1 {
            return Err("sequence must be 1 or more".to_owned());
        }
        serde_json::to_value(command).map_err(|e| e.to_string())
    }

    fn run_effects<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        claims: &'a [ClaimRef],
    ) -> BoxFuture<'a, Result<Vec<(i64, Verdict)>, StoreError>> {
        Box::pin(async move {
            let mut ordered: Vec<ClaimRef> = claims.to_vec();
            // In the order of ids, as every set locks.
            ordered.sort_unstable_by_key(|claim| claim.record_id);
            let mut verdicts = Vec::with_capacity(ordered.len());
            for claim in ordered {
                if let Some(verdict) = run_effect(connection, claim).await? {
                    verdicts.push((claim.record_id, verdict));
                }
            }
            Ok(verdicts)
        })
    }

    fn find_evidence<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<Evidence, StoreError>> {
        Box::pin(async move {
            if let Some(row) = redemption::find_redemption_of(connection, record_id).await? {
                return Ok(Evidence::Present {
                    by_this_record: row.record_id == Some(record_id),
                    location: location(row.id),
                    body: body(&row),
                });
            }
            let calls = redemption::find_calls(connection, record_id).await?;
            Ok(if calls.happened {
                Evidence::Happened
            } else if calls.open {
                Evidence::NotKnown
            } else {
                Evidence::Absent
            })
        })
    }

    fn complete_effects<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            redemption::insert_redemption(connection, record_id).await?;
            // A hold that is still open belongs to a record whose intent another one fulfilled.
            Ok(redemption::return_hold(connection, record_id).await?)
        })
    }

    fn abandon_effects<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        record_id: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { Ok(redemption::return_hold(connection, record_id).await?) })
    }

    fn outside(&self) -> Option<&'static dyn Outside> {
        Some(&Self)
    }
}

impl Outside for PointsRedeem {
    fn take_hold<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        claim: ClaimRef,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(redemption::insert_hold(connection, claim))
    }

    fn mark_call<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        claim: ClaimRef,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Option<Call>, StoreError>> {
        Box::pin(async move {
            let call = redemption::insert_call(connection, claim, timeout).await?;
            Ok(call.map(|call| Call {
                key: provider_key(call.student_id, &call.idem_key),
                body: json!({
                    "reward_id": call.reward_id.to_string(),
                    "student_id": call.student_id.to_string(),
                    "points": call.points,
                }),
            }))
        })
    }

    fn store_answer<'a>(
        &'a self,
        pool: &'a PgPool,
        claim: ClaimRef,
        answer: &'a CallAnswer,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (word, detail) = match answer {
                CallAnswer::Done => ("done", ""),
                CallAnswer::Refused(detail) => ("refused", detail.as_str()),
                CallAnswer::Unclear(detail) => ("unclear", detail.as_str()),
                CallAnswer::NotSent => ("not_sent", "it was too late to send it"),
            };
            let (id, epoch) = (claim.record_id, claim.epoch);
            Ok(redemption::update_call_answer(pool, id, epoch, word, detail).await?)
        })
    }

    fn claim_question<'a>(
        &'a self,
        pool: &'a PgPool,
        record_id: i64,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Option<Question>, StoreError>> {
        Box::pin(async move {
            let asked = redemption::claim_question(pool, record_id, patience).await?;
            Ok(asked.map(|asked| Question {
                key: provider_key(asked.subject_id, &asked.idem_key),
                epoch: asked.epoch,
                trace_id: asked.trace_id,
            }))
        })
    }

    fn store_probe<'a>(
        &'a self,
        pool: &'a PgPool,
        instance_id: i32,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { Ok(redemption::insert_probe(pool, instance_id, probe).await?) })
    }
}

/// What one claim comes to, by what is known about its call.
async fn run_effect(
    connection: &mut PgConnection,
    claim: ClaimRef,
) -> Result<Option<Verdict>, StoreError> {
    let Some(intent) = redemption::lock_guard(connection, claim).await? else {
        return Ok(None);
    };
    let id = claim.record_id;
    let calls = redemption::find_calls(connection, id).await?;
    if let Some(row) = redemption::find_redemption_of(connection, id).await? {
        redemption::return_hold(connection, id).await?;
        return Ok(Some(Verdict::ConflictSame {
            body: body(&row),
            location: location(row.id),
        }));
    }
    if calls.happened {
        redemption::insert_redemption(connection, id).await?;
        let row = redemption::find_redemption_of(connection, id).await?;
        let row = row.ok_or_else(|| StoreError::Corrupt("a redemption vanished".into()))?;
        return Ok(Some(Verdict::Done {
            status: 201,
            body: body(&row),
            location: location(row.id),
        }));
    }
    if calls.open {
        return Ok(Some(Verdict::NotKnown));
    }
    // First the points come back, so that what is missing is not what was held.
    redemption::return_hold(connection, id).await?;
    let obstacle = redemption::find_obstacle(connection, id, intent).await?;
    Ok(Some(if calls.refused {
        refused(ProblemCode::RewardRefused)
    } else if !obstacle.reward_exists {
        refused(ProblemCode::RewardNotFound)
    } else if obstacle.in_progress {
        Verdict::ConflictOther {
            code: ProblemCode::RedemptionInProgress,
            location: None,
        }
    } else if !obstacle.is_next {
        refused(ProblemCode::SequenceNotCurrent)
    } else if !obstacle.has_points {
        refused(ProblemCode::InsufficientPoints)
    } else {
        // It was not sent in time, or the points came only just now.
        Verdict::Passing
    }))
}

const fn refused(code: ProblemCode) -> Verdict {
    Verdict::Refused { code }
}

fn body(row: &RedemptionRow) -> String {
    serde_json::to_string(&RedemptionView::from(row.clone()))
        .expect("a view of strings and numbers is always JSON")
}

fn location(id: i64) -> String {
    format!("/api/v1/redemptions/{id}")
}

/// The key that the provider knows a record by: the caller's, made unique by the student, since two students may choose the same.
fn provider_key(student_id: i64, key: &str) -> String {
    let readable = format!("{student_id}:{key}");
    if readable.len() <= MAX_PROVIDER_KEY {
        return readable;
    }
    let hash = Sha256::digest(key.as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{student_id}:{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_key_is_unique_and_short_enough() {
        assert_eq!(provider_key(7, "a b"), "7:a b");
        let long = provider_key(7, &"x".repeat(255));
        assert_eq!(long.len(), 66);
        assert_ne!(long, provider_key(8, &"x".repeat(255)));
        assert_ne!(long, provider_key(7, &"y".repeat(255)));
    }
}
