//! What the model remembers: the database, the processes, what callers were told, and how much may still go wrong.

use domain::RecordState;

/// The number of a record, as the database's sequence issues it.
pub(crate) type Id = u8;
/// A fencing number.
pub(crate) type Epoch = u8;
/// Which of the two idempotency keys.
pub(crate) type Key = usize;
/// Which of the processes; at the same time the token of the path that it is on, since it forgets one path before the next.
pub(crate) type Path = usize;

/// How many processes there are.
pub(crate) const PROCESSES: usize = 3;
/// How many keys there are. All are for one business tuple, which is where they can hurt each other.
pub(crate) const KEYS: usize = 2;

/// What is handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Content {
    X,
    Y,
}

/// What a caller sends, and repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) key: Key,
    pub(crate) content: Content,
}

/// An answer that is final: it is stored and replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// Handed in, with the content of the business row that it shows.
    Success(Content),
    /// Refused for good.
    Refusal,
}

/// A row of `idempotency_record`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    pub(crate) id: Id,
    pub(crate) state: RecordState,
    pub(crate) epoch: Epoch,
    /// Whose claim it is; `None` once that path has ended, since nobody can show its token any more.
    pub(crate) token: Option<Path>,
    /// Stands for the stored request and its fingerprint.
    pub(crate) content: Content,
    pub(crate) lease_is_live: bool,
    pub(crate) answer: Option<Answer>,
}

/// The business row of the one tuple, with what is derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) content: Content,
    /// False for a row that another writer left without its points.
    pub(crate) owned: bool,
    pub(crate) points: u8,
    /// More than one only if the unique constraint is taken out.
    pub(crate) copies: u8,
}

/// Everything that a transaction changes, the sequence included: its step is in the log like any other change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tables {
    pub(crate) records: [Option<Record>; KEYS],
    pub(crate) row: Option<Row>,
    pub(crate) next_id: Id,
}

/// A claim as a process remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Claim {
    pub(crate) id: Id,
    pub(crate) epoch: Epoch,
    /// Known to the model only: somebody has verified or taken over the record, or the claim is gone. Nothing may be
    /// written on the strength of it any more.
    pub(crate) fenced: bool,
}

/// A finish that waits for its commit: it holds the row lock of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OpenFinish {
    pub(crate) claim: Claim,
    /// What was asked for; only a finish without a guard goes by it, any other by what the guarded record says.
    pub(crate) request: Option<usize>,
    /// Whether its snapshot shows a business row; only without the unique constraint anybody goes by it.
    pub(crate) saw_row: bool,
}

/// The database: one, and its transactions one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Database {
    /// What statements see.
    pub(crate) now: Tables,
    /// What a crash leaves; `None` when it is all.
    pub(crate) durable: Option<Tables>,
    /// A backend that was sent COMMIT and whose client is gone: nobody knows how it ends, and it still holds its lock.
    pub(crate) orphan: Option<OpenFinish>,
}

/// What the business row says about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Evidence {
    /// It happened, with the same content, whichever key wrote it.
    Present,
    /// Another content stands in its place.
    Other,
    /// It did not happen.
    Absent,
    /// Nobody can tell yet, as with an external provider.
    NotKnown,
}

/// Where a path stands, between two statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// Nothing to do.
    Idle,
    /// About to claim, again: an answer was lost, or somebody else made progress.
    Claiming,
    /// Has seen a record whose lease ran out. The scanner remembers the epoch that it will have when it was fenced.
    Verifying { id: Id, due: Option<Epoch> },
    /// Only if evidence is read before the lock is held: it was.
    VerifyingLate {
        id: Id,
        due: Option<Epoch>,
        evidence: Evidence,
    },
    /// Has seen a record that failed for a reason that may pass.
    Reclaiming { id: Id, epoch: Epoch },
    /// Holds a claim and is about to begin its finish.
    Executing(Claim),
    /// Inside the transaction of its finish.
    Finishing(OpenFinish),
    /// Its tries are used up: about to mark the record as failed for a reason that may pass.
    GivingUp(Claim),
    /// Found no claim: about to read what is true.
    ReadingBack { id: Id },
}

/// A process, on one path at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    /// For whom; `None` for the scanner and for a person.
    pub(crate) request: Option<usize>,
    pub(crate) step: Step,
}

