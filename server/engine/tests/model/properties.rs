//! What must hold in every state, and what must be reached in some, so that the model cannot become empty unnoticed.

use domain::RecordState;
use stateright::Property;

use crate::{
    protocol::Protocol,
    state::{Answer, Claim, Fault, OpenFinish, PROCESSES, Path, Process, State},
};

pub(crate) const ONE_EFFECT: &str = "there is at most one effect, and its points are given once";
pub(crate) const SUCCESS_HAS_EFFECT: &str = "no success is answered without its effect";
pub(crate) const EFFECT_STAYS: &str =
    "an effect that was acknowledged is never lost, changed or incomplete";
pub(crate) const ONE_FINAL_ANSWER: &str = "no request is given two different final answers";
pub(crate) const OWN_ANSWER: &str = "no key is answered by the record of another";
pub(crate) const TERMINAL_STAYS: &str = "nothing leaves a terminal state";
pub(crate) const EPOCHS_GROW: &str =
    "epochs only grow, and grow at every fence and every take-over";
pub(crate) const FENCED_IS_SILENT: &str = "who was fenced or forgotten writes nothing";
pub(crate) const VERDICTS_ARE_TRUE: &str = "every verdict is true while its record is locked";
pub(crate) const TRANSITIONS_EXIST: &str = "every transition is one of the state machine";
pub(crate) const RECORDS_ARE_WHOLE: &str = "every record is as the table's constraints want it";
pub(crate) const EVERY_RECORD_CAN_END: &str = "every record can still end";

/// All of them.
pub(crate) fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ONE_EFFECT, |_, state: &State| {
            state
                .database
                .now
                .row
                .is_none_or(|row| row.copies == 1 && row.points == u8::from(row.owned))
        }),
        Property::always(SUCCESS_HAS_EFFECT, |_, state: &State| {
            !state.faults.has(Fault::SuccessWithoutEffect)
        }),
        Property::always(EFFECT_STAYS, effect_stays),
        Property::always(ONE_FINAL_ANSWER, |_, state: &State| {
            !state.faults.has(Fault::TwoFinalAnswers)
        }),
        Property::always(OWN_ANSWER, |_, state: &State| {
            !state.faults.has(Fault::ForeignAnswer)
        }),
        Property::always(TERMINAL_STAYS, |_, state: &State| {
            !state.faults.has(Fault::TerminalLeft)
        }),
        Property::always(EPOCHS_GROW, |_, state: &State| {
            !state.faults.has(Fault::EpochDidNotGrow)
        }),
        Property::always(FENCED_IS_SILENT, |_, state: &State| {
            !state.faults.has(Fault::FencedOwnerWrote)
        }),
        Property::always(VERDICTS_ARE_TRUE, |_, state: &State| {
            !state.faults.has(Fault::FalseVerdict)
        }),
        Property::always(TRANSITIONS_EXIST, |_, state: &State| {
            !state.faults.has(Fault::NoSuchTransition)
        }),
        Property::always(RECORDS_ARE_WHOLE, records_are_whole),
        Property::always(EVERY_RECORD_CAN_END, every_record_can_end),
        Property::sometimes("both requests are answered", |_, state: &State| {
            state.told.iter().all(Option::is_some)
        }),
        Property::sometimes(
            "an owner wakes up after its record was taken over",
            |_, state: &State| {
                claims(state).any(|(_, claim)| {
                    let record = state.database.now.by_id(claim.id);
                    record.is_some_and(|(_, record)| {
                        record.state == RecordState::Processing && record.epoch > claim.epoch
                    })
                })
            },
        ),
        Property::sometimes(
            "a lost claim's number and epoch are another claim's",
            |_, state: &State| {
                claims(state).any(|(_, claim)| {
                    let record = state.database.now.by_id(claim.id);
                    claim.fenced
                        && record.is_some_and(|(_, r)| r.lease_is_live && r.epoch == claim.epoch)
                })
            },
        ),
        Property::sometimes(
            "nobody can tell what became of a record",
            |_, state: &State| {
                let mut records = state.database.now.records.iter().flatten();
                records.any(|record| record.state == RecordState::Unknown)
            },
        ),
        Property::sometimes("a person ends a record as failed", |_, state: &State| {
            let mut records = state.database.now.records.iter().flatten();
            state.database.now.row.is_none()
                && records.any(|record| record.state == RecordState::FailedFinal)
        }),
        Property::sometimes(
            "an owner wakes up after its record is gone",
            |_, state: &State| {
                claims(state).any(|(_, claim)| state.database.now.by_id(claim.id).is_none())
            },
        ),
        Property::sometimes("the scanner runs a record again", |_, state: &State| {
            state.processes.iter().any(|process| {
                process.request.is_none() && process.claim().is_some_and(|claim| claim.epoch > 2)
            })
        }),
        Property::sometimes(
            "a commit whose answer was lost takes effect",
            |_, state: &State| {
                claims(state).any(|(process, claim)| {
                    let record = state.database.now.by_id(claim.id);
                    !claim.fenced
                        && process.request.is_some()
                        && record.is_some_and(|(_, record)| record.state == RecordState::Succeeded)
                })
            },
        ),
    ]
}

