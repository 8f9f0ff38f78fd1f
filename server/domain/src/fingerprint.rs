//! What tells "the same request again" from "another request under the same key".

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::ActionType;

/// SHA-256 of the canonical request: action, route parameters and the body without `client_id`, as RFC 8785 JSON.
///
/// `client_id` is left out because it only says who asks; everything that changes the effect is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Hashes the canonical form of a request that was already checked.
    ///
    /// # Errors
    /// When `canonical_request` cannot be written as JSON, which no checked command does.
    pub fn of(
        action: ActionType,
        canonical_request: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        Self::of_canonical(&(action, canonical_request))
    }

    /// Hashes anything else that has a key of its own, such as a compensation.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn of_canonical(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        let bytes = serde_json_canonicalizer::to_vec(value)?;
        Ok(Self(Sha256::digest(&bytes).into()))
    }

    /// The hash as stored.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads a stored hash; `None` when it has another length.
    pub fn from_stored(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::action::TASK_SUBMIT;

    fn of(action: ActionType, text: &str) -> Fingerprint {
        Fingerprint::of(
            action,
            &serde_json::from_str::<serde_json::Value>(text).expect("json"),
        )
        .expect("canonical")
    }

    #[test]
    fn member_order_white_space_and_escapes_do_not_matter() {
        let plain = of(TASK_SUBMIT, r#"{"a":1,"b":"é"}"#);
        assert_eq!(plain, of(TASK_SUBMIT, "{ \"b\" : \"\\u00e9\",\n \"a\":1 }"));
    }

    #[test]
    fn values_route_and_action_matter() {
        let one = of(TASK_SUBMIT, r#"{"task_id":"1","content":"x"}"#);
        assert_ne!(one, of(TASK_SUBMIT, r#"{"task_id":"1","content":"y"}"#));
        assert_ne!(one, of(TASK_SUBMIT, r#"{"task_id":"2","content":"x"}"#));
        assert_ne!(
            one,
            of(ActionType::new("other"), r#"{"task_id":"1","content":"x"}"#)
        );
    }

    #[test]
    fn stored_form_is_stable() {
        // INVARIANT: records of older versions must still be recognised, so this value may never change.
        let fingerprint = Fingerprint::of(
            TASK_SUBMIT,
            &json!({"task_id": "1", "submit_version": 1, "content": "x"}),
        );
        let hex: String = fingerprint
            .expect("canonical")
            .0
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(
            hex,
            "aeccf02e156687a900e141813eb8bfe7ed289b08d12c9e4b04d7343b821e0f41"
        );
    }
}
