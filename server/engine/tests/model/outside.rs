//! One action whose effect lies outside, as a model of its own: two keys of one intent, two processes that may die or stand still,
//! a provider whose answers get lost, its status endpoint, and the finish and verification that go by what is known.
//!
//! Time is one step: after [`Step::TimePasses`] a call that was marked is no longer sent, and one that was sent has arrived or is
//! lost. That is what the time-outs of the contract make true, and all that the model assumes about them.

use domain::RecordState;
use stateright::{Checker, HasDiscoveries, Model, Property};

const KEYS: usize = 2;
const PROCESSES: usize = 2;
/// The most claims of one key.
const CLAIMS: usize = 2;
/// How many leases run out in all.
const LEASES: u8 = 2;
/// The most epochs of one key: each claim, and each lease that ran out.
const EPOCHS: usize = CLAIMS + LEASES as usize;

/// What a version of the code leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    None,
    /// Calls without a hold.
    NoHold,
    /// Does not look at the clock before it sends.
    SendLate,
    /// Takes "not found" for a proof at any time.
    EarlyProof,
    /// Takes an answer that tells nothing for a no.
    UnclearIsNo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Call {
    marked: bool,
    is_void: bool,
    /// It may still be sent, or be on its way.
    is_young: bool,
    in_flight: bool,
    /// The provider's word, as it was kept.
    done: bool,
    not_sent: bool,
    /// How often the provider said "not found" when that proves something.
    not_found: u8,
}

