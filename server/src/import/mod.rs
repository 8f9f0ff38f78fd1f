//! `server import`: submissions from a CSV file, through the same engine function as every other request.
//!
//! Each row is one arrival under a key that is made of the row alone (`domain::key::import_key`), so a second run, or one
//! that goes on after a kill, finds what is there and completes what is not. Nothing is remembered outside the database and
//! nothing is guessed: a row whose outcome could not be found out is reported as failed.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs::File,
    io::{BufRead, BufReader, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use backon::{ExponentialBuilder, Retryable};
use domain::{IdempotencyKey, action::TASK_SUBMIT, key::import_key};
use engine::{Actor, Arrival, Engine, StoreError, SubmitError};
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    commands,
    serve::told_to_stop,
    settings::{DatabaseSettings, EngineSettings},
};

pub mod file;
pub mod progress;
pub mod report;

use file::{BadFile, Chunk, InvalidRow, Place, Row, RowFile, Work};
use progress::Progress;
use report::{Outcome, Rejects, Report};

/// Names the import among the clients of an account.
const CLIENT_ID: &str = "import";
/// Rows on their way at once: a few sets of the engine's, so that the next one is full while one commits.
const IN_FLIGHT: usize = 256;
/// Content on its way at once, in bytes; each is held several times until it is committed.
const BYTES_IN_FLIGHT: usize = 32 * 1024 * 1024;
/// Chunks that are read ahead.
const CHUNKS_AHEAD: usize = 2;
/// How long a row waits for an execution of its key that is already running: as long as the API's `Prefer: wait` permits.
/// What a killed import left is free before that, when its lease ends.
const WAIT: Duration = Duration::from_secs(30);
/// The first pause before a row is tried again; each next is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause: a database that is back should not wait for us.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a row is tried again: about 20 s of pauses, in which a database restarts or fails over.
const TRIES_AGAIN: usize = 8;
/// How many rows may fail one after the other, before the store is taken to be away and no more rows are taken.
const FAILED_IN_A_ROW: usize = IN_FLIGHT;
/// How long executions may take to end once the last answer is there.
const DRAIN: Duration = Duration::from_secs(20);

/// Why an import did not come to the end of its file.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Somebody stopped it.
    #[error("stopped before the end of the file; run the same command again to go on")]
    Stopped,
    /// Row after row failed.
    #[error(
        "the last {FAILED_IN_A_ROW} rows failed, so no more were tried; once the store is back, run the same command again"
    )]
    StoreAway,
    /// See [`BadFile`].
    #[error(transparent)]
    File(#[from] BadFile),
    /// The rows that were not taken cannot be listed.
    #[error("the list of rows that were not taken cannot be written")]
    Rejects(#[from] csv::Error),
}

/// What an import came to. The report holds whatever the end was.
#[derive(Debug)]
pub struct Imported {
    /// The sums.
    pub report: Report,
    /// The trace under which all of its requests can be found.
    pub trace_id: String,
    /// Whether the file was read to its end.
    pub end: Result<(), ImportError>,
}

/// How an import is told to stop, in two steps.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    take_no_more: CancellationToken,
    wait_no_more: CancellationToken,
}

impl Stop {
    /// Ctrl-C or SIGTERM: the first one is [`Self::take_no_more`], the second one [`Self::wait_no_more`].
    pub fn on_signals() -> Self {
        let stop = Self::default();
        let told = stop.clone();
        tokio::spawn(async move {
            told_to_stop().await;
            told.take_no_more();
            told_to_stop().await;
            told.wait_no_more();
        });
        stop
    }

    /// Takes no more rows; those on their way are finished.
    pub fn take_no_more(&self) {
        self.take_no_more.cancel();
    }

    /// Does not even wait for the rows on their way; they are reported as failed.
    pub fn wait_no_more(&self) {
        self.take_no_more();
        self.wait_no_more.cancel();
    }
}

