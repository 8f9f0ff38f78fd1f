//! The bodies of requests that change something, as clients send them.

use serde::{Deserialize, Serialize};

/// The longest `client_id` in characters: room for any installation's name, and no more than a table's cell shows.
pub const MAX_CLIENT_ID_CHARS: usize = 128;

/// The body of `POST /api/v1/tasks/{task_id}/submissions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubmissionBody {
    /// The version that the task's detail gave, sent back as it is.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub submit_version: i32,
    /// Which installation of a client asks; it says who asks and changes nothing.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub client_id: String,
    /// The work that is handed in.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub content: String,
}

/// The body of `POST /api/v1/rewards/{reward_id}/redemptions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedemptionBody {
    /// Which installation of a client asks; it says who asks and changes nothing.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
    pub client_id: String,
    /// The how many-th purchase of this reward it is to be, as the list of rewards gave it.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub sequence: i32,
}

impl RedemptionBody {
    /// Checks the values.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), InvalidBody> {
        check_client_id(&self.client_id)?;
        if self.sequence < 1 {
            return Err(InvalidBody::Sequence);
        }
        Ok(())
    }
}

/// What is wrong with a body whose members have the right types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBody {
    /// Versions count from 1.
    #[error("submit_version must be 1 or more")]
    Version,
    /// Sequences count from 1.
    #[error("sequence must be 1 or more")]
    Sequence,
    /// See [`check_client_id`].
    #[error("client_id must have 1 to {MAX_CLIENT_ID_CHARS} characters and no control character")]
    ClientId,
    /// Nothing was handed in.
    #[error("content must not be blank")]
    BlankContent,
    /// Postgres's text cannot hold it, and no client means it.
    #[error("content must not contain the NUL character")]
    Nul,
}

impl SubmissionBody {
    /// Checks the values.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), InvalidBody> {
        check_client_id(&self.client_id)?;
        check_submission(self.submit_version, &self.content)
    }
}

/// Checks what is handed in.
///
/// # Errors
/// The first rule that is broken.
pub fn check_submission(submit_version: i32, content: &str) -> Result<(), InvalidBody> {
    if submit_version < 1 {
        return Err(InvalidBody::Version);
    }
    if content.contains('\0') {
        return Err(InvalidBody::Nul);
    }
    if content.trim().is_empty() {
        return Err(InvalidBody::BlankContent);
    }
    Ok(())
}

/// Checks that a client's name can be shown and logged.
///
/// # Errors
/// [`InvalidBody::ClientId`] unless it has 1 to 128 characters, none of them a control character.
pub fn check_client_id(client_id: &str) -> Result<(), InvalidBody> {
    let fits = (1..=MAX_CLIENT_ID_CHARS).contains(&client_id.chars().count());
    if fits && !client_id.contains(char::is_control) {
        Ok(())
    } else {
        Err(InvalidBody::ClientId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SubmissionBody, String> {
        let body: SubmissionBody = serde_json::from_str(text).map_err(|e| e.to_string())?;
        body.check().map_err(|e| e.to_string())?;
        Ok(body)
    }

    #[test]
    fn a_good_body_is_taken_as_it_is() {
        let body =
            parse(r#"{"client_id":"c","content":" 你好\n","submit_version":3}"#).expect("good");
        assert_eq!((body.submit_version, body.content.as_str()), (3, " 你好\n"));
    }

    #[test]
    fn bad_bodies_are_refused() {
        for text in [
            r#"{"submit_version":1,"client_id":"c","content":"x","more":1}"#,
            r#"{"submit_version":1,"client_id":"c"}"#,
            r#"{"submit_version":1.0,"client_id":"c","content":"x"}"#,
            r#"{"submit_version":"1","client_id":"c","content":"x"}"#,
            r#"{"submit_version":99999999999,"client_id":"c","content":"x"}"#,
            r#"{"submit_version":0,"client_id":"c","content":"x"}"#,
            r#"{"submit_version":1,"submit_version":1,"client_id":"c","content":"x"}"#,
            r#"{"submit_version":1,"client_id":"","content":"x"}"#,
            r#"{"submit_version":1,"client_id":"a\nb","content":"x"}"#,
            r#"{"submit_version":1,"client_id":"c","content":null}"#,
            r#"{"submit_version":1,"client_id":"c","content":" \n"}"#,
            r#"{"submit_version":1,"client_id":"c","content":"a\u0000"}"#,
            r#"{"submit_version":1,"client_id":"c","content":"\ud800"}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
