//! The front lock: one `SET key token NX PX ttl` in Redis before a claim, so that a burst on one key asks Postgres less.
//!
//! INVARIANT: nothing here decides whether something is executed. Whoever holds the lock still claims, whoever does not hold it
//! still may, and a lock that lapses, is flushed or is somebody else's changes nothing but counters.

mod connection;

use std::{
    convert::Infallible,
    sync::LazyLock,
    time::{Duration, Instant},
};

use domain::view::FrontLockHealth;
use redis::Script;
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::flight::FlightKey;
use connection::Connection;

/// What a new key meets when the front lock's store is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontLockOnFailure {
    /// Go on without the lock: it only spares the database.
    Degrade,
    /// Refuse: what the database may be asked is then bounded by the lock.
    Refuse,
}

/// The front lock's settings.
#[derive(Debug, Clone)]
pub struct FrontLockConfig {
    /// The URL of Redis.
    pub url: SecretString,
    /// After what time without renewal a lock lapses.
    pub ttl: Duration,
    /// What a new key meets when Redis is away.
    pub on_failure: FrontLockOnFailure,
}

impl FrontLockConfig {
    /// Whether a text is a URL of Redis that can be used.
    pub fn is_url(text: &str) -> bool {
        redis::Client::open(text).is_ok()
    }
}

/// What every name in Redis begins with.
const PREFIX: &str = "yici:front_lock:";
/// A lock is renewed this many times before it would lapse.
const RENEWALS_PER_TTL: u32 = 3;
/// The shortest pause between two renewals, for a very short time to live.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Deletes a lock that is still one's own: 1; it is gone: 0; it is somebody else's, and stays: -1. Comparing and deleting must be
/// one step, or a lock that lapsed in between and was taken again would be deleted.
static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local holder = redis.call('GET', KEYS[1])
         if holder == ARGV[1] then return redis.call('DEL', KEYS[1]) end
         if holder then return -1 end
         return 0",
    )
});

/// Gives a lock that is still one's own its whole time again: 1; otherwise 0.
static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
         return 0",
    )
});

/// The front lock of this process.
pub(crate) struct FrontLock {
    connection: Connection,
    ttl: Duration,
    on_failure: FrontLockOnFailure,
}

/// What became of asking for a lock.
pub(crate) enum Asked {
    /// It is ours.
    Held(Held),
    /// Somebody else holds it.
    Lost,
    /// Redis cannot tell.
    Away,
}

/// A lock that was ours when it was asked for.
pub(crate) struct Held {
    name: String,
    token: String,
    /// By this process's clock, before the command was sent that Redis last confirmed.
    confirmed: Instant,
    /// Redis has said that it is not ours any more.
    is_lost: bool,
}

/// What a release tells about the time before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Released {
    /// It lapsed, as far as can be told, before the work ended.
    pub(crate) expired_suspected: bool,
    /// Somebody else held it.
    pub(crate) mismatch: bool,
}

impl FrontLock {
    /// Connects, if Redis can be reached, and keeps trying otherwise. `None`: the URL is none of Redis's.
    pub(crate) async fn start(config: &FrontLockConfig) -> Option<Self> {
        Some(Self {
            connection: Connection::start(&config.url).await?,
            ttl: config.ttl,
            on_failure: config.on_failure,
        })
    }

    /// Whether Redis took a lock when it was last asked, and what holds when it did not.
    pub(crate) fn health(&self) -> FrontLockHealth {
        match self.on_failure {
            _ if self.connection.is_up() => FrontLockHealth::Ok,
            FrontLockOnFailure::Degrade => FrontLockHealth::Degraded,
            FrontLockOnFailure::Refuse => FrontLockHealth::Refusing,
        }
    }

    /// Whether new keys are refused while Redis is away.
    pub(crate) fn refuses(&self) -> bool {
        self.on_failure == FrontLockOnFailure::Refuse
    }

    /// Asks for the lock of a key.
    pub(crate) async fn ask(&self, key: &FlightKey) -> Asked {
        let (name, token) = (name_of(key), Uuid::new_v4().to_string());
        let confirmed = Instant::now();
        let mut set = redis::cmd("SET");
        set.arg(&name)
            .arg(&token)
            .arg("NX")
            .arg("PX")
            .arg(ms(self.ttl));
        let set = self
            .connection
            .run(async |redis| set.query_async::<Option<String>>(redis).await)
            .await;
        match set {
            None => Asked::Away,
            Some(None) => Asked::Lost,
            Some(Some(_)) => Asked::Held(Held {
                name,
                token,
                confirmed,
                is_lost: false,
            }),
        }
    }

    /// Does the work, and renews the lock meanwhile.
    pub(crate) async fn keep<T>(&self, held: &mut Held, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = self.renew_until_lost(held) => match never {},
        }
    }

    async fn renew_until_lost(&self, held: &mut Held) -> Infallible {
        let pause = (self.ttl / RENEWALS_PER_TTL).max(SHORTEST_PAUSE);
        while !held.is_lost {
            tokio::time::sleep(pause).await;
            let asked = Instant::now();
            let renewed = self
                .connection
                .run(async |redis| {
                    let mut renew = RENEW.key(&held.name);
                    renew.arg(&held.token).arg(ms(self.ttl));
                    renew.invoke_async::<i64>(redis).await
                })
                .await;
            match renewed {
                Some(1) => held.confirmed = asked,
                Some(_) => held.is_lost = true,
                // Redis is away; the lock may outlive that.
                None => {}
            }
        }
        std::future::pending().await
    }

    /// Releases a lock if it is still ours.
    pub(crate) async fn release(&self, held: Held) -> Released {
        let deleted = self
            .connection
            .run(async |redis| {
                let mut release = RELEASE.key(&held.name);
                release.arg(&held.token).invoke_async::<i64>(redis).await
            })
            .await;
        let gone = match deleted {
            Some(deleted) => deleted != 1,
            // Nobody can be asked: by the clock.
            None => held.confirmed.elapsed() >= self.ttl,
        };
        Released {
            expired_suspected: held.is_lost || gone,
            mismatch: deleted == Some(-1),
        }
    }
}

/// The lock's name: a hash, since keys may be long, hold anything printable, and are nobody's business in another store.
fn name_of(key: &FlightKey) -> String {
    let action = key.action.as_str();
    let mut hash = Sha256::new();
    hash.update(key.subject_id.to_be_bytes());
    // With its length, so that no two triples run together into one text.
    hash.update((action.len() as u64).to_be_bytes());
    hash.update(action);
    hash.update(key.key.as_str());
    format!("{PREFIX}{:x}", hash.finalize())
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use domain::{ActionType, IdempotencyKey, action};

    use super::*;

    #[test]
    fn each_subject_action_and_key_has_a_lock_of_its_own() {
        let name = |subject_id, action: ActionType, key: &str| {
            name_of(&FlightKey {
                subject_id,
                action,
                key: IdempotencyKey::from_text(key).expect("valid"),
            })
        };
        let names = [
            name(1, action::TASK_SUBMIT, "k"),
            name(2, action::TASK_SUBMIT, "k"),
            name(1, action::POINTS_REDEEM, "k"),
            name(1, action::TASK_SUBMIT, "K"),
            name(1, action::TASK_SUBMIT, "tk"),
        ];
        let different: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert_eq!(name(1, action::TASK_SUBMIT, "k"), names[0]);
        assert!(names.iter().all(|name| name.len() == PREFIX.len() + 64));
    }
}
