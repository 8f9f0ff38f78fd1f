//! Tokens: 256 random bits, of which only the hash is kept.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::TryRngCore;
use secrecy::SecretString;
use sha2::{Digest, Sha256};

/// The system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("no randomness for a token")]
pub struct TokenError(#[source] rand::rand_core::OsError);

/// Makes a token: what the holder keeps, and what the store keeps.
///
/// # Errors
/// When the system has no randomness to give.
pub fn make() -> Result<(SecretString, [u8; 32]), TokenError> {
    let mut bits = [0; 32];
    rand::rngs::OsRng
        .try_fill_bytes(&mut bits)
        .map_err(TokenError)?;
    let token = BASE64_URL_SAFE_NO_PAD.encode(bits);
    let hash = hash(&token);
    Ok((token.into(), hash))
}

/// What a token is looked up by. Equal hashes are found by an index, so no comparison of secrets leaks time.
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn tokens_differ_and_are_found_by_their_hash() {
        let (one, kept) = make().unwrap();
        let (other, _) = make().unwrap();
        assert_ne!(one.expose_secret(), other.expose_secret());
        assert_eq!(hash(one.expose_secret()), kept);
        assert_eq!(one.expose_secret().len(), 43);
    }
}
