//! The executions that run at this process. A duplicate joins the one of its key instead of asking the database again, and
//! holds no connection while it waits.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use domain::{ActionType, Fingerprint, IdempotencyKey};
use tokio::sync::watch;

use crate::{SubmitError, store::record::FoundRecord};

/// What one flight is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FlightKey {
    pub(crate) subject_id: i64,
    pub(crate) action: ActionType,
    pub(crate) key: IdempotencyKey,
}

/// How far a flight is.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    /// The database is being asked.
    Claiming,
    /// This process executes.
    Executing {
        record_id: i64,
        fingerprint: Fingerprint,
    },
    /// The record as it was found or finished.
    Ended(FoundRecord),
    /// It could not be found out.
    Failed(SubmitError),
}

struct Flight {
    stage: watch::Receiver<Stage>,
    /// RACE: after this another instance may have taken over, so the flight says nothing about the record any more.
    trusted_until: Instant,
}

/// All flights of this process.
#[derive(Default, Clone)]
pub(crate) struct Flights(Arc<Mutex<HashMap<FlightKey, Flight>>>);

/// What an arrival is to do.
pub(crate) enum Seat {
    /// Nobody of this process is on it: lead.
    Lead(Lead),
    /// Somebody is on it: watch.
    Join(Joined),
}

/// A flight that is watched.
pub(crate) struct Joined {
    pub(crate) stage: watch::Receiver<Stage>,
    /// After this the flight says nothing about the record any more.
    pub(crate) trusted_until: Instant,
}

/// The duty to bring one flight to its end; the flight is over when it is dropped.
pub(crate) struct Lead {
    flights: Flights,
    key: FlightKey,
    stage: watch::Sender<Stage>,
}

impl Flights {
    /// Joins the trusted flight of a key, or begins one that is trusted until then.
    pub(crate) fn board(&self, key: FlightKey, now: Instant, trusted_until: Instant) -> Seat {
        let (sender, stage) = watch::channel(Stage::Claiming);
        let flight = Flight {
            stage,
            trusted_until,
        };
        match self.lock().entry(key.clone()) {
            Entry::Occupied(mut entry) => {
                if now < entry.get().trusted_until && entry.get().stage.has_changed().is_ok() {
                    return Seat::Join(Joined {
                        stage: entry.get().stage.clone(),
                        trusted_until: entry.get().trusted_until,
                    });
                }
                entry.insert(flight);
            }
            Entry::Vacant(entry) => {
                entry.insert(flight);
            }
        }
        Seat::Lead(Lead {
            flights: self.clone(),
            key,
            stage: sender,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FlightKey, Flight>> {
        // Nothing can panic while it is held, so a poisoned map is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lead {
    /// Tells those who joined how far it is.
    pub(crate) fn tell(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        // A flight that was no longer trusted may have been replaced.
        if flights
            .get(&self.key)
            .is_some_and(|flight| flight.stage.same_channel(&self.stage.subscribe()))
        {
            flights.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key() -> FlightKey {
        FlightKey {
            subject_id: 1,
            action: domain::action::TASK_SUBMIT,
            key: IdempotencyKey::from_text("k").expect("valid"),
        }
    }

    #[test]
    fn a_flight_is_joined_until_it_ends_or_is_trusted_no_more() {
        let flights = Flights::default();
        let now = Instant::now();
        let lease = Duration::from_secs(30);
        let Seat::Lead(first) = flights.board(key(), now, now + lease) else {
            panic!("the first leads")
        };
        assert!(matches!(
            flights.board(key(), now, now + lease),
            Seat::Join(_)
        ));
        // Its lease is over: somebody else may have taken over, so the next one asks the database.
        let Seat::Lead(second) = flights.board(key(), now + lease, now + lease * 2) else {
            panic!("not trusted any more")
        };
        drop(first);
        assert!(
            matches!(
                flights.board(key(), now + lease, now + lease * 2),
                Seat::Join(_)
            ),
            "the second is still there"
        );
        drop(second);
        assert!(flights.lock().is_empty());
    }
}
