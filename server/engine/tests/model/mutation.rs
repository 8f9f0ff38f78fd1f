//! Ways to break the protocol, each by taking one of its mechanisms out. The checker must notice every one.
//!
//! Some mechanisms cover for each other. Verification, for instance, fences by the state that it writes as well as by the epoch,
//! and the token tells claims apart that share an epoch; without the one a late owner may still be stopped by the other. Such a
//! mutation breaks the rule itself (`epochs grow`) before it breaks what the rule is for.

/// What is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// Nothing: the real protocol.
    None,
    /// The effects and the record's update are not fed by the guard.
    FinishWithoutGuard,
    /// The guard looks at the state alone, so a claim that was taken over passes for the new one.
    GuardWithoutEpoch,
    /// The guard looks at the number of the record, its state and its epoch. A database that forgot an unflushed claim issues its
    /// number again, under the same first epoch, and maybe to another key.
    GuardWithoutToken,
    /// What is true is read by the record's number, whichever key has it now.
    ReadBackWithoutKey,
    /// Verification says what it saw, but leaves the claim as it is.
    VerificationWithoutFence,
    /// Verification moves the state, but not the epoch.
    VerificationWithoutEpochBump,
    /// A take-over goes on under the epoch that it found.
    TakeOverWithoutEpochBump,
    /// A take-over does not look at the epoch nor at the state that it has seen the record in.
    TakeOverWithoutGuard,
    /// Evidence is read first, and the record locked after.
    EvidenceBeforeLock,
    /// A finish looks whether there is a business row, and inserts one if not.
    EffectWithoutUniqueConstraint,
    /// The derived rows are not unique per source: completing an effect adds them again.
    DerivedWithoutUniqueSource,
    /// A finish is answered before it is on disk.
    FinishNotFlushed,
    /// A person may end a record as failed without evidence.
    FailWithoutEvidence,
}
