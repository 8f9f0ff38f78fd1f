//! What can be set about the engine.

use std::time::Duration;

use secrecy::SecretString;

use crate::FrontLockConfig;

/// The engine's settings; see the README for their meaning to people.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Names this process in the `instance` table, for people.
    pub instance_name: String,
    /// For how long a claim is presumed alive.
    pub lease: Duration,
    /// How long a record may execute or be unknown before it counts as stuck.
    pub stuck_after: Duration,
    /// For how long a finished record answers its key.
    pub retention: Duration,
    /// Which compensations need a second person.
    pub second_person: SecondPerson,
    /// For how long a second person may decide.
    pub approval_valid: Duration,
    /// The external provider of rewards; `None`: rewards are not offered.
    pub reward: Option<RemoteConfig>,
    /// The webhook that messages are delivered to; `None`: they go straight to their readers inside.
    pub webhook: Option<RemoteConfig>,
    /// The lock in front of claims; `None`: there is none.
    pub front_lock: Option<FrontLockConfig>,
}

/// A service outside.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    /// Its URL, without a slash at the end.
    pub url: SecretString,
    /// How long it may take to answer.
    pub timeout: Duration,
}

/// Which compensations need a second person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecondPerson {
    /// Those of actions whose policy says so.
    #[default]
    ByPolicy,
    /// All that change a record.
    Always,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            instance_name: "server".into(),
            lease: Duration::from_secs(30),
            stuck_after: Duration::from_secs(300),
            retention: Duration::from_secs(24 * 3600),
            second_person: SecondPerson::default(),
            approval_valid: Duration::from_secs(24 * 3600),
            reward: None,
            webhook: None,
            front_lock: None,
        }
    }
}
