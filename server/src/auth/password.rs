//! Argon2id hashes, worked out away from the threads that serve.

use std::sync::{Arc, LazyLock};

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use tokio::sync::Semaphore;

/// How many hashes are worked out at once. Each takes 19 MiB and all of a core; more would let a flood of sign-ins starve
/// submissions.
static SLOTS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    Arc::new(Semaphore::new(cores.div_ceil(2)))
});

/// A hash could not be worked out.
#[derive(Debug, thiserror::Error)]
#[error("a password could not be hashed: {0}")]
pub struct HashError(String);

/// Hashes a password into PHC form, with Argon2id's recommended costs and a random salt.
///
/// # Errors
/// When the system has no randomness or memory to give.
pub async fn hash(password: String) -> Result<String, HashError> {
    work(move || {
        Argon2::default()
            .hash_password(password.as_bytes())
            .map(|hash| hash.to_string())
            .map_err(|error| HashError(error.to_string()))
    })
    .await?
}

/// Whether a password belongs to a stored hash. Without a hash (no such account) the same work is done for nothing, so that
/// the time does not tell whether a name exists.
///
/// # Errors
/// When the work could not be done.
pub async fn verify(password: String, stored: Option<String>) -> Result<bool, HashError> {
    work(move || match stored.as_deref().map(PasswordHash::new) {
        Some(Ok(hash)) => Argon2::default()
            .verify_password(password.as_bytes(), &hash)
            .is_ok(),
        _ => {
            let _ = Argon2::default().hash_password(password.as_bytes());
            false
        }
    })
    .await
}

async fn work<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, HashError> {
    let slot = SLOTS
        .clone()
        .acquire_owned()
        .await
        .map_err(|error| HashError(error.to_string()))?;
    tokio::task::spawn_blocking(move || {
        let done = job();
        drop(slot);
        done
    })
    .await
    .map_err(|error| HashError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_fits_and_no_hash_fits_nothing() {
        let stored = hash("demo".into()).await.unwrap();
        assert!(stored.starts_with("$argon2id$"), "{stored}");
        assert!(verify("demo".into(), Some(stored.clone())).await.unwrap());
        assert!(!verify("Demo".into(), Some(stored)).await.unwrap());
        assert!(!verify("demo".into(), None).await.unwrap());
        assert!(!verify("demo".into(), Some("no hash".into())).await.unwrap());
    }
}
