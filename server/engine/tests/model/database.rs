//! The transactions, each as atomic as the real one, and what a crash of the database leaves of them.

use domain::{RecordState, state::RecordEvent};

use crate::{
    mutation::Mutation,
    state::{
        Answer, Claim, Content, Epoch, Evidence, Fault, Faults, Id, Key, OpenFinish, Path, Record,
        Request, Row, State, Step, Tables,
    },
};

/// How a claim came out.
pub(crate) enum Claimed {
    Won(Claim),
    Found(Record),
}

/// The state after an event, by the state machine of the product.
fn applied(state: RecordState, event: RecordEvent, faults: &mut Faults) -> RecordState {
    state.apply(event).unwrap_or_else(|_| {
        faults.note(Fault::NoSuchTransition);
        // What a statement without a guard writes all the same.
        match event {
            RecordEvent::FinishSucceeded | RecordEvent::VerifiedPresent => RecordState::Succeeded,
            RecordEvent::FinishFailedFinal | RecordEvent::FailByHand => RecordState::FailedFinal,
            RecordEvent::FinishFailedRetryable | RecordEvent::VerifiedAbsent => {
                RecordState::FailedRetryable
            }
            RecordEvent::LeaseRanOut | RecordEvent::FinishUnknown => RecordState::Unknown,
            RecordEvent::Reclaim => RecordState::Processing,
        }
    })
}

impl State {
    /// `INSERT … ON CONFLICT DO NOTHING`, and the record of the key if there is one already. It need not be on disk yet.
    pub(crate) fn claim(&mut self, path: Path, request: Request) -> Claimed {
        let tables = &mut self.database.now;
        if let Some(record) = tables.records[request.key] {
            // One's own token: one's own claim, whose answer was lost.
            if record.state == RecordState::Processing && record.token == Some(path) {
                return Claimed::Won(Claim {
                    id: record.id,
                    epoch: record.epoch,
                    fenced: false,
                });
            }
            return Claimed::Found(record);
        }
        self.database.durable.get_or_insert(*tables);
        let id = tables.next_id;
        tables.next_id += 1;
        tables.records[request.key] = Some(Record {
            id,
            state: RecordState::Processing,
            epoch: 1,
            token: Some(path),
            content: request.content,
            lease_is_live: true,
            answer: None,
        });
        Claimed::Won(Claim {
            id,
            epoch: 1,
            fenced: false,
        })
    }

    /// The guard: the record of a claim that still holds.
    pub(crate) fn guarded(
        &self,
        path: Path,
        claim: Claim,
        mutation: Mutation,
    ) -> Option<(Key, Record)> {
        let (key, record) = self.database.now.by_id(claim.id)?;
        let holds = match mutation {
            Mutation::FinishWithoutGuard => true,
            Mutation::GuardWithoutEpoch => record.state == RecordState::Processing,
            Mutation::GuardWithoutToken => {
                record.state == RecordState::Processing && record.epoch == claim.epoch
            }
            _ => {
                record.state == RecordState::Processing
                    && record.epoch == claim.epoch
                    && record.token == Some(path)
            }
        };
        holds.then_some((key, record))
    }

    /// What the business row says about a record.
    pub(crate) fn evidence(&self, record: &Record) -> Evidence {
        match self.database.now.row {
            None => Evidence::Absent,
            Some(row) if row.content == record.content => Evidence::Present,
            Some(_) => Evidence::Other,
        }
    }

    /// Commits a finish whose guard's lock is held: the effect, its derived rows, the record. Answers what the record says now.
    pub(crate) fn commit_finish(
        &mut self,
        open: OpenFinish,
        requests: &[Request; 2],
        mutation: Mutation,
    ) -> Option<(Key, Answer)> {
        if open.claim.fenced {
            self.faults.note(Fault::FencedOwnerWrote);
        }
        let guarded = self.database.now.by_id(open.claim.id);
        let asked = open.request.map(|request| requests[request].content);
        let content = guarded.map(|(_, record)| record.content).or(asked)?;
        let before = self.database.now;
        let answer = self.run_effects(content, open.saw_row, mutation);
        let event = match answer {
            Answer::Success(_) => RecordEvent::FinishSucceeded,
            Answer::Refusal => RecordEvent::FinishFailedFinal,
        };
        if let Some((key, record)) = guarded {
            let state = applied(record.state, event, &mut self.faults);
            self.write(key, Record { state, ..record }.ended(Some(answer)), false);
        }
        if mutation == Mutation::FinishNotFlushed {
            self.database.durable.get_or_insert(before);
        } else {
            self.flush();
        }
        guarded.map(|(key, _)| (key, answer))
    }