fn claims(state: &State) -> impl Iterator<Item = (&Process, Claim)> {
    let processes = state.processes.iter();
    processes.filter_map(|process| process.claim().map(|claim| (process, claim)))
}

/// What a caller was told, or a record says, is in the business row, with its points.
fn effect_stays(_: &Protocol, state: &State) -> bool {
    let tables = &state.database.now;
    let stored = tables.records.iter().flatten().map(|record| record.answer);
    let mut acknowledged = state.told.iter().copied().chain(stored).flatten();
    acknowledged.all(|answer| match answer {
        Answer::Refusal => true,
        Answer::Success(content) => tables
            .row
            .is_some_and(|row| row.content == content && row.points > 0),
    })
}

fn records_are_whole(_: &Protocol, state: &State) -> bool {
    state.database.now.records.iter().flatten().all(|record| {
        let answered = match record.answer {
            Some(Answer::Success(_)) => record.state == RecordState::Succeeded,
            Some(Answer::Refusal) => record.state == RecordState::FailedFinal,
            None => !record.state.is_terminal(),
        };
        answered && (!record.lease_is_live || record.state == RecordState::Processing)
    })
}

/// From every state each record can be brought to a terminal state, by one scanner alone: every process stands still for ever,
/// sessions that hold locks are ended, a lost commit is decided either way, leases run out, and then a scanner verifies, takes
/// over and finishes.
///
/// Why not the checker's `eventually`: it wants every path to get there, while a path here may simply not be scheduled (an owner
/// that stands still is the point of the model), and the bounds cut paths off in the middle; besides, it does not look at cycles
/// and may miss a path that joins a visited state. This is the stronger thing that the product promises, that recovery needs
/// nobody's cooperation, and it is checked in every single state, whatever its bounds have left.
fn every_record_can_end(protocol: &Protocol, state: &State) -> bool {
    let rolled_back = recover(protocol, state.clone());
    let committed = match state.database.orphan {
        None => true,
        Some(open) => {
            let mut state = state.clone();
            state.database.orphan = None;
            state.commit_finish(open, &protocol.requests, protocol.mutation);
            recover(protocol, state)
        }
    };
    rolled_back && committed
}

/// Lets a scanner bring every record to its end, and answers whether it could.
fn recover(protocol: &Protocol, mut state: State) -> bool {
    let scanner: Path = 0;
    let faults = state.faults;
    state.database.orphan = None;
    state.processes = [Process::IDLE; PROCESSES];
    for key in 0..state.database.now.records.len() {
        let Some(record) = &mut state.database.now.records[key] else {
            continue;
        };
        record.lease_is_live = false;
        let id = record.id;
        if let Some(suspect) = state.suspect(id) {
            let evidence = state.evidence(&suspect.1);
            state.verify(suspect, evidence, protocol.mutation);
        }
        let Some(record) = state.database.now.records[key] else {
            return false;
        };
        if record.state == RecordState::FailedRetryable {
            let claim = state.reclaim(scanner, id, record.epoch, protocol.mutation);
            let Some(claim) = claim else {
                return false;
            };
            if state.guarded(scanner, claim, protocol.mutation).is_none() {
                return false;
            }
            let open = OpenFinish {
                claim,
                request: None,
                saw_row: state.database.now.row.is_some(),
            };
            state.commit_finish(open, &protocol.requests, protocol.mutation);
        }
    }
    let mut records = state.database.now.records.iter().flatten();
    state.faults == faults
        && records.all(|record| record.state.is_terminal())
        && effect_stays(protocol, &state)
}
