//! Named points at which a test can make the process die, as a `kill -9` at the worst moment would.
//!
//! They exist in debug builds only: a release build has no such thing, whatever its environment says.

/// Ends the process here, without any clean-up, if `YICI_CRASH_AT` names this point.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    static CRASH_AT: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let crash_at = CRASH_AT.get_or_init(|| std::env::var("YICI_CRASH_AT").ok());
    if crash_at.as_deref() == Some(name) {
        std::process::abort();
    }
}

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
pub const fn point(_name: &str) {}