/// Brings the rows of a file in and prints the report.
///
/// # Errors
/// When the file or the database cannot be used, a row was not taken, or the end of the file was not reached.
pub async fn import(
    settings: &DatabaseSettings,
    as_servers: &EngineSettings,
    path: &Path,
    rejects: Option<&Path>,
) -> anyhow::Result<()> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let metadata = file
        .metadata()
        .with_context(|| format!("cannot open {shown}"))?;
    ensure!(!metadata.is_dir(), "{shown} is a directory");
    let rows = RowFile::open(BufReader::new(file)).with_context(|| shown.to_string())?;
    let listed = rejects.map_or_else(
        || "the list above".to_owned(),
        |rejects| rejects.display().to_string(),
    );
    let mut rejects = open_rejects(path, rejects)?;
    let (database, engine) = commands::open(settings, as_servers.config(CLIENT_ID)).await?;
    let mut progress = Progress::on_stderr(metadata.len());
    let stop = Stop::on_signals();
    let imported = import_rows(&engine, rows, &mut rejects, &mut progress, &stop).await;
    let patience = if stop.wait_no_more.is_cancelled() {
        Duration::ZERO
    } else {
        DRAIN
    };
    engine.stop(patience).await;
    let Imported {
        report,
        trace_id,
        end,
    } = imported;
    eprintln!(
        "{}; the panel finds them by the trace {trace_id}",
        progress.rate()
    );
    write!(std::io::stdout().lock(), "{report}").context("cannot print the report")?;
    database.close().await?;
    end?;
    if report.not_taken() > 0 {
        bail!(
            "{} of {} rows were not taken; {listed} says why",
            report.not_taken(),
            report.rows()
        );
    }
    Ok(())
}

fn open_rejects(file: &Path, rejects: Option<&Path>) -> anyhow::Result<Rejects> {
    let Some(path) = rejects else {
        return Ok(Rejects::new(Box::new(std::io::stderr())));
    };
    let same = |a: &Path, b: &Path| matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b);
    ensure!(
        !same(file, path),
        "--rejects: this is the file that is to be imported"
    );
    let cannot = || format!("--rejects: cannot write {}", path.display());
    let mut rejects = Rejects::new(Box::new(File::create(path).with_context(cannot)?));
    rejects.begin().with_context(cannot)?;
    Ok(rejects)
}

/// Brings the rows of a file in. What happened to them is in the report, whatever ended it.
pub async fn import_rows<R: BufRead + Send + 'static>(
    engine: &Engine,
    file: RowFile<R>,
    rejects: &mut Rejects,
    progress: &mut Progress,
    stop: &Stop,
) -> Imported {
    let mut run = Run {
        engine,
        rejects,
        progress,
        stop,
        trace_id: Uuid::new_v4().simple().to_string(),
        students: HashMap::new(),
        on_their_way: FuturesUnordered::new(),
        waiting: HashMap::new(),
        bytes_waiting: 0,
        last_of: HashMap::new(),
        failed_pairs: HashSet::new(),
        failed_in_a_row: 0,
        next: 0,
        bytes_read: 0,
        report: Report::default(),
    };
    let end = run.run(read_ahead(file)).await;
    run.progress.end();
    Imported {
        end,
        report: run.report,
        trace_id: run.trace_id,
    }
}

/// Reads in a thread of its own: a file may be a pipe that never says anything, and must not hold up the end of the process.
fn read_ahead<R: BufRead + Send + 'static>(
    mut file: RowFile<R>,
) -> mpsc::Receiver<Result<Chunk, BadFile>> {
    let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
    std::thread::spawn(move || {
        while let Some(chunk) = file.next_chunk().transpose() {
            let is_last = chunk.is_err();
            // Nobody listens any more once the import was stopped.
            if sender.blocking_send(chunk).is_err() || is_last {
                return;
            }
        }
    });
    chunks
}

/// A task and a student: rows of one such pair are taken one after the other.
type Pair = (String, String);

/// A row on its way.
struct Waiting {
    place: Place,
    bytes: usize,
}

/// One import while it runs.
struct Run<'a> {
    engine: &'a Engine,
    rejects: &'a mut Rejects,
    progress: &'a mut Progress,
    stop: &'a Stop,
    trace_id: String,
    /// The students that were looked up; at most all there are.
    students: HashMap<String, Arc<Actor>>,
    on_their_way: FuturesUnordered<BoxFuture<'static, (u64, Outcome)>>,
    /// The rows of `on_their_way`, by their number.
    waiting: HashMap<u64, Waiting>,
    bytes_waiting: usize,
    /// The last row of each pair that is on its way, and when it is decided: whether the next one may go.
    last_of: HashMap<Pair, (u64, oneshot::Receiver<bool>)>,
    /// Pairs with a row that failed.
    failed_pairs: HashSet<Pair>,
    failed_in_a_row: usize,
    /// The next row's number.
    next: u64,
    bytes_read: u64,
    report: Report,
}

