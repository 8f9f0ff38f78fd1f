//! The protocol as a model: every interleaving of three processes, two keys of one business tuple, a scanner, a person and a
//! database, within bounds. Each transition of a record is `domain`'s own, so model and code cannot disagree about the states.
//!
//! Modelled, each transaction as one step because its locks make it one, except where a step in between matters:
//!
//! * claim: the insert or what is found instead; it may be unflushed, and lost when the database crashes; its number may then be
//!   issued again. Its answer may be lost, and the next claim with the same token finds it.
//! * finish: the guard takes the record's lock; later the effect (`ON CONFLICT DO NOTHING`), its points and the record are committed.
//!   Between the two it may fail, die or lose its connection; in that case the backend commits or rolls back whenever it likes,
//!   holding the lock, while its client tries again, gives up or reads back.
//! * leases that run out at any moment, verification by a retry and by the scanner, take-over, compensation by a person under the
//!   rules of evidence, the purge with retries that come after it, a row that another writer puts in by plain SQL, and verification
//!   that cannot tell yet (an external effect). An owner that stands still is one that is not scheduled for a while.
//!
//! Left out: sets (an item of a set behaves like a set of one), joins at one process, arrivals and counters; their tests are in `it`.
//! The external call with its hold is a model of its own, [`outside`].
//!
//! `YICI_MODEL=full` (`make model`) takes larger bounds than a plain `cargo test` can afford.

mod database;
mod mutation;
mod outside;
mod properties;
mod protocol;
mod state;

use std::{collections::BTreeSet, time::Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path, Property};

use mutation::Mutation;
use properties as p;
use protocol::{Action, Protocol};
use state::{Bounds, Content, Request, State};

/// Two devices hand in the same.
const SAME_CONTENT: [Request; 2] = [request(0, Content::X), request(1, Content::X)];
/// Two devices hand in different things.
const OTHER_CONTENT: [Request; 2] = [request(0, Content::X), request(1, Content::Y)];
/// One key is used for different things.
const KEY_REUSED: [Request; 2] = [request(0, Content::X), request(0, Content::Y)];

const fn request(key: usize, content: Content) -> Request {
    Request { key, content }
}

/// Nothing happens.
const NOTHING: Bounds = Bounds {
    arrivals: 0,
    leases: 0,
    scans: 0,
    by_hand: 0,
    losses: 0,
    crashes: 0,
    database_crashes: 0,
    purges: 0,
    written_behind: 0,
    not_known: 0,
};

/// What may go wrong together, as far as a debug build gets in seconds.
const QUICK: &[(&str, Bounds)] = &[
    (
        "crashes",
        Bounds {
            arrivals: 2,
            leases: 2,
            scans: 1,
            crashes: 1,
            database_crashes: 1,
            ..NOTHING
        },
    ),
    (
        "lost answers",
        Bounds {
            arrivals: 2,
            leases: 2,
            scans: 1,
            losses: 1,
            database_crashes: 1,
            ..NOTHING
        },
    ),
    (
        "people and time",
        Bounds {
            arrivals: 2,
            leases: 2,
            by_hand: 1,
            purges: 1,
            written_behind: 1,
            not_known: 1,
            ..NOTHING
        },
    ),
];

/// The same, and all of it at once, as far as a release build gets in some seconds each.
const FULL: &[(&str, Bounds)] = &[
    (
        "crashes",
        Bounds {
            arrivals: 3,
            leases: 2,
            scans: 1,
            crashes: 1,
            database_crashes: 1,
            ..NOTHING
        },
    ),
    (
        "lost answers",
        Bounds {
            arrivals: 3,
            leases: 2,
            scans: 1,
            losses: 1,
            database_crashes: 1,
            ..NOTHING
        },
    ),
    (
        "people and time",
        Bounds {
            arrivals: 3,
            leases: 2,
            scans: 1,
            by_hand: 1,
            purges: 1,
            written_behind: 1,
            not_known: 1,
            ..NOTHING
        },
    ),
    (
        "everything once",
        Bounds {
            arrivals: 2,
            leases: 1,
            scans: 1,
            by_hand: 1,
            losses: 1,
            crashes: 1,
            database_crashes: 1,
            purges: 1,
            written_behind: 1,
            not_known: 1,
        },
    ),
];

