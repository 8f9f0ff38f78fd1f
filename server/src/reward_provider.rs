//! `server reward-provider`: a small provider of rewards for the demo and the tests. It gives each key once, remembers it in a
//! file, and can be told to misbehave as real ones do.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context;
use axum::{
    Json, Router,
    extract::{Path as PathParam, State},
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Gives and says so.
    Ok,
    /// Gives, and says so too late.
    Slow,
    /// Gives, and cuts the connection without a word.
    LoseAnswer,
    /// Fails with 500 before it gives.
    Error,
    /// Gives, and answers 500.
    ErrorAfter,
    /// Refuses for good, 422.
    Refuse,
    /// Answers 503 to everything, also to questions.
    Down,
}

/// What one POST asked for, and whether it gave something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The `Idempotency-Key`.
    pub key: String,
    /// The reward.
    pub reward_id: String,
    /// The student.
    pub student_id: String,
    /// The points.
    pub points: i64,
    /// Whether this call gave it; a repeated key and a failure give nothing.
    pub given: bool,
    /// The caller's trace.
    pub traceparent: Option<String>,
}

/// The body of a call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    reward_id: String,
    student_id: String,
    points: i64,
}

struct Inner {
    mode: Mode,
    entries: Vec<Entry>,
    given: HashMap<String, usize>,
    file: Option<File>,
}

/// The provider: a cheap handle.
#[derive(Clone)]
pub struct Provider {
    inner: Arc<Mutex<Inner>>,
    delay: Duration,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").finish_non_exhaustive()
    }
}

impl Provider {
    /// A provider that remembers what stands in its log; `delay` is how late `slow` answers.
    ///
    /// # Errors
    /// When the log cannot be read or opened.
    pub fn open(mode: Mode, delay: Duration, log: Option<&Path>) -> anyhow::Result<Self> {
        let (entries, file) = match log {
            Some(path) => (read_log(path)?, Some(append_to(path)?)),
            None => (Vec::new(), None),
        };
        let given = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.given)
            .map(|(at, entry)| (entry.key.clone(), at))
            .collect();
        Ok(Self {
            inner: Arc::new(Mutex::new(Inner {
                mode,
                entries,
                given,
                file,
            })),
            delay,
        })
    }

    /// Changes how it behaves.
    pub fn set_mode(&self, mode: Mode) {
        self.lock().mode = mode;
    }

    /// Every call so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().entries.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A handler that gave up in the middle holds no lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it serves.
    pub fn router(self) -> Router {
        Router::new()
            .route("/redemptions", post(give))
            .route("/redemptions/{key}", get(tell))
            .route("/mode", put(change_mode))
            .route("/log", get(show_log))
            .with_state(self)
    }
}

/// Serves a provider until it is told to stop.
///
/// # Errors
/// When the address or the log cannot be had.
pub async fn serve(
    listen: SocketAddr,
    mode: Mode,
    delay: Duration,
    log: Option<PathBuf>,
) -> anyhow::Result<()> {
    let provider = Provider::open(mode, delay, log.as_deref())?;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("--listen: cannot listen on {listen}"))?;
    println!(
        "The provider of rewards serves on http://{}",
        listener.local_addr()?
    );
    axum::serve(listener, provider.router())
        .with_graceful_shutdown(crate::serve::told_to_stop())
        .await
        .context("the provider failed")
}

/// Starts a provider on a free port of this machine, for the demo; answers its URL.
///
/// # Errors
/// When there is no port or the log cannot be had.
pub async fn start_for_demo(
    log: Option<PathBuf>,
    stopping: CancellationToken,
) -> anyhow::Result<String> {
    let provider = Provider::open(Mode::Ok, Duration::ZERO, log.as_deref())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        let serving = axum::serve(listener, provider.router())
            .with_graceful_shutdown(stopping.cancelled_owned());
        if let Err(error) = serving.await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the demo's provider failed"
            );
        }
    });
    Ok(url)
}

async fn give(
    State(provider): State<Provider>,
    headers: HeaderMap,
    Json(body): Json<Body>,
) -> Response {
    let text = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let Some(key) = text("idempotency-key") else {
        return (StatusCode::BAD_REQUEST, "Idempotency-Key is missing").into_response();
    };
    let entry = Entry {
        key,
        reward_id: body.reward_id,
        student_id: body.student_id,
        points: body.points,
        given: false,
        traceparent: text("traceparent"),
    };
    let written = record(&mut provider.lock(), entry);
    let (mode, entry) = match written {
        Ok(written) => written,
        Err(error) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
        }
    };
    match mode {
        Mode::Slow => tokio::time::sleep(provider.delay).await,
        // Ends the connection's task: the caller sees it cut, as when a machine dies. Without the hook's message.
        Mode::LoseAnswer => std::panic::resume_unwind(Box::new("the answer is lost")),
        Mode::Error | Mode::ErrorAfter => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mode::Refuse => return StatusCode::UNPROCESSABLE_ENTITY.into_response(),
        Mode::Down => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mode::Ok => {}
    }
    (StatusCode::CREATED, Json(entry)).into_response()
}

/// Notes a call, and gives what it asks for when the mode says so and the key is new.
fn record(inner: &mut Inner, entry: Entry) -> std::io::Result<(Mode, Entry)> {
    let mode = inner.mode;
    let gives = matches!(
        mode,
        Mode::Ok | Mode::Slow | Mode::LoseAnswer | Mode::ErrorAfter
    );
    let given = gives && !inner.given.contains_key(&entry.key);
    let entry = Entry { given, ..entry };
    if let Some(file) = &mut inner.file {
        let line = serde_json::to_string(&entry)?;
        writeln!(file, "{line}")?;
        file.flush()?;
    }
    if given {
        inner.given.insert(entry.key.clone(), inner.entries.len());
    }
    inner.entries.push(entry.clone());
    Ok((mode, entry))
}

async fn tell(State(provider): State<Provider>, PathParam(key): PathParam<String>) -> Response {
    let inner = provider.lock();
    if inner.mode == Mode::Down {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    match inner.given.get(&key).and_then(|at| inner.entries.get(*at)) {
        Some(entry) => Json(entry.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn change_mode(State(provider): State<Provider>, Json(mode): Json<Mode>) -> StatusCode {
    provider.set_mode(mode);
    StatusCode::NO_CONTENT
}

async fn show_log(State(provider): State<Provider>) -> Json<Vec<Entry>> {
    Json(provider.entries())
}

fn read_log(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let shown = path.display();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
    };
    let lines = BufReader::new(file).lines();
    let entry = |line: std::io::Result<String>| {
        let entry = serde_json::from_str(&line?);
        entry.with_context(|| format!("{shown} is no log of a provider"))
    };
    lines.map(entry).collect()
}

fn append_to(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.with_context(|| format!("cannot write {}", path.display()))
}