impl Run<'_> {
    async fn run(
        &mut self,
        mut chunks: mpsc::Receiver<Result<Chunk, BadFile>>,
    ) -> Result<(), ImportError> {
        let mut ticks = tokio::time::interval(progress::LINE_EVERY);
        // The first one comes at once.
        ticks.tick().await;
        let mut end = None;
        while end.is_none() || !self.on_their_way.is_empty() {
            let has_room = self.on_their_way.len() + file::CHUNK_ROWS <= IN_FLIGHT
                && self.bytes_waiting < BYTES_IN_FLIGHT;
            let step = tokio::select! {
                biased;
                () = self.stop.wait_no_more.cancelled() => {
                    end.get_or_insert(Err(ImportError::Stopped));
                    self.abandon()
                }
                () = self.stop.take_no_more.cancelled(), if end.is_none() => {
                    let left = self.on_their_way.len();
                    self.progress.say(|| {
                        eprintln!("Finishing {left} rows that are on their way; Ctrl-C again leaves them.");
                    });
                    Err(ImportError::Stopped)
                }
                Some((number, outcome)) = self.on_their_way.next() => self.settle(number, &outcome),
                chunk = chunks.recv(), if end.is_none() && has_room => match chunk {
                    Some(Ok(chunk)) => self.take(chunk).await,
                    Some(Err(bad)) => Err(bad.into()),
                    None => {
                        end = Some(Ok(()));
                        Ok(())
                    }
                },
                _ = ticks.tick() => {
                    self.progress.tick();
                    self.flush_rejects()
                }
            };
            // The first thing that went wrong is what is told; the rows on their way are finished all the same.
            if let Err(error) = step
                && !matches!(end, Some(Err(_)))
            {
                end = Some(Err(error));
            }
        }
        end.unwrap_or(Ok(())).and(self.flush_rejects())
    }

    /// Sends the rows of a chunk on their way.
    async fn take(&mut self, chunk: Chunk) -> Result<(), ImportError> {
        self.bytes_read = chunk.bytes_read;
        let looked_up = self.look_up(&chunk.rows).await;
        for Row { place, work } in chunk.rows {
            let outcome = match (work, self.students.get(place.student()), &looked_up) {
                (Err(invalid), ..) => Outcome::Invalid(invalid),
                (Ok(work), Some(student), _) => {
                    let student = student.clone();
                    match self.send(place.clone(), work, student) {
                        Ok(()) => continue,
                        Err(outcome) => outcome,
                    }
                }
                (Ok(_), None, Ok(())) => Outcome::Invalid(InvalidRow::UnknownStudent),
                (Ok(_), None, Err(error)) => Outcome::Failed(chain(error)),
            };
            self.decide(&place, &outcome)?;
        }
        Ok(())
    }

    /// Finds the students of these rows that are not known yet, with one statement.
    async fn look_up(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        let unknown: BTreeSet<&str> = rows
            .iter()
            .filter(|row| row.work.is_ok())
            .map(|row| row.place.student())
            .filter(|name| !self.students.contains_key(*name))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = unknown.into_iter().map(str::to_owned).collect();
        let (engine, stop) = (self.engine, self.stop);
        let found = (|| engine.list_students(&names))
            .retry(pauses())
            .when(|error| error.is_passing() && !stop.take_no_more.is_cancelled())
            .await?;
        self.students
            .extend(found.into_iter().map(|s| (s.name.clone(), Arc::new(s))));
        Ok(())
    }

    /// Sends one row on its way, behind the earlier ones of its pair; or says why it must not go.
    fn send(&mut self, place: Place, work: Work, student: Arc<Actor>) -> Result<(), Outcome> {
        let pair = pair_of(&place);
        if self.failed_pairs.contains(&pair) {
            return Err(Outcome::HeldBack);
        }
        let key = import_key(
            place.task_id(),
            &student.id.to_string(),
            work.submit_version,
            &work.content,
        );
        let key = IdempotencyKey::from_text(&key).map_err(|e| Outcome::Failed(e.to_string()))?;
        let number = self.next;
        self.next += 1;
        let bytes = work.content.len();
        let arrival = Arrival {
            action: TASK_SUBMIT,
            key,
            command: serde_json::json!({
                "task_id": place.task_id(),
                "submit_version": work.submit_version,
                "content": work.content,
            }),
            client_id: CLIENT_ID.into(),
            trace_id: self.trace_id.clone(),
            wait: WAIT,
        };
        // RACE: two attempts at one practice task in one set would be judged by one snapshot, in which the second is not the
        // next one; it would be refused, and the refusal kept. So each row waits until the one before it is decided.
        let (decided, next) = oneshot::channel();
        let earlier = self.last_of.insert(pair, (number, next));
        let (engine, stop) = (self.engine.clone(), self.stop.clone());
        self.on_their_way.push(Box::pin(async move {
            let may_go = match earlier {
                Some((_, earlier)) => earlier.await.unwrap_or(false),
                None => true,
            };
            let outcome = if may_go {
                submit(&engine, &student, &arrival, &stop).await
            } else {
                Outcome::HeldBack
            };
            // Nobody may be waiting for it.
            let _ = decided.send(!is_open(&outcome));
            (number, outcome)
        }));
        self.bytes_waiting += bytes;
        self.waiting.insert(number, Waiting { place, bytes });
        Ok(())
    }

    /// Takes the outcome of a row that was on its way.
    fn settle(&mut self, number: u64, outcome: &Outcome) -> Result<(), ImportError> {
        let Some(Waiting { place, bytes }) = self.waiting.remove(&number) else {
            return Ok(());
        };
        self.bytes_waiting -= bytes;
        let pair = pair_of(&place);
        if self.last_of.get(&pair).is_some_and(|(n, _)| *n == number) {
            self.last_of.remove(&pair);
        }
        self.decide(&place, outcome)
    }

    /// Counts a row and lists it when it was not taken.
    fn decide(&mut self, place: &Place, outcome: &Outcome) -> Result<(), ImportError> {
        self.report.count(outcome);
        self.progress.at(self.report.rows(), self.bytes_read);
        if is_open(outcome) {
            self.failed_pairs.insert(pair_of(place));
        }
        match outcome {
            Outcome::Failed(_) => self.failed_in_a_row += 1,
            // They say nothing about the store.
            Outcome::HeldBack | Outcome::Invalid(_) => {}
            _ => self.failed_in_a_row = 0,
        }
        if !outcome.is_taken() {
            let rejects = &mut *self.rejects;
            let mut added = Ok(());
            self.progress.say(|| added = rejects.add(place, outcome));
            added?;
        }
        if self.failed_in_a_row >= FAILED_IN_A_ROW {
            return Err(ImportError::StoreAway);
        }
        Ok(())
    }

    /// Reports the rows on their way as failed, without waiting for them. Their executions may still end well.
    fn abandon(&mut self) -> Result<(), ImportError> {
        self.on_their_way = FuturesUnordered::new();
        let mut left: Vec<u64> = self.waiting.keys().copied().collect();
        left.sort_unstable();
        let outcome = Outcome::Failed("stopped before its outcome was known".into());
        left.into_iter()
            .try_for_each(|number| self.settle(number, &outcome))
    }

    fn flush_rejects(&mut self) -> Result<(), ImportError> {
        let rejects = &mut *self.rejects;
        let mut flushed = Ok(());
        self.progress.say(|| flushed = rejects.flush());
        Ok(flushed?)
    }
}