    fn run_effects(&mut self, content: Content, saw_row: bool, mutation: Mutation) -> Answer {
        let unique = mutation != Mutation::EffectWithoutUniqueConstraint;
        match &mut self.database.now.row {
            Some(row) if !unique && !saw_row => {
                row.copies += 1;
                row.points += 1;
                Answer::Success(content)
            }
            // ON CONFLICT DO NOTHING.
            Some(row) if row.content == content => {
                Self::complete_effects(row, mutation);
                Answer::Success(content)
            }
            Some(_) => Answer::Refusal,
            none => {
                *none = Some(Row {
                    content,
                    owned: true,
                    points: 1,
                    copies: 1,
                });
                Answer::Success(content)
            }
        }
    }

    /// Adds what another writer left out.
    fn complete_effects(row: &mut Row, mutation: Mutation) {
        if !row.owned || mutation == Mutation::DerivedWithoutUniqueSource {
            row.owned = true;
            row.points += 1;
        }
    }

    /// Marks a guarded record as failed for a reason that may pass.
    pub(crate) fn give_up(&mut self, claim: Claim, (key, record): (Key, Record)) {
        if claim.fenced {
            self.faults.note(Fault::FencedOwnerWrote);
        }
        let event = RecordEvent::FinishFailedRetryable;
        let state = applied(record.state, event, &mut self.faults);
        self.write(key, Record { state, ..record }.ended(None), false);
        self.flush();
    }

    /// A record that may be verified: its lease ran out, or it is UNKNOWN.
    pub(crate) fn suspect(&self, id: Id) -> Option<(Key, Record)> {
        self.database.now.by_id(id).filter(|(_, record)| {
            record.state == RecordState::Unknown
                || record.state == RecordState::Processing && !record.lease_is_live
        })
    }

    /// Fences a suspect and writes where the evidence leads.
    pub(crate) fn verify(
        &mut self,
        (key, record): (Key, Record),
        evidence: Evidence,
        mutation: Mutation,
    ) -> RecordState {
        let fenced = self.lease_ran_out(record, mutation);
        let event = match evidence {
            Evidence::Present => RecordEvent::VerifiedPresent,
            // Running again finds the constraint and says so.
            Evidence::Other | Evidence::Absent => RecordEvent::VerifiedAbsent,
            Evidence::NotKnown => {
                self.fence(record.id, None);
                self.write(
                    key,
                    fenced.ended(None),
                    record.state == RecordState::Processing,
                );
                self.flush();
                return fenced.state;
            }
        };
        let is_there = self.evidence(&record) == Evidence::Present;
        if is_there != (event == RecordEvent::VerifiedPresent) {
            self.faults.note(Fault::FalseVerdict);
        }
        self.fence(record.id, None);
        if mutation == Mutation::VerificationWithoutFence && evidence == Evidence::Absent {
            return record.state;
        }
        let answer = is_there.then_some(Answer::Success(record.content));
        if let Some(row) = self.database.now.row.as_mut().filter(|_| is_there) {
            Self::complete_effects(row, mutation);
        }
        let state = applied(fenced.state, event, &mut self.faults);
        let verified = Record { state, ..fenced }.ended(answer);
        self.write(key, verified, record.state == RecordState::Processing);
        self.flush();
        state
    }

    /// A suspect under its next epoch.
    fn lease_ran_out(&mut self, record: Record, mutation: Mutation) -> Record {
        if record.state != RecordState::Processing {
            return record;
        }
        Record {
            state: applied(record.state, RecordEvent::LeaseRanOut, &mut self.faults),
            epoch: record.epoch + Epoch::from(mutation != Mutation::VerificationWithoutEpochBump),
            ..record
        }
    }