impl Call {
    fn is_open(self) -> bool {
        self.marked && !self.is_void && !self.done && !self.not_sent && self.not_found < 2
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Record {
    state: RecordState,
    epoch: usize,
    lease_is_live: bool,
    /// Its own hold is open.
    holds: bool,
    calls: [Call; EPOCHS],
}

/// How far a process is with one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Claimed,
    Marked,
    Sent,
    /// With what it heard: done, or nothing clear.
    Heard(bool),
    Kept,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Job {
    key: usize,
    epoch: usize,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    records: [Option<Record>; KEYS],
    jobs: [Option<Job>; PROCESSES],
    /// How often the provider gave something to each key; it gives a key once.
    given: [u8; KEYS],
    /// The key whose redemption is written.
    redemption: Option<usize>,
    /// Of the one reward's price.
    balance: i8,
    claims: [usize; KEYS],
    crashes: u8,
    leases: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Claim(usize, usize),
    Mark(usize),
    Send(usize),
    /// The call reaches the provider; whether its answer reaches the caller.
    Arrive(usize, usize, bool),
    /// The call, or the provider, fails before anything is given.
    Lose(usize, usize),
    GiveUpWaiting(usize),
    Keep(usize),
    Finish(usize),
    Die(usize),
    LeaseEnds(usize),
    TimePasses(usize, usize),
    Ask(usize),
    Verify(usize),
}

struct Outside(Mutation);

impl State {
    fn record(&mut self, key: usize) -> &mut Record {
        self.records[key].as_mut().expect("a job has a record")
    }

    fn take_hold(&mut self, key: usize, mutation: Mutation) {
        let open = self.records.iter().flatten().any(|record| record.holds);
        let free = !open && self.redemption.is_none() && self.balance > 0;
        if free {
            self.record(key).holds = true;
            self.balance -= 1;
        } else if mutation == Mutation::NoHold {
            self.record(key).holds = true;
        }
    }

    fn return_hold(&mut self, key: usize) {
        let record = self.record(key);
        for call in &mut record.calls {
            call.is_void |= call.marked;
        }
        if std::mem::take(&mut record.holds) {
            self.balance += 1;
        }
    }

    /// Writes the redemption if there is none, with the hold or as a debt.
    fn complete(&mut self, key: usize) {
        if self.redemption.is_none() {
            self.redemption = Some(key);
            if !std::mem::take(&mut self.record(key).holds) {
                self.balance -= 1;
            }
        }
        self.return_hold(key);
    }

    /// Where what is known leads.
    fn decide(&mut self, key: usize, absent: RecordState, mutation: Mutation) {
        let record = *self.record(key);
        let happened = record.calls.iter().any(|call| call.done);
        let is_open = record.calls.iter().any(|call| call.is_open());
        let state = if self.redemption.is_some() || happened {
            self.complete(key);
            RecordState::Succeeded
        } else if is_open && mutation != Mutation::UnclearIsNo {
            RecordState::Unknown
        } else {
            self.return_hold(key);
            absent
        };
        let record = self.record(key);
        record.state = state;
        record.lease_is_live = false;
    }
}

impl Model for Outside {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            records: [None; KEYS],
            jobs: [None; PROCESSES],
            given: [0; KEYS],
            redemption: None,
            balance: 1,
            claims: [0; KEYS],
            crashes: 1,
            leases: LEASES,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (process, job) in state.jobs.iter().enumerate() {
            match job {
                None => {
                    for key in 0..KEYS {
                        let free = state.records[key]
                            .is_none_or(|record| record.state == RecordState::FailedRetryable);
                        if free && state.claims[key] < CLAIMS {
                            steps.push(Step::Claim(process, key));
                        }
                    }
                }
                Some(job) => {
                    steps.push(match job.at {
                        At::Claimed => Step::Mark(process),
                        At::Marked => Step::Send(process),
                        At::Sent => Step::GiveUpWaiting(process),
                        At::Heard(_) => Step::Keep(process),
                        At::Kept => Step::Finish(process),
                    });
                    if state.crashes > 0 {
                        steps.push(Step::Die(process));
                    }
                }
            }
        }
        for (key, record) in state.records.iter().enumerate() {
            let Some(record) = record else { continue };
            if record.lease_is_live {
                if state.leases > 0 {
                    steps.push(Step::LeaseEnds(key));
                }
            } else if matches!(record.state, RecordState::Processing | RecordState::Unknown) {
                steps.extend([Step::Ask(key), Step::Verify(key)]);
            } else if record.state == RecordState::FailedRetryable {
                steps.push(Step::Verify(key));
            }
            for (epoch, call) in record.calls.iter().enumerate() {
                if call.in_flight {
                    steps.extend([
                        Step::Arrive(key, epoch, true),
                        Step::Arrive(key, epoch, false),
                        Step::Lose(key, epoch),
                    ]);
                } else if call.is_young {
                    steps.push(Step::TimePasses(key, epoch));
                }
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = *last;
        let mutation = self.0;
        match step {
            Step::Claim(process, key) => {
                let epoch = match &mut state.records[key] {
                    Some(record) => {
                        record.epoch += 1;
                        record.state = RecordState::Processing;
                        record.lease_is_live = true;
                        record.epoch
                    }
                    none => {
                        *none = Some(Record {
                            state: RecordState::Processing,
                            epoch: 0,
                            lease_is_live: true,
                            holds: false,
                            calls: [Call::default(); EPOCHS],
                        });
                        0
                    }
                };
                state.claims[key] += 1;
                state.take_hold(key, mutation);
                state.jobs[process] = Some(Job {
                    key,
                    epoch,
                    at: At::Claimed,
                });
            }
            Step::Mark(process) => {
                let job = state.jobs[process]?;
                let record = state.record(job.key);
                let is_mine = record.state == RecordState::Processing
                    && record.epoch == job.epoch
                    && record.lease_is_live;
                let is_first = !record
                    .calls
                    .iter()
                    .any(|c| c.marked && (!c.is_void || c.done));
                let may = is_mine && record.holds && is_first;
                if may {
                    let call = &mut record.calls[job.epoch];
                    (call.marked, call.is_young) = (true, true);
                }
                let at = if may { At::Marked } else { At::Kept };
                state.jobs[process] = Some(Job { at, ..job });
            }
            Step::Send(process) => {
                let job = state.jobs[process]?;
                let call = &mut state.record(job.key).calls[job.epoch];
                let at = if call.is_young || mutation == Mutation::SendLate {
                    call.in_flight = true;
                    At::Sent
                } else {
                    call.not_sent = true;
                    At::Kept
                };
                state.jobs[process] = Some(Job { at, ..job });
            }
            Step::Arrive(key, epoch, is_heard) => {
                state.record(key).calls[epoch].in_flight = false;
                state.given[key] = 1;
                for job in state.jobs.iter_mut().flatten() {
                    if (job.key, job.epoch, job.at) == (key, epoch, At::Sent) {
                        job.at = At::Heard(is_heard);
                    }
                }
            }
            Step::Lose(key, epoch) => state.record(key).calls[epoch].in_flight = false,
            Step::GiveUpWaiting(process) => {
                let job = state.jobs[process].as_mut()?;
                job.at = At::Heard(false);
            }
            Step::Keep(process) => {
                let job = state.jobs[process]?;
                if job.at == At::Heard(true) {
                    state.record(job.key).calls[job.epoch].done = true;
                }
                state.jobs[process] = Some(Job {
                    at: At::Kept,
                    ..job
                });
            }
            Step::Finish(process) => {
                let job = state.jobs[process].take()?;
                let others = state.records.iter().enumerate();
                let in_progress = others
                    .flat_map(|(key, r)| r.map(|r| (key, r)))
                    .any(|(key, r)| key != job.key && r.holds);
                let record = *state.record(job.key);
                let is_mine = record.state == RecordState::Processing && record.epoch == job.epoch;
                if is_mine {
                    let absent = if in_progress {
                        RecordState::FailedFinal
                    } else {
                        RecordState::FailedRetryable
                    };
                    state.decide(job.key, absent, mutation);
                }
            }
            Step::Die(process) => {
                state.jobs[process] = None;
                state.crashes -= 1;
            }
            Step::LeaseEnds(key) => {
                state.record(key).lease_is_live = false;
                state.leases -= 1;
            }
            Step::TimePasses(key, epoch) => state.record(key).calls[epoch].is_young = false,
            Step::Ask(key) => {
                let was_given = state.given[key] > 0;
                let record = state.record(key);
                let asked = record.calls.iter_mut().rfind(|call| call.is_open())?;
                if was_given {
                    asked.done = true;
                } else if !asked.is_young || mutation == Mutation::EarlyProof {
                    asked.not_found += 1;
                } else {
                    return None;
                }
            }
            Step::Verify(key) => {
                let record = state.record(key);
                let happened = record.calls.iter().any(|call| call.done);
                match record.state {
                    RecordState::FailedRetryable if !happened => return None,
                    RecordState::Processing => record.epoch += 1,
                    _ => {}
                }
                state.decide(key, RecordState::FailedRetryable, mutation);
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the provider gives once", |_, state: &State| {
                state.given.iter().sum::<u8>() <= 1
            }),
            Property::always("a success is no lie", |_, state: &State| {
                let succeeded =
                    |r: &Option<Record>| r.is_some_and(|r| r.state == RecordState::Succeeded);
                !state.records.iter().any(succeeded) || state.given.iter().sum::<u8>() >= 1
            }),
            Property::always("what failed was not given", |_, state: &State| {
                let failed = [RecordState::FailedFinal, RecordState::FailedRetryable];
                state
                    .records
                    .iter()
                    .zip(state.given)
                    .all(|(record, given)| {
                        given == 0 || record.is_none_or(|record| !failed.contains(&record.state))
                    })
            }),
            Property::always(
                "the balance is what is neither held nor spent",
                |_, state: &State| {
                    let held = state
                        .records
                        .iter()
                        .flatten()
                        .filter(|record| record.holds)
                        .count();
                    let spent = usize::from(state.redemption.is_some());
                    usize::try_from(state.balance).is_ok_and(|balance| balance + held + spent == 1)
                },
            ),
            Property::sometimes(
                "an answer that was lost is found out",
                |_, state: &State| {
                    let found =
                        |r: &Record| r.state == RecordState::Succeeded && state.crashes == 0;
                    state.records.iter().flatten().any(found)
                },
            ),
            Property::sometimes(
                "what is proven not to have happened runs again",
                |_, state: &State| {
                    let again = |r: &Record| r.epoch > 0 && r.state == RecordState::Succeeded;
                    state.records.iter().flatten().any(again)
                },
            ),
        ]
    }
}

fn check(mutation: Mutation) -> impl Checker<Outside> {
    Outside(mutation)
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join()
}

#[test]
fn an_effect_outside_happens_once_in_every_interleaving() {
    let checked = check(Mutation::None);
    checked.assert_properties();
    println!("outside: {} states", checked.unique_state_count());
}

#[test]
fn each_mechanism_of_the_outside_is_needed() {
    for mutation in [
        Mutation::NoHold,
        Mutation::SendLate,
        Mutation::EarlyProof,
        Mutation::UnclearIsNo,
    ] {
        let checked = check(mutation);
        let broken = checked.discoveries();
        let always = ["once", "lie", "failed", "balance"];
        let caught = broken
            .keys()
            .any(|name| always.iter().any(|word| name.contains(word)));
        assert!(caught, "{mutation:?} breaks nothing: {:?}", broken.keys());
    }
}