/// What must never happen, noticed at the very step that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub(crate) enum Fault {
    /// A success was answered while no business row says so.
    SuccessWithoutEffect = 1,
    /// One request was given two different final answers.
    TwoFinalAnswers = 1 << 1,
    /// One key was answered by the record of another.
    ForeignAnswer = 1 << 2,
    /// A terminal record was changed.
    TerminalLeft = 1 << 3,
    /// An epoch shrank, or did not grow at a fence or a take-over.
    EpochDidNotGrow = 1 << 4,
    /// A finish was written on the strength of a claim that was fenced or lost.
    FencedOwnerWrote = 1 << 5,
    /// A verdict on a record was written that the business row contradicts.
    FalseVerdict = 1 << 6,
    /// A transition that the state machine does not have.
    NoSuchTransition = 1 << 7,
}

/// The faults so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Faults(u16);

impl Faults {
    pub(crate) fn note(&mut self, fault: Fault) {
        self.0 |= fault as u16;
    }

    pub(crate) fn has(self, fault: Fault) -> bool {
        self.0 & fault as u16 != 0
    }
}

/// How often each thing may still happen. The log may be flushed any number of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Bounds {
    /// Requests that arrive, retries included.
    pub(crate) arrivals: u8,
    /// Leases that run out while somebody may still be on the record.
    pub(crate) leases: u8,
    /// Records that the scanner takes.
    pub(crate) scans: u8,
    /// Compensations by a person.
    pub(crate) by_hand: u8,
    /// Answers of the database that are lost, and finishes that it refuses.
    pub(crate) losses: u8,
    /// Processes that die, or end a path without an answer.
    pub(crate) crashes: u8,
    /// Crashes of the database.
    pub(crate) database_crashes: u8,
    /// Records that are purged.
    pub(crate) purges: u8,
    /// Rows that another writer puts in by plain SQL.
    pub(crate) written_behind: u8,
    /// Verifications that find out nothing.
    pub(crate) not_known: u8,
}

/// A state of the whole system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) database: Database,
    pub(crate) processes: [Process; PROCESSES],
    /// The last final answer to each request.
    pub(crate) told: [Option<Answer>; 2],
    pub(crate) faults: Faults,
    pub(crate) left: Bounds,
}

impl Process {
    pub(crate) const IDLE: Self = Self {
        request: None,
        step: Step::Idle,
    };

    /// The claim that it would write on the strength of.
    pub(crate) fn claim_mut(&mut self) -> Option<&mut Claim> {
        match &mut self.step {
            Step::Executing(claim) | Step::GivingUp(claim) => Some(claim),
            Step::Finishing(open) => Some(&mut open.claim),
            _ => None,
        }
    }

    pub(crate) fn claim(mut self) -> Option<Claim> {
        self.claim_mut().copied()
    }
}

impl Tables {
    /// The key whose record has this number.
    pub(crate) fn key_of(&self, id: Id) -> Option<Key> {
        self.records
            .iter()
            .position(|record| record.is_some_and(|record| record.id == id))
    }

    pub(crate) fn by_id(&self, id: Id) -> Option<(Key, Record)> {
        let key = self.key_of(id)?;
        Some((key, self.records[key]?))
    }
}

impl State {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let now = Tables {
            records: [None; KEYS],
            row: None,
            next_id: 0,
        };
        Self {
            database: Database {
                now,
                durable: None,
                orphan: None,
            },
            processes: [Process::IDLE; PROCESSES],
            told: [None; 2],
            faults: Faults::default(),
            left: bounds,
        }
    }

    /// Whether some transaction holds the lock of this record.
    pub(crate) fn is_locked(&self, id: Id) -> bool {
        self.database.orphan.is_some_and(|open| open.claim.id == id)
            || self
                .processes
                .iter()
                .any(|p| matches!(p.step, Step::Finishing(open) if open.claim.id == id))
    }

    /// Marks every claim of this record, except that of `by`, as void.
    pub(crate) fn fence(&mut self, id: Id, by: Option<Path>) {
        for (path, process) in self.processes.iter_mut().enumerate() {
            if Some(path) == by {
                continue;
            }
            if let Some(claim) = process.claim_mut().filter(|claim| claim.id == id) {
                claim.fenced = true;
            }
        }
    }
}
