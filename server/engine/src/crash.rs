//! Named points at which a test can make the process die, as a `kill -9` at the worst moment would, or stand still, as a machine
//! that is paused does.
//!
//! They exist in debug builds only: a release build has no such thing, whatever its environment says.

/// Ends the process here, without any clean-up, if `YICI_CRASH_AT` names this point; stops it here, once, until somebody
/// continues it, if `YICI_PAUSE_AT` does.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::{Once, OnceLock};

    static CRASH_AT: OnceLock<Option<String>> = OnceLock::new();
    static PAUSE_AT: OnceLock<Option<String>> = OnceLock::new();
    static PAUSED: Once = Once::new();
    let named = |variable: &str| std::env::var(variable).ok();
    let is_here = |at: &Option<String>| at.as_deref() == Some(name);
    if is_here(CRASH_AT.get_or_init(|| named("YICI_CRASH_AT"))) {
        std::process::abort();
    }
    if is_here(PAUSE_AT.get_or_init(|| named("YICI_PAUSE_AT"))) {
        PAUSED.call_once(|| {
            let pid = std::process::id().to_string();
            let stopped = std::process::Command::new("kill")
                .args(["-STOP", &pid])
                .status();
            assert!(
                stopped.is_ok_and(|status| status.success()),
                "a test's pause needs `kill`"
            );
        });
    }
}

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
pub const fn point(_name: &str) {}