    /// Takes a record over that was seen as FAILED_RETRYABLE; `None` when it has moved on.
    pub(crate) fn reclaim(
        &mut self,
        path: Path,
        id: Id,
        epoch: Epoch,
        mutation: Mutation,
    ) -> Option<Claim> {
        let (key, record) = self.database.now.by_id(id).filter(|(_, record)| {
            mutation == Mutation::TakeOverWithoutGuard
                || record.state == RecordState::FailedRetryable && record.epoch == epoch
        })?;
        let claim = Claim {
            id,
            epoch: record.epoch + Epoch::from(mutation != Mutation::TakeOverWithoutEpochBump),
            fenced: false,
        };
        let taken = Record {
            state: applied(record.state, RecordEvent::Reclaim, &mut self.faults),
            epoch: claim.epoch,
            token: Some(path),
            lease_is_live: true,
            answer: None,
            ..record
        };
        self.fence(id, Some(path));
        self.write(key, taken, true);
        self.flush();
        Some(claim)
    }

    /// A person says that it happened: only with the business row.
    pub(crate) fn complete_by_hand(&mut self, (key, record): (Key, Record), mutation: Mutation) {
        if record.state == RecordState::FailedRetryable {
            let state = applied(record.state, RecordEvent::VerifiedPresent, &mut self.faults);
            if let Some(row) = self.database.now.row.as_mut() {
                Self::complete_effects(row, mutation);
            }
            let answer = Some(Answer::Success(record.content));
            self.write(key, Record { state, ..record }.ended(answer), false);
            self.flush();
        } else {
            self.verify((key, record), Evidence::Present, mutation);
        }
    }

    /// A person ends it as refused for good: not with a business row of the same content.
    pub(crate) fn fail_by_hand(&mut self, (key, record): (Key, Record), mutation: Mutation) {
        if self.evidence(&record) == Evidence::Present {
            self.faults.note(Fault::FalseVerdict);
        }
        let fenced = self.lease_ran_out(record, mutation);
        let state = applied(fenced.state, RecordEvent::FailByHand, &mut self.faults);
        self.fence(record.id, None);
        self.write(
            key,
            Record { state, ..fenced }.ended(Some(Answer::Refusal)),
            record.state == RecordState::Processing,
        );
        self.flush();
    }

    /// Deletes a record that has expired.
    pub(crate) fn purge(&mut self, key: Key, requests: &[Request; 2]) {
        let Some(record) = self.database.now.records[key].take() else {
            return;
        };
        self.fence(record.id, None);
        for (told, request) in self.told.iter_mut().zip(requests) {
            // From now on the business constraint answers: a success for ever, a refusal may be judged anew.
            if request.key == key && *told == Some(Answer::Refusal) {
                *told = None;
            }
        }
        self.flush();
    }

    /// The log up to here is on disk.
    pub(crate) fn flush(&mut self) {
        self.database.durable = None;
    }

    /// Postgres crashes and recovers. Open transactions are rolled back, and what was not flushed never happened. Its sequence
    /// steps 32 numbers ahead in the log: either the lost claim's number is issued again, or it is skipped.
    pub(crate) fn crash_database(&mut self, numbers_again: bool) {
        let database = &mut self.database;
        let next_id = database.now.next_id;
        database.orphan = None;
        database.now = database.durable.take().unwrap_or(database.now);
        if !numbers_again {
            database.now.next_id = next_id;
        }
        let tables: Tables = database.now;
        for (path, process) in self.processes.iter_mut().enumerate() {
            if let Step::Finishing(open) = process.step {
                process.step = Step::Executing(open.claim);
            }
            if let Some(claim) = process.claim_mut() {
                claim.fenced |= !tables.by_id(claim.id).is_some_and(|(_, record)| {
                    record.epoch == claim.epoch && record.token == Some(path)
                });
            }
        }
    }

    /// Writes a record and notices what no write may do.
    fn write(&mut self, key: Key, record: Record, fences: bool) {
        if let Some(before) = self.database.now.records[key] {
            if before.state.is_terminal() && before != record {
                self.faults.note(Fault::TerminalLeft);
            }
            if record.epoch < before.epoch || fences && record.epoch == before.epoch {
                self.faults.note(Fault::EpochDidNotGrow);
            }
        }
        self.database.now.records[key] = Some(record);
    }
}

impl Record {
    /// Without a lease, and with this answer.
    fn ended(self, answer: Option<Answer>) -> Self {
        Self {
            lease_is_live: false,
            answer,
            ..self
        }
    }
}
