//! The grammar of idempotency keys.
//!
//! The header field is the one of the IETF draft "The Idempotency-Key HTTP Header Field" (draft-ietf-httpapi-idempotency-key-header),
//! read as an RFC 8941 string, with the bare text permitted too.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::ActionType;

/// The longest key in characters; more than about 2,700 random bytes would not fit a btree row.
pub const MAX_KEY_CHARS: usize = 255;

/// Everything but RFC 3986's unreserved characters is escaped in a path.
const PATH_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The caller's name for one business intent: 1 to 255 printable ASCII characters, spaces only inside.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct IdempotencyKey(String);

/// Why a text is no idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// Nothing between the quotes, or nothing at all.
    #[error("the key is empty")]
    Empty,
    /// More than [`MAX_KEY_CHARS`].
    #[error("the key is longer than {MAX_KEY_CHARS} characters")]
    TooLong,
    /// A character outside printable ASCII, or a space at an end.
    #[error(
        "the key has a character that is not printable ASCII, or a space at its beginning or end"
    )]
    Character,
    /// Begins with a quotation mark but is not one whole RFC 8941 string.
    #[error("the key begins with a quotation mark but is not a well-formed quoted string")]
    Quoting,
}

impl IdempotencyKey {
    /// Reads the value of an `Idempotency-Key` header field: an RFC 8941 string or the bare text, the same key either way.
    ///
    /// # Errors
    /// [`InvalidKey`] says which rule is broken.
    pub fn from_header(value: &[u8]) -> Result<Self, InvalidKey> {
        let text = std::str::from_utf8(value).map_err(|_| InvalidKey::Character)?;
        let text = text.trim_matches([' ', '\t']);
        if text.starts_with('"') {
            Self::from_text(&unquote(text)?)
        } else {
            Self::from_text(text)
        }
    }

