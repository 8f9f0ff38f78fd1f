//! Which steps there are from a state, and where each leads: the paths of `submit`, of the scanner and of a person.

use domain::RecordState;
use stateright::{Model, Property};

use crate::{
    database::Claimed,
    mutation::Mutation,
    properties,
    state::{
        Answer, Bounds, Claim, Content, Epoch, Evidence, Fault, Key, OpenFinish, PROCESSES, Path,
        Process, Record, Request, Row, State, Step,
    },
};

/// The protocol, for two requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Protocol {
    pub(crate) requests: [Request; 2],
    /// What another writer puts in, if it does.
    pub(crate) written_behind: Content,
    pub(crate) bounds: Bounds,
    pub(crate) mutation: Mutation,
}

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByHand {
    Complete,
    Release,
    ReExecute,
    Fail,
}

/// One step of somebody. A path that stands still is simply not chosen, so every owner may wake up as late as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A request arrives at a process, which claims its key.
    Submit(Path, usize),
    /// The claim is committed, and its answer is lost.
    SubmitUnheard(Path, usize),
    /// The process claims again.
    Claim(Path),
    /// The scanner sees a record that is due.
    Scan(Path, Key),
    /// Only if evidence is read before the lock is held: reads it.
    Look(Path),
    /// Locks the record, reads the evidence, writes where it leads.
    Verify(Path),
    /// The same, and nobody can tell yet.
    VerifyInVain(Path),
    /// Takes the record over.
    Reclaim(Path),
    /// Begins the finish: the guard takes the row lock.
    BeginFinish(Path),
    /// Commits it, and hears so.
    CommitFinish(Path),
    /// Sends COMMIT, and its connection breaks.
    LoseCommit(Path),
    /// The finish fails, or its session is ended because it stood still, and the tries are used up.
    FailFinish(Path),
    /// Marks the record as failed for a reason that may pass.
    GiveUp(Path),
    /// Reads behind the row lock what is true.
    ReadBack(Path),
    /// A person compensates a record.
    Compensate(Path, Key, ByHand),
    /// A process dies, or its path ends without an answer.
    Crash(Path),
    /// By the database's clock.
    LeaseRunsOut(Key),
    /// The backend whose client is gone commits after all.
    OrphanCommits,
    /// It does not.
    OrphanRollsBack,
    /// The log writer catches up.
    Flush,
    /// The database crashes; whether the numbers of lost claims are issued again.
    CrashDatabase(bool),
    /// An expired record is deleted.
    Purge(Key),
    /// Another writer inserts the business row by plain SQL, without points.
    WriteBehind,
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.bounds)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (path, process) in state.processes.iter().enumerate() {
            self.actions_of_path(state, path, process, actions);
        }
        if let Some(path) = free_path(state) {
            if state.left.arrivals > 0 {
                for request in 0..self.requests.len() {
                    actions.push(Action::Submit(path, request));
                    if state.left.losses > 0 {
                        actions.push(Action::SubmitUnheard(path, request));
                    }
                }
            }
            for (key, record) in records(state) {
                if state.left.scans > 0 && is_due(&record) {
                    actions.push(Action::Scan(path, key));
                }
                if state.left.by_hand > 0 && is_due(&record) && !state.is_locked(record.id) {
                    let permitted = self.permitted(state, &record);
                    actions.extend(permitted.map(|by_hand| Action::Compensate(path, key, by_hand)));
                }
            }
        }
        for (key, record) in records(state) {
            if state.left.leases > 0 && record.lease_is_live {
                actions.push(Action::LeaseRunsOut(key));
            }
            if state.left.purges > 0 && may_purge(state, &record) {
                actions.push(Action::Purge(key));
            }
        }
        let database = &state.database;
        if database.orphan.is_some() {
            actions.extend([Action::OrphanCommits, Action::OrphanRollsBack]);
        }
        if let Some(durable) = database.durable {
            actions.push(Action::Flush);
            if state.left.database_crashes > 0 {
                actions.push(Action::CrashDatabase(true));
                if durable.next_id != database.now.next_id {
                    actions.push(Action::CrashDatabase(false));
                }
            }
        }
        if state.left.written_behind > 0 && database.now.row.is_none() {
            actions.push(Action::WriteBehind);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.step(&mut state, action);
        forget_tokens(&mut state);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// The free process that takes the next path. They are all alike, so it may be the first.
fn free_path(state: &State) -> Option<Path> {
    state
        .processes
        .iter()
        .position(|process| process.step == Step::Idle)
}

fn records(state: &State) -> impl Iterator<Item = (Key, Record)> {
    let records = state.database.now.records;
    records
        .into_iter()
        .enumerate()
        .filter_map(|(key, record)| record.map(|record| (key, record)))
}

/// Unfinished, and nobody is presumed to be on it.
fn is_due(record: &Record) -> bool {
    RecordState::COMPENSABLE.contains(&record.state) && !record.lease_is_live
}

/// Finished, or failed for a reason that may pass and given up on; and no submission holds it.
fn may_purge(state: &State, record: &Record) -> bool {
    let ended = record.state.is_terminal() || record.state == RecordState::FailedRetryable;
    ended && !state.is_locked(record.id)
}

/// A path that has ended shows its token to nobody any more.
fn forget_tokens(state: &mut State) {
    let ended: [bool; PROCESSES] =
        std::array::from_fn(|path| state.processes[path].step == Step::Idle);
    let database = &mut state.database;
    let tables = [Some(&mut database.now), database.durable.as_mut()];
    for record in tables.into_iter().flatten().flat_map(|t| &mut t.records) {
        if let Some(record) = record
            .as_mut()
            .filter(|r| r.token.is_some_and(|t| ended[t]))
        {
            record.token = None;
        }
    }
}

impl Protocol {
    fn actions_of_path(
        &self,
        state: &State,
        path: Path,
        process: &Process,
        actions: &mut Vec<Action>,
    ) {
        let free = |id| !state.is_locked(id);
        let may_fail = state.left.losses > 0;
        match process.step {
            Step::Idle => return,
            Step::Claiming => actions.push(Action::Claim(path)),
            Step::Verifying { .. } if self.mutation == Mutation::EvidenceBeforeLock => {
                actions.push(Action::Look(path));
            }
            // Who needs the lock waits for it.
            Step::Verifying { id, .. } if free(id) => {
                actions.push(Action::Verify(path));
                if state.left.not_known > 0 && state.suspect(id).is_some() {
                    actions.push(Action::VerifyInVain(path));
                }
            }
            Step::VerifyingLate { id, .. } if free(id) => actions.push(Action::Verify(path)),
            Step::Reclaiming { id, .. } if free(id) => actions.push(Action::Reclaim(path)),
            Step::Executing(claim) => {
                if free(claim.id) || self.mutation == Mutation::FinishWithoutGuard {
                    actions.push(Action::BeginFinish(path));
                }
                if may_fail {
                    actions.push(Action::FailFinish(path));
                }
            }
            Step::Finishing(_) => {
                actions.push(Action::CommitFinish(path));
                if may_fail {
                    actions.push(Action::FailFinish(path));
                    if state.database.orphan.is_none() {
                        actions.push(Action::LoseCommit(path));
                    }
                }
            }
            Step::GivingUp(claim) if free(claim.id) => actions.push(Action::GiveUp(path)),
            Step::ReadingBack { id } if free(id) => actions.push(Action::ReadBack(path)),
            _ => {}
        }
        if state.left.crashes > 0 {
            actions.push(Action::Crash(path));
        }
    }

    /// What the evidence permits a person to do.
    fn permitted(&self, state: &State, record: &Record) -> impl Iterator<Item = ByHand> + use<> {
        let evidence = state.evidence(record);
        let absent = evidence == Evidence::Absent;
        let regardless = self.mutation == Mutation::FailWithoutEvidence;
        [
            (evidence == Evidence::Present, ByHand::Complete),
            (
                absent && record.state != RecordState::FailedRetryable,
                ByHand::Release,
            ),
            (absent, ByHand::ReExecute),
            (evidence != Evidence::Present || regardless, ByHand::Fail),
        ]
        .into_iter()
        .filter_map(|(permitted, by_hand)| permitted.then_some(by_hand))
    }

    fn step(&self, state: &mut State, action: Action) {
        match action {
            Action::Submit(path, request) => {
                state.left.arrivals -= 1;
                state.processes[path].request = Some(request);
                self.claim(state, path);
            }
            Action::SubmitUnheard(path, request) => {
                state.left.arrivals -= 1;
                state.left.losses -= 1;
                state.processes[path].request = Some(request);
                state.claim(path, self.requests[request]);
                state.processes[path].step = Step::Claiming;
            }
            Action::Claim(path) => self.claim(state, path),
            Action::Scan(path, key) => {
                state.left.scans -= 1;
                let Some(record) = state.database.now.records[key] else {
                    return;
                };
                state.processes[path].step = if record.state == RecordState::FailedRetryable {
                    Step::Reclaiming {
                        id: record.id,
                        epoch: record.epoch,
                    }
                } else {
                    let fences = record.state == RecordState::Processing;
                    Step::Verifying {
                        id: record.id,
                        due: Some(record.epoch + Epoch::from(fences)),
                    }
                };
            }
            Action::Look(path) => {
                if let Step::Verifying { id, due } = state.processes[path].step {
                    match state.suspect(id) {
                        Some((_, record)) => {
                            state.processes[path].step = Step::VerifyingLate {
                                id,
                                due,
                                evidence: state.evidence(&record),
                            };
                        }
                        None => state.moved_on(path),
                    }
                }
            }
            Action::Verify(path) => self.verify(state, path, false),
            Action::VerifyInVain(path) => {
                state.left.not_known -= 1;
                self.verify(state, path, true);
            }
            Action::Reclaim(path) => {
                if let Step::Reclaiming { id, epoch } = state.processes[path].step {
                    match state.reclaim(path, id, epoch, self.mutation) {
                        Some(claim) => state.processes[path].step = Step::Executing(claim),
                        None => state.moved_on(path),
                    }
                }
            }
            Action::BeginFinish(path) => self.begin_finish(state, path),
            Action::CommitFinish(path) => {
                let Process { request, step } = state.processes[path];
                if let Step::Finishing(open) = step {
                    let answer = state.commit_finish(open, &self.requests, self.mutation);
                    state.processes[path] = Process::IDLE;
                    if let (Some(request), Some((key, answer))) = (request, answer) {
                        self.tell(state, request, key, answer);
                    }
                }
            }
            Action::LoseCommit(path) => {
                state.left.losses -= 1;
                if let Step::Finishing(open) = state.processes[path].step {
                    state.database.orphan = Some(open);
                    // The pipeline tries again.
                    state.processes[path].step = Step::Executing(open.claim);
                }
            }
            Action::FailFinish(path) => {
                state.left.losses -= 1;
                if let Some(claim) = state.processes[path].claim() {
                    state.processes[path].step = Step::GivingUp(claim);
                }
            }
            Action::GiveUp(path) => {
                if let Step::GivingUp(claim) = state.processes[path].step {
                    match state.guarded(path, claim, self.mutation) {
                        Some(guarded) => {
                            state.give_up(claim, guarded);
                            state.processes[path] = Process::IDLE;
                        }
                        None => state.read_back_next(path, claim),
                    }
                }
            }
            Action::ReadBack(path) => self.read_back(state, path),
            Action::Compensate(path, key, by_hand) => self.compensate(state, path, key, by_hand),
            Action::Crash(path) => {
                state.left.crashes -= 1;
                state.processes[path] = Process::IDLE;
            }
            Action::LeaseRunsOut(key) => {
                state.left.leases -= 1;
                for tables in [
                    Some(&mut state.database.now),
                    state.database.durable.as_mut(),
                ] {
                    if let Some(record) = tables.and_then(|t| t.records[key].as_mut()) {
                        record.lease_is_live = false;
                    }
                }
            }
            Action::OrphanCommits => {
                if let Some(open) = state.database.orphan.take() {
                    state.commit_finish(open, &self.requests, self.mutation);
                }
            }
            Action::OrphanRollsBack => state.database.orphan = None,
            Action::Flush => state.flush(),
            Action::CrashDatabase(numbers_again) => {
                state.left.database_crashes -= 1;
                state.crash_database(numbers_again);
            }
            Action::Purge(key) => {
                state.left.purges -= 1;
                state.purge(key, &self.requests);
            }
            Action::WriteBehind => {
                state.left.written_behind -= 1;
                state.database.now.row = Some(Row {
                    content: self.written_behind,
                    owned: false,
                    points: 0,
                    copies: 1,
                });
                state.flush();
            }
        }
    }

    /// Claims, and goes where the record that was found leads.
    fn claim(&self, state: &mut State, path: Path) {
        let Some(request) = state.processes[path].request else {
            return;
        };
        let record = match state.claim(path, self.requests[request]) {
            Claimed::Won(claim) => {
                state.processes[path].step = Step::Executing(claim);
                return;
            }
            Claimed::Found(record) => record,
        };
        let id = record.id;
        let mismatch = record.content != self.requests[request].content;
        state.processes[path].step = match record.state {
            // 422 and 202 are no final answers; that of a terminal record is.
            _ if mismatch || record.lease_is_live => Step::Idle,
            RecordState::Processing | RecordState::Unknown => Step::Verifying { id, due: None },
            RecordState::FailedRetryable => Step::Reclaiming {
                id,
                epoch: record.epoch,
            },
            RecordState::Succeeded | RecordState::FailedFinal => Step::Idle,
        };
        if state.processes[path].step == Step::Idle {
            state.processes[path] = Process::IDLE;
            if let Some(answer) = record.answer.filter(|_| !mismatch) {
                self.tell(state, request, self.requests[request].key, answer);
            }
        }
    }

    fn verify(&self, state: &mut State, path: Path, in_vain: bool) {
        let (id, due, seen) = match state.processes[path].step {
            Step::Verifying { id, due } => (id, due, None),
            Step::VerifyingLate { id, due, evidence } => (id, due, Some(evidence)),
            _ => return,
        };
        let Some(suspect) = state.suspect(id) else {
            return state.moved_on(path);
        };
        let evidence = match seen {
            Some(evidence) => evidence,
            None if in_vain => Evidence::NotKnown,
            None => state.evidence(&suspect.1),
        };
        let verified = state.verify(suspect, evidence, self.mutation);
        match (verified, due) {
            // The caller is told so; the scanner comes back later.
            (RecordState::Unknown, _) => state.processes[path] = Process::IDLE,
            (RecordState::FailedRetryable, Some(epoch)) => {
                state.processes[path].step = Step::Reclaiming { id, epoch };
            }
            _ => state.moved_on(path),
        }
    }

    fn begin_finish(&self, state: &mut State, path: Path) {
        let Process { request, step } = state.processes[path];
        let Step::Executing(claim) = step else {
            return;
        };
        let unguarded = self.mutation == Mutation::FinishWithoutGuard;
        if !unguarded && state.guarded(path, claim, self.mutation).is_none() {
            return state.read_back_next(path, claim);
        }
        // With the constraint nobody goes by the snapshot, so it is no difference between states.
        let by_snapshot = self.mutation == Mutation::EffectWithoutUniqueConstraint;
        state.processes[path].step = Step::Finishing(OpenFinish {
            claim,
            request: request.filter(|_| unguarded),
            saw_row: by_snapshot && state.database.now.row.is_some(),
        });
    }

    /// What is true now, for the caller of an owner that found no claim.
    fn read_back(&self, state: &mut State, path: Path) {
        let Process { request, step } = state.processes[path];
        let (Some(request), Step::ReadingBack { id }) = (request, step) else {
            return;
        };
        let asked = self.requests[request];
        let record =
            state.database.now.by_id(id).filter(|(key, _)| {
                *key == asked.key || self.mutation == Mutation::ReadBackWithoutKey
            });
        // Its own commit is flushed.
        state.flush();
        match record {
            // Forgotten or purged: claim again. Not done: do it now.
            None => state.processes[path].step = Step::Claiming,
            Some((_, record)) if record.state == RecordState::FailedRetryable => {
                state.processes[path].step = Step::Claiming;
            }
            Some((key, record)) => {
                state.processes[path] = Process::IDLE;
                if let Some(answer) = record.answer.filter(|_| record.content == asked.content) {
                    self.tell(state, request, key, answer);
                }
            }
        }
    }

    /// One transaction: locks the record, looks at the evidence, does what it permits.
    fn compensate(&self, state: &mut State, path: Path, key: Key, by_hand: ByHand) {
        state.left.by_hand -= 1;
        let Some(record) = state.database.now.records[key] else {
            return;
        };
        let locked = (key, record);
        match by_hand {
            ByHand::Complete => state.complete_by_hand(locked, self.mutation),
            ByHand::Fail => state.fail_by_hand(locked, self.mutation),
            ByHand::Release => {
                state.verify(locked, Evidence::Absent, self.mutation);
            }
            ByHand::ReExecute => {
                if record.state != RecordState::FailedRetryable {
                    state.verify(locked, Evidence::Absent, self.mutation);
                }
                let epoch = state.database.now.records[key].map_or(0, |record| record.epoch);
                if let Some(claim) = state.reclaim(path, record.id, epoch, self.mutation) {
                    state.processes[path].step = Step::Executing(claim);
                }
            }
        }
    }

    /// Gives a request its final answer, by the record of a key.
    fn tell(&self, state: &mut State, request: usize, key: Key, answer: Answer) {
        let asked = self.requests[request];
        if key != asked.key {
            state.faults.note(Fault::ForeignAnswer);
        }
        if let Answer::Success(content) = answer {
            let row = state.database.now.row;
            if content != asked.content || row.is_none_or(|row| row.content != content) {
                state.faults.note(Fault::SuccessWithoutEffect);
            }
        }
        if state.told[request].is_some_and(|told| told != answer) {
            state.faults.note(Fault::TwoFinalAnswers);
        }
        state.told[request] = Some(answer);
    }
}

impl State {
    /// Somebody else made progress: a request looks again, the scanner leaves it to them.
    fn moved_on(&mut self, path: Path) {
        let process = &mut self.processes[path];
        match process.request {
            Some(_) => process.step = Step::Claiming,
            None => *process = Process::IDLE,
        }
    }

    /// A claim was not found: whoever has a caller finds out what is true.
    fn read_back_next(&mut self, path: Path, claim: Claim) {
        let process = &mut self.processes[path];
        match process.request {
            Some(_) => process.step = Step::ReadingBack { id: claim.id },
            None => *process = Process::IDLE,
        }
    }
}
