//! One student with two devices, one thing after the other, and whatever the network makes of it.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use rand::{Rng, rngs::StdRng};
use serde_json::{Value, json};

use super::{
    client::{Client, Press, Reply},
    ledger::Ledger,
};

/// How long a student keeps trying before the simulation is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(90);
/// The pause before the first repetition; each next is longer, up to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How soon the impatient hang up: around the time that an answer takes.
const HANG_UP_MS: std::ops::Range<u64> = 1..25;

/// What a student does with one piece of work, in parts per hundred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    Once,
    Again,
    DoubleClick,
    HangUp,
    TwoDevices,
    TwoDevicesOtherWords,
    OtherWordsSameKey,
    StaleVersion,
}

const HABITS: &[(u32, Habit)] = &[
    (56, Habit::Once),
    (12, Habit::Again),
    (8, Habit::DoubleClick),
    (10, Habit::HangUp),
    (6, Habit::TwoDevices),
    (3, Habit::TwoDevicesOtherWords),
    (3, Habit::OtherWordsSameKey),
    (2, Habit::StaleVersion),
];

pub(super) struct Student {
    client: Client,
    token: String,
    chance: StdRng,
    count: u64,
}

impl Student {
    pub(super) const fn new(client: Client, token: String, chance: StdRng) -> Self {
        Self {
            client,
            token,
            chance,
            count: 0,
        }
    }

    /// Hands work in until there is no more to begin.
    pub(super) async fn live(mut self, ledger: Arc<Ledger>) -> anyhow::Result<()> {
        while ledger.begin() {
            self.hand_in(&ledger).await?;
            ledger.done();
        }
        Ok(())
    }

    async fn hand_in(&mut self, ledger: &Ledger) -> anyhow::Result<()> {
        let (task, version) = self.find_work().await?;
        self.count += 1;
        let habit = self.habit();
        let version = if habit == Habit::StaleVersion {
            version + 1000
        } else {
            version
        };
        // Not by the seed: the same seed twice on one server is twice the work, not the same work.
        let key = format!("simulate:{task}:{version}:{:016x}", rand::random::<u64>());
        let first = self.press(&task, version, &key, "phone", "my work");
        match habit {
            Habit::Once | Habit::StaleVersion => self.insist(ledger, &first).await?,
            Habit::Again => {
                self.insist(ledger, &first).await?;
                for _ in 0..self.chance.random_range(1..4) {
                    self.insist(ledger, &first).await?;
                }
            }
            Habit::DoubleClick => {
                tokio::join!(self.send(ledger, &first), self.send(ledger, &first));
                self.insist(ledger, &first).await?;
            }
            Habit::HangUp => {
                let patience = Duration::from_millis(self.chance.random_range(HANG_UP_MS));
                let hasty = Press {
                    patience: Some(patience),
                    ..first.clone()
                };
                self.send(ledger, &hasty).await;
                self.insist(ledger, &first).await?;
            }
            Habit::TwoDevices => {
                self.insist(ledger, &first).await?;
                let second = self.press(
                    &task,
                    version,
                    &format!("{key}:tablet"),
                    "tablet",
                    "my work",
                );
                self.insist(ledger, &second).await?;
            }
            Habit::TwoDevicesOtherWords => {
                self.insist(ledger, &first).await?;
                let second = self.press(
                    &task,
                    version,
                    &format!("{key}:tablet"),
                    "tablet",
                    "other words",
                );
                self.insist(ledger, &second).await?;
            }
            Habit::OtherWordsSameKey => {
                self.insist(ledger, &first).await?;
                let second = self.press(&task, version, &key, "phone", "other words");
                self.insist(ledger, &second).await?;
            }
        }
        Ok(())
    }

    fn habit(&mut self) -> Habit {
        let mut at: u32 = self.chance.random_range(0..100);
        for (parts, habit) in HABITS {
            match at.checked_sub(*parts) {
                Some(rest) => at = rest,
                None => return *habit,
            }
        }
        Habit::Once
    }

    fn press(&self, task: &str, version: i64, key: &str, device: &str, words: &str) -> Press {
        Press {
            path: format!("/tasks/{task}/submissions"),
            key: key.to_owned(),
            body: json!({ "submit_version": version, "client_id": device, "content": format!("{words} {}", self.count) }),
            patience: None,
        }
    }

    /// A task to do: an assignment that is still open, else the next attempt at practice.
    async fn find_work(&self) -> anyhow::Result<(String, i64)> {
        let mut pause = PAUSES.0;
        let mut waited = Duration::ZERO;
        loop {
            if let Some(tasks) = self.client.get(&self.token, "/tasks").await {
                let tasks = tasks["tasks"].as_array().cloned().unwrap_or_default();
                let is = |task: &&Value, member: &str, value: &str| task[member] == value;
                let open = tasks
                    .iter()
                    .find(|task| is(task, "kind", "assignment") && is(task, "status", "pending"));
                let found = open.or_else(|| tasks.iter().find(|task| is(task, "kind", "practice")));
                let Some(task) = found else {
                    bail!("a student has no practice task")
                };
                let id = task["id"].as_str().unwrap_or_default().to_owned();
                return Ok((id, task["submit_version"].as_i64().unwrap_or(1)));
            }
            wait(&mut pause, &mut waited).await?;
        }
    }

    /// Sends once and writes down what came.
    async fn send(&self, ledger: &Ledger, press: &Press) -> Reply {
        let (trace, reply) = self.client.press(&self.token, press).await;
        ledger.note(trace, reply.clone());
        reply
    }

    /// Repeats under the same key until the answer is final, as a good client does.
    async fn insist(&self, ledger: &Ledger, press: &Press) -> anyhow::Result<()> {
        let mut pause = PAUSES.0;
        let mut waited = Duration::ZERO;
        loop {
            match self.send(ledger, press).await {
                Reply::Answer { status, .. } if !matches!(status, 202 | 429 | 500..) => {
                    return Ok(());
                }
                Reply::Answer { .. } | Reply::Lost => wait(&mut pause, &mut waited).await?,
            }
        }
    }
}

async fn wait(pause: &mut Duration, waited: &mut Duration) -> anyhow::Result<()> {
    if *waited >= GIVE_UP_AFTER {
        bail!(
            "the server has not answered for {} s",
            GIVE_UP_AFTER.as_secs()
        );
    }
    tokio::time::sleep(*pause).await;
    *waited += *pause;
    *pause = (*pause * 2).min(PAUSES.1);
    Ok(())
}