fn protocol(requests: [Request; 2], bounds: Bounds, mutation: Mutation) -> Protocol {
    Protocol {
        requests,
        written_behind: Content::X,
        bounds,
        mutation,
    }
}

/// Whether the large bounds are asked for.
fn is_full() -> bool {
    match std::env::var("YICI_MODEL").as_deref() {
        Ok("full") => true,
        Err(_) | Ok("quick") => false,
        Ok(other) => panic!("YICI_MODEL is quick or full, not {other:?}"),
    }
}

/// Checks the real protocol within every set of bounds, says how far that went, and asserts that what is worth checking occurred.
fn assert_holds(requests: [Request; 2]) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut reached = BTreeSet::new();
    for (name, bounds) in if is_full() { FULL } else { QUICK } {
        let begin = Instant::now();
        let protocol = protocol(requests, *bounds, Mutation::None);
        let checker = protocol.checker().threads(threads).spawn_bfs().join();
        println!(
            "{name}: {} states, {} steps, depth {}, {:.1?}",
            checker.unique_state_count(),
            checker.state_count(),
            checker.max_depth(),
            begin.elapsed()
        );
        for property in checker.model().properties() {
            let wanted = property.expectation == Expectation::Sometimes;
            match (wanted, checker.discovery(property.name)) {
                (true, Some(_)) => {
                    reached.insert(property.name);
                }
                (_, None) => {}
                (false, Some(path)) => {
                    let actions = until_broken(checker.model(), &property, path);
                    panic!("{name}: not so: {}: {actions:?}", property.name);
                }
            }
        }
    }
    for property in protocol(requests, NOTHING, Mutation::None).properties() {
        let wanted = property.expectation == Expectation::Sometimes;
        assert!(
            !wanted || reached.contains(property.name),
            "never within these bounds: {}",
            property.name
        );
    }
}

/// Asserts that the checker sees a mutation break a property, and that without the mutation nothing is broken within the same
/// bounds.
fn assert_breaks(
    mutation: Mutation,
    requests: [Request; 2],
    bounds: Bounds,
    property: &'static str,
) {
    let real = protocol(requests, bounds, Mutation::None);
    let real = real.checker().spawn_bfs().join();
    for property in real.model().properties() {
        let broken =
            property.expectation == Expectation::Always && real.discovery(property.name).is_some();
        assert!(!broken, "broken without a mutation: {}", property.name);
    }
    let mutated = protocol(requests, bounds, mutation);
    let checker = mutated
        .checker()
        .finish_when(HasDiscoveries::AnyOf([property].into()))
        .spawn_bfs()
        .join();
    let Some(path) = checker.discovery(property) else {
        panic!("{mutation:?} went unnoticed: {property}");
    };
    let property = checker.model().property(property);
    let actions = until_broken(checker.model(), &property, path);
    println!("{mutation:?}, not so: {}: {actions:?}", property.name);
}

/// The steps up to the first state that breaks a property; the checker reports a path that may go on after it.
fn until_broken(
    protocol: &Protocol,
    property: &Property<Protocol>,
    path: Path<State, Action>,
) -> Vec<Action> {
    path.into_vec()
        .into_iter()
        .take_while(|(state, _)| (property.condition)(protocol, state))
        .filter_map(|(_, action)| action)
        .collect()
}

#[test]
fn the_same_from_two_devices_has_one_effect_in_every_interleaving() {
    assert_holds(SAME_CONTENT);
}

#[test]
fn different_things_from_two_devices_have_one_effect_in_every_interleaving() {
    assert_holds(OTHER_CONTENT);
}

#[test]
fn a_key_that_is_used_for_two_things_has_one_effect_in_every_interleaving() {
    assert_holds(KEY_REUSED);
}

/// Owners that stand still beyond their leases, retries and the scanner.
const LATE_OWNERS: Bounds = Bounds {
    arrivals: 2,
    leases: 2,
    scans: 1,
    ..NOTHING
};
/// A person compensates.
const COMPENSATION: Bounds = Bounds {
    arrivals: 2,
    leases: 1,
    by_hand: 1,
    ..NOTHING
};
/// The database forgets what was not flushed.
const DATABASE_CRASH: Bounds = Bounds {
    arrivals: 2,
    database_crashes: 1,
    ..NOTHING
};