    /// Takes the key's own text, without any quoting, as it stands in a path, a form field or a table.
    ///
    /// # Errors
    /// [`InvalidKey`] says which rule is broken.
    pub fn from_text(text: &str) -> Result<Self, InvalidKey> {
        if text.is_empty() {
            return Err(InvalidKey::Empty);
        }
        if text.chars().any(|c| !matches!(c, ' '..='~'))
            || text.starts_with(' ')
            || text.ends_with(' ')
        {
            return Err(InvalidKey::Character);
        }
        if text.len() > MAX_KEY_CHARS {
            return Err(InvalidKey::TooLong);
        }
        Ok(Self(text.to_owned()))
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a log may say of it: the first 16 hexadecimal digits of its SHA-256.
    pub fn hash(&self) -> String {
        Sha256::digest(self.0.as_bytes())[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// The key as one segment of a path.
    pub fn to_path_segment(&self) -> String {
        utf8_percent_encode(&self.0, PATH_ESCAPES).to_string()
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where the state of a request can be asked for.
pub fn request_location(key: &IdempotencyKey, action: ActionType) -> String {
    format!("/api/v1/requests/{}?action={action}", key.to_path_segment())
}

/// Builds the recommended key of a submission; `ordinal` counts the intents of one person, 1 being the first.
///
/// The parts are the articles' "business dimension + client instance + submit version"; a retry repeats them all.
pub fn task_submit_key(
    task_id: &str,
    student_id: &str,
    submit_version: i32,
    client_id: &str,
    ordinal: u32,
) -> String {
    with_ordinal(
        format!("task_submit:{task_id}:{student_id}:{submit_version}:{client_id}"),
        ordinal,
    )
}

/// Builds the recommended key of a redemption.
pub fn points_redeem_key(
    reward_id: &str,
    student_id: &str,
    sequence: i32,
    client_id: &str,
    ordinal: u32,
) -> String {
    with_ordinal(
        format!("points_redeem:{reward_id}:{student_id}:{sequence}:{client_id}"),
        ordinal,
    )
}

/// Builds the key of a submission that comes from a file: from what the row says and from nothing else, so that a second
/// run, a resumed one, and the same row in another file or at another place all repeat it.
///
/// The content is in it by the first 64 bits of its SHA-256. A row whose content was corrected is a new intent: it gets a
/// key of its own and meets the business constraint, which names the submission that stands in its way. Without the hash it
/// would repeat the old key with another fingerprint and be told 422, as if the import were broken.
pub fn import_key(task_id: &str, student_id: &str, submit_version: i32, content: &str) -> String {
    let hash = Sha256::digest(content.as_bytes());
    let short: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
    format!("import:{task_id}:{student_id}:{submit_version}:{short}")
}

fn with_ordinal(key: String, ordinal: u32) -> String {
    if ordinal > 1 {
        format!("{key}:{ordinal}")
    } else {
        key
    }
}

/// Undoes an RFC 8941 `sf-string`, which must be the whole text.
fn unquote(text: &str) -> Result<String, InvalidKey> {
    let inner = text
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .filter(|_| text.len() >= 2);
    let mut chars = inner.ok_or(InvalidKey::Quoting)?.chars();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Err(InvalidKey::Quoting),
            '\\' => match chars.next() {
                Some(escaped @ ('"' | '\\')) => out.push(escaped),
                _ => return Err(InvalidKey::Quoting),
            },
            other => out.push(other),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(value: &str) -> Result<String, InvalidKey> {
        IdempotencyKey::from_header(value.as_bytes()).map(|k| k.0)
    }

    #[test]
    fn quoted_and_bare_text_are_the_same_key() {
        assert_eq!(header("\"a b\""), header("a b"));
        assert_eq!(header("  abc\t"), Ok("abc".into()));
        assert_eq!(header(r#""a\"b\\c""#), Ok(r#"a"b\c"#.into()));
        assert_eq!(header(r#"a"b\c"#), Ok(r#"a"b\c"#.into()));
        assert_ne!(header("Abc"), header("abc"));
    }

    #[test]
    fn bad_keys_are_refused_with_their_reason() {
        for (value, reason) in [
            ("", InvalidKey::Empty),
            ("   ", InvalidKey::Empty),
            ("\"\"", InvalidKey::Empty),
            ("\"", InvalidKey::Quoting),
            ("\"abc", InvalidKey::Quoting),
            ("\"abc\\", InvalidKey::Quoting),
            ("\"abc\\\"", InvalidKey::Quoting),
            ("\"a\\b\"", InvalidKey::Quoting),
            ("\"a\"b\"", InvalidKey::Quoting),
            ("\"abc\";v=1", InvalidKey::Quoting),
            ("\" abc\"", InvalidKey::Character),
            ("a\tb", InvalidKey::Character),
            ("键", InvalidKey::Character),
            ("a\u{7f}", InvalidKey::Character),
        ] {
            assert_eq!(header(value), Err(reason), "{value:?}");
        }
        assert_eq!(
            IdempotencyKey::from_header(&[b'a', 0xff]),
            Err(InvalidKey::Character)
        );
        assert_eq!(header(&"k".repeat(256)), Err(InvalidKey::TooLong));
        assert_eq!(header(&"k".repeat(255)), Ok("k".repeat(255)));
        // The length is that of the key, not of its quoted form.
        assert_eq!(
            header(&format!("\"{}\"", "\\\\".repeat(255))),
            Ok("\\".repeat(255))
        );
    }

    #[test]
    fn recommended_key_repeats_for_a_retry_and_changes_for_a_new_intent() {
        assert_eq!(
            task_submit_key("7", "12", 1, "c-1", 1),
            "task_submit:7:12:1:c-1"
        );
        assert_eq!(
            task_submit_key("7", "12", 1, "c-1", 3),
            "task_submit:7:12:1:c-1:3"
        );
        assert_eq!(
            points_redeem_key("2", "12", 1, "c-1", 2),
            "points_redeem:2:12:1:c-1:2"
        );
    }

    #[test]
    fn import_key_is_of_the_row_alone() {
        let key = import_key("7", "12", 1, "my work");
        // INVARIANT: a file that is imported again by a newer version must be recognised, so this value may never change.
        assert_eq!(key, "import:7:12:1:a73eaf5f42f46790");
        assert_eq!(key, import_key("7", "12", 1, "my work"));
        for other in [
            import_key("7", "12", 1, "my work "),
            import_key("7", "12", 2, "my work"),
            import_key("7", "13", 1, "my work"),
            import_key("71", "2", 1, "my work"),
        ] {
            assert_ne!(key, other);
        }
        let id = i64::MAX.to_string();
        let longest = import_key(&id, &id, i32::MAX, "作业");
        assert!(IdempotencyKey::from_text(&longest).is_ok(), "{longest}");
    }

    #[test]
    fn location_is_percent_encoded() {
        let key = IdempotencyKey::from_text("a/b c?%").expect("valid");
        assert_eq!(
            request_location(&key, crate::action::TASK_SUBMIT),
            "/api/v1/requests/a%2Fb%20c%3F%25?action=task_submit"
        );
    }

    proptest! {
        #[test]
        fn every_key_survives_quoting(text in "[!-~]([ -~]{0,253}[!-~])?") {
            let quoted = format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
            prop_assert_eq!(IdempotencyKey::from_header(quoted.as_bytes()), IdempotencyKey::from_text(&text));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(key) = IdempotencyKey::from_header(&bytes) {
                prop_assert!((1..=MAX_KEY_CHARS).contains(&key.as_str().len()));
            }
        }
    }
}