/// Submits one row and tries again while there is no outcome, always under the same key.
async fn submit(engine: &Engine, student: &Actor, arrival: &Arrival, stop: &Stop) -> Outcome {
    let once = || async {
        match engine.submit(student, arrival.clone()).await {
            Ok(answer) => Outcome::of_answer(&answer).ok_or_else(|| match answer.status {
                202 => "its outcome is not known yet".to_owned(),
                _ => "it failed for now".to_owned(),
            }),
            Err(SubmitError::Store(error)) if error.is_passing() => Err(chain(&error)),
            Err(error) => Ok(Outcome::Failed(chain(&error))),
        }
    };
    once.retry(pauses())
        .when(|_| !stop.take_no_more.is_cancelled())
        .await
        .unwrap_or_else(Outcome::Failed)
}

fn pauses() -> ExponentialBuilder {
    // Jitter, so that the rows that failed together do not come back together.
    ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_factor(2.0)
        .with_max_times(TRIES_AGAIN)
        .with_jitter()
}

fn pair_of(place: &Place) -> Pair {
    (place.task_id().to_owned(), place.student().to_owned())
}

/// Whether the row may still become a submission when it is tried again, so that no later one may overtake it.
const fn is_open(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(_) | Outcome::HeldBack)
}

/// An error with its causes, in one line; a cause that was told already is left out.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = String::new();
    for cause in std::iter::successors(Some(error), |e| e.source()) {
        let text = cause.to_string();
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
    }
    line
}