#[test]
fn a_finish_without_its_guard_changes_a_finished_record() {
    let mutation = Mutation::FinishWithoutGuard;
    assert_breaks(mutation, SAME_CONTENT, COMPENSATION, p::TERMINAL_STAYS);
}

#[test]
fn a_finish_without_its_guard_gives_one_request_two_final_answers() {
    let mutation = Mutation::FinishWithoutGuard;
    assert_breaks(mutation, SAME_CONTENT, COMPENSATION, p::ONE_FINAL_ANSWER);
}

#[test]
fn a_guard_without_the_epoch_lets_a_late_owner_finish_after_a_take_over() {
    let mutation = Mutation::GuardWithoutEpoch;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::FENCED_IS_SILENT);
}

#[test]
fn a_guard_without_the_token_lets_a_forgotten_claim_finish_another_keys_record() {
    let mutation = Mutation::GuardWithoutToken;
    assert_breaks(mutation, SAME_CONTENT, DATABASE_CRASH, p::OWN_ANSWER);
    assert_breaks(mutation, OTHER_CONTENT, DATABASE_CRASH, p::FENCED_IS_SILENT);
}

#[test]
fn a_guard_without_the_token_acknowledges_what_was_never_handed_in() {
    let mutation = Mutation::GuardWithoutToken;
    assert_breaks(
        mutation,
        OTHER_CONTENT,
        DATABASE_CRASH,
        p::SUCCESS_HAS_EFFECT,
    );
    assert_breaks(mutation, KEY_REUSED, DATABASE_CRASH, p::SUCCESS_HAS_EFFECT);
}

#[test]
fn reading_back_by_the_number_alone_answers_with_the_record_of_another_key() {
    let mutation = Mutation::ReadBackWithoutKey;
    assert_breaks(mutation, SAME_CONTENT, DATABASE_CRASH, p::OWN_ANSWER);
}

#[test]
fn verification_without_a_fence_lets_the_late_owner_have_its_effect_after_all() {
    let mutation = Mutation::VerificationWithoutFence;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::FENCED_IS_SILENT);
}

#[test]
fn verification_without_a_fence_leaves_a_record_that_nobody_can_end() {
    let mutation = Mutation::VerificationWithoutFence;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::EVERY_RECORD_CAN_END);
}

#[test]
fn verification_without_a_new_epoch_is_noticed() {
    let mutation = Mutation::VerificationWithoutEpochBump;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::EPOCHS_GROW);
}

#[test]
fn a_take_over_without_a_new_epoch_is_noticed() {
    let mutation = Mutation::TakeOverWithoutEpochBump;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::EPOCHS_GROW);
}

#[test]
fn a_take_over_without_its_guard_reopens_a_finished_record() {
    let mutation = Mutation::TakeOverWithoutGuard;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::TERMINAL_STAYS);
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::TRANSITIONS_EXIST);
}

#[test]
fn evidence_that_was_read_before_the_lock_leads_to_a_false_verdict() {
    let mutation = Mutation::EvidenceBeforeLock;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::VERDICTS_ARE_TRUE);
}

#[test]
fn without_the_unique_constraint_two_keys_have_two_effects() {
    let mutation = Mutation::EffectWithoutUniqueConstraint;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::ONE_EFFECT);
}

#[test]
fn without_unique_sources_points_are_given_twice() {
    let mutation = Mutation::DerivedWithoutUniqueSource;
    assert_breaks(mutation, SAME_CONTENT, LATE_OWNERS, p::ONE_EFFECT);
}

#[test]
fn a_finish_that_is_answered_before_it_is_flushed_can_be_lost() {
    let mutation = Mutation::FinishNotFlushed;
    assert_breaks(mutation, SAME_CONTENT, DATABASE_CRASH, p::EFFECT_STAYS);
}

#[test]
fn a_failure_by_hand_without_evidence_denies_what_has_happened() {
    let mutation = Mutation::FailWithoutEvidence;
    assert_breaks(mutation, SAME_CONTENT, COMPENSATION, p::VERDICTS_ARE_TRUE);
}
