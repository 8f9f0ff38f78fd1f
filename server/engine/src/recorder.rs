//! Writes the arrivals that needed no execution, in sets behind the answers: at most a second late, bounded, flushed at the end.

use std::time::{Duration, Instant};

use backon::{ConstantBuilder, Retryable};
use domain::{ActionType, EndEvent};
use sqlx::PgPool;
use tokio::sync::{mpsc, oneshot};

use crate::{
    StoreError,
    store::arrival::{self, ArrivalRow},
};

/// How long a set is collected. The contract's bound is 1 s.
const COLLECT: Duration = Duration::from_millis(200);
/// The largest set.
const MAX_SET: usize = 512;
/// How many arrivals may wait; beyond it they are written in the path.
const QUEUE: usize = 8192;
/// The pause after a set that could not be written.
const PAUSE: Duration = Duration::from_millis(500);

enum Note {
    Arrival { row: ArrivalRow, since: Instant },
    Event(ActionType, EndEvent),
    Flush(oneshot::Sender<()>),
}

/// The handle.
#[derive(Clone)]
pub(crate) struct Recorder {
    queue: mpsc::Sender<Note>,
    pool: PgPool,
    instance_id: i32,
}

impl Recorder {
    pub(crate) fn start(pool: PgPool, instance_id: i32) -> Self {
        let (queue, notes) = mpsc::channel(QUEUE);
        tokio::spawn(drive(notes, pool.clone(), instance_id));
        Self {
            queue,
            pool,
            instance_id,
        }
    }

    /// Notes an arrival that was answered just now; its `age` is filled in when it is written.
    pub(crate) async fn note_arrival(&self, row: ArrivalRow) {
        let since = Instant::now();
        let Err(full) = self.queue.try_send(Note::Arrival { row, since }) else {
            return;
        };
        let Note::Arrival { row, .. } = full.into_inner() else {
            return;
        };
        if let Err(error) = arrival::insert_arrivals(&self.pool, self.instance_id, &[row]).await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "an arrival could not be recorded"
            );
        }
    }

    /// Notes an event that is no arrival.
    pub(crate) async fn note_event(&self, action: ActionType, event: EndEvent) {
        if self.queue.send(Note::Event(action, event)).await.is_err() {
            tracing::error!(%action, %event, "an event could not be recorded: the recorder has ended");
        }
    }

    /// Waits until everything that was noted before is written.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send(Note::Flush(done)).await.is_ok() {
            let _ = written.await;
        }
    }
}

async fn drive(mut notes: mpsc::Receiver<Note>, pool: PgPool, instance_id: i32) {
    let mut set = Vec::with_capacity(MAX_SET);
    while let Some(first) = notes.recv().await {
        let deadline = tokio::time::Instant::now() + COLLECT;
        let mut hurry = matches!(first, Note::Flush(_));
        set.push(first);
        while !hurry && set.len() < MAX_SET {
            let Ok(Some(note)) = tokio::time::timeout_at(deadline, notes.recv()).await else {
                break;
            };
            hurry = matches!(note, Note::Flush(_));
            set.push(note);
        }
        write(&mut set, &pool, instance_id).await;
    }
}

async fn write(set: &mut Vec<Note>, pool: &PgPool, instance_id: i32) {
    let (mut arrivals, mut events, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for note in set.drain(..) {
        match note {
            Note::Arrival { row, since } => arrivals.push((row, since)),
            Note::Event(action, event) => events.push((action.as_str(), event)),
            Note::Flush(done) => waiting.push(done),
        }
    }
    if !arrivals.is_empty() {
        let insert = || async {
            // Ages grow while this is repeated.
            let aged = |(row, since): &(ArrivalRow, Instant)| ArrivalRow {
                age: row.duration + since.elapsed(),
                ..row.clone()
            };
            let rows: Vec<ArrivalRow> = arrivals.iter().map(aged).collect();
            Ok(arrival::insert_arrivals(pool, instance_id, &rows).await?)
        };
        report(
            "arrivals",
            insert
                .retry(until_written())
                .when(StoreError::is_passing)
                .notify(tell)
                .await,
        );
    }
    if !events.is_empty() {
        let count = || async { Ok(arrival::count_events(pool, instance_id, &events).await?) };
        report(
            "events",
            count
                .retry(until_written())
                .when(StoreError::is_passing)
                .notify(tell)
                .await,
        );
    }
    for done in waiting {
        let _ = done.send(());
    }
}

/// Repeats until the store takes it; only a fault of ours is given up, since repeating it cannot help.
fn until_written() -> ConstantBuilder {
    ConstantBuilder::default()
        .with_delay(PAUSE)
        .without_max_times()
}

fn tell(error: &StoreError, pause: Duration) {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        ?pause,
        "cannot record now, repeating"
    );
}

fn report(what: &str, written: Result<(), StoreError>) {
    if let Err(error) = written {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            what,
            "could not be recorded"
        );
    }
}
