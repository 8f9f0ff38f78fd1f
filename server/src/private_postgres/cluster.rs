//! One cluster from lock to stop. Everything here blocks; `mod.rs` calls it from the thread pool for that.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    net::TcpListener,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use secrecy::SecretString;

use super::{
    FileContext, PrivatePostgresError,
    binaries::Binaries,
    home::Home,
    postmaster::{self, POLL, Postmaster},
    run_user::{RunUser, run_error},
};

/// How often a start is tried. What goes away by itself: a port that somebody else took in between, backends of a killed
/// postmaster that have not noticed yet, a postmaster of a killed server that had not written its pid file.
const START_ATTEMPTS: u32 = 6;

/// The pause before the second attempt; the next ones double it (6 s in all).
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// How long Postgres may take to get ready: after a crash it first replays its log, up to `max_wal_size` of it.
const READY_PATIENCE: Duration = Duration::from_secs(300);

/// How long a fast stop may take (it writes a checkpoint) before it becomes an immediate one.
const STOP_PATIENCE_SECONDS: &str = "60";

/// The log is set aside at a start when it is larger than this.
const LOG_LIMIT_BYTES: u64 = 10 * 1024 * 1024;

/// How many of the log's last lines an error shows, and how many bytes are read for them.
const TAIL_LINES: usize = 15;
const TAIL_BYTES: u64 = 8 * 1024;

/// Written anew at each start. Durability is never traded: fsync, full_page_writes and synchronous_commit stay on.
const CONFIG: &str = "\
# Written by the server at each start; changes are lost.
listen_addresses = '127.0.0.1'
unix_socket_directories = ''      # no path limit, no directory to protect: loopback with a password
password_encryption = 'scram-sha-256'
max_connections = 100
shared_buffers = '256MB'
fsync = on
full_page_writes = on
synchronous_commit = on
wal_compression = on              # full-page images are most of the log of small rows
max_wal_size = '2GB'
checkpoint_timeout = '15min'
jit = off                         # every statement is short
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
log_line_prefix = '%m [%p] '
log_checkpoints = off
";

/// A running cluster that this process owns. Dropping it tells Postgres to stop and does not wait, so that a start whose
/// caller has gone away leaves nothing behind.
#[derive(Debug)]
pub(super) struct Cluster {
    stop_on_drop: bool,
    home: Home,
    user: RunUser,
    binaries: Binaries,
    port: u16,
    url_base: SecretString,
    /// To reap it; `None` when it was taken over.
    child: Option<Child>,
    /// INVARIANT: whoever writes in the data directory or speaks to the postmaster about starting and stopping holds it.
    _lock: File,
}

impl Cluster {
    /// Locks the data directory, makes the cluster if there is none, and starts it or takes over a running one.
    pub(super) fn open(data_dir: &Path, patience: Duration) -> Result<Self, PrivatePostgresError> {
        fs::create_dir_all(data_dir).file("create", data_dir)?;
        let data_dir = fs::canonicalize(data_dir).file("open", data_dir)?;
        let lock = lock(&data_dir, patience)?;
        let (home, user, binaries) = match Home::find(&data_dir)? {
            Some(home) => {
                let user = RunUser::choose(Some(home.path()))?;
                if let Some(dir) = user.first_closed(home.path())? {
                    return Err(PrivatePostgresError::NotEnterable {
                        dir,
                        user: user.name,
                    });
                }
                let data = home.data();
                let binaries = Binaries::find(&user, Some((home.major()?, &data)))?;
                (home, user, binaries)
            }
            None => {
                let user = RunUser::choose(None)?;
                let binaries = Binaries::find(&user, None)?;
                tracing::info!(
                    version = binaries.major(), user = user.name, data_dir = %data_dir.display(),
                    "making a private Postgres"
                );
                let home = Home::create(&data_dir, &user, &binaries)?;
                (home, user, binaries)
            }
        };
        let (port, child) = run(&home, &user, &binaries)?;
        Ok(Self {
            stop_on_drop: true,
            url_base: home.url(port, "")?,
            home,
            user,
            binaries,
            port,
            child,
            _lock: lock,
        })
    }

    /// The URL of a database of this cluster.
    pub(super) fn url(&self, database: &str) -> SecretString {
        use secrecy::ExposeSecret;
        SecretString::from(format!("{}{database}", self.url_base.expose_secret()))
    }

    /// Stops Postgres and waits.
    pub(super) fn stop(mut self) -> Result<(), PrivatePostgresError> {
        self.stop_on_drop = false;
        let fast = self.pg_ctl_stop(&["-m", "fast", "-w", "-t", STOP_PATIENCE_SECONDS]);
        if let Err(error) = fast
            && postmaster::look(&self.home.data(), &self.user)? != Postmaster::Absent
        {
            tracing::warn!(
                %error, port = self.port,
                "stopping the private Postgres at once; it will recover at the next start"
            );
            self.pg_ctl_stop(&["-m", "immediate", "-w", "-t", STOP_PATIENCE_SECONDS])?;
        }
        if let Some(child) = &mut self.child {
            child
                .wait()
                .map_err(|source| run_error("postgres", source))?;
        }
        Ok(())
    }

    /// Gives up the ownership only.
    pub(super) fn leave_running(mut self) {
        self.stop_on_drop = false;
    }

    fn pg_ctl_stop(&self, args: &[&str]) -> Result<(), PrivatePostgresError> {
        let program = self.binaries.program("pg_ctl");
        let output = self
            .user
            .command(&program)
            .arg("stop")
            .arg("-D")
            .arg(self.home.data())
            .args(args)
            .output()
            .map_err(|source| run_error(program.display().to_string(), source))?;
        if output.status.success() {
            return Ok(());
        }
        Err(PrivatePostgresError::Failed {
            program: "pg_ctl stop",
            output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.stop_on_drop
            && let Err(error) = self.pg_ctl_stop(&["-m", "fast", "-W"])
        {
            tracing::warn!(%error, "the private Postgres could not be told to stop");
        }
    }
}

/// The URL of a cluster that another process owns, once it is ready.
pub(super) fn find_running(
    data_dir: &Path,
    database: &str,
) -> Result<Option<SecretString>, PrivatePostgresError> {
    let data_dir = fs::canonicalize(data_dir).file("open", data_dir)?;
    let Some(home) = Home::find(&data_dir)? else {
        return Ok(None);
    };
    match postmaster::ready_port(&home.data())? {
        Some(port) => home.url(port, database).map(Some),
        None => Ok(None),
    }
}

/// Takes the lock of a data directory. It ends with the process, whatever ends that, and children do not inherit it.
fn lock(data_dir: &Path, patience: Duration) -> Result<File, PrivatePostgresError> {
    let path = data_dir.join("postgres.lock");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .open(&path)
        .file("open", &path)?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(POLL),
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let holder = match holder.trim() {
                    "" => "unknown".to_owned(),
                    pid => pid.to_owned(),
                };
                return Err(PrivatePostgresError::InUse {
                    data_dir: data_dir.to_owned(),
                    holder,
                });
            }
            Err(TryLockError::Error(source)) => return Err(source).file("lock", &path),
        }
    }
    // For the message above only.
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .file("write", &path)?;
    Ok(file)
}

/// Brings the cluster to "ready": takes over a running postmaster or starts one.
fn run(
    home: &Home,
    user: &RunUser,
    binaries: &Binaries,
) -> Result<(u16, Option<Child>), PrivatePostgresError> {
    let data = home.data();
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    let deadline = Instant::now() + READY_PATIENCE;
    loop {
        match postmaster::look(&data, user)? {
            Postmaster::Ready { port } => {
                tracing::info!(port, "took over the private Postgres of an earlier server");
                return Ok((port, None));
            }
            Postmaster::Busy if Instant::now() < deadline => sleep(POLL),
            Postmaster::Busy => {
                return Err(not_started(
                    home,
                    "a running one does not get ready".to_owned(),
                ));
            }
            Postmaster::Absent => match start(home, user, binaries)? {
                Started::Ready { port, child } => {
                    tracing::info!(
                        port,
                        version = binaries.major(),
                        "started the private Postgres"
                    );
                    return Ok((port, Some(child)));
                }
                Started::Ended(status) if attempt == START_ATTEMPTS => {
                    return Err(not_started(home, status.to_string()));
                }
                Started::Ended(status) => {
                    tracing::debug!(%status, attempt, "the private Postgres did not start, trying again");
                    attempt += 1;
                    sleep(pause);
                    pause *= 2;
                }
            },
        }
    }
}

/// How one attempt went.
enum Started {
    Ready { port: u16, child: Child },
    Ended(ExitStatus),
}

/// Starts a postmaster and waits until it is ready or has ended.
fn start(
    home: &Home,
    user: &RunUser,
    binaries: &Binaries,
) -> Result<Started, PrivatePostgresError> {
    let data = home.data();
    let config = data.join("postgresql.conf");
    fs::write(&config, CONFIG).file("write", &config)?;
    let log = open_log(home, user)?;
    let errors = log.try_clone().file("open", &home.log())?;
    // RACE: somebody may take the port between this and Postgres's bind; then it ends and the next attempt takes another.
    let port = TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|source| run_error("a listener on 127.0.0.1", source))?
        .port();
    let program = binaries.program("postgres");
    let mut child = user
        .command(&program)
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.to_string()])
        .stdout(Stdio::from(log))
        .stderr(Stdio::from(errors))
        .spawn()
        .map_err(|source| run_error(program.display().to_string(), source))?;
    let deadline = Instant::now() + READY_PATIENCE;
    loop {
        let ended = child
            .try_wait()
            .map_err(|source| run_error("postgres", source))?;
        if let Some(status) = ended {
            return Ok(Started::Ended(status));
        }
        if postmaster::ready_pid(&data)? == Some(child.id()) {
            return Ok(Started::Ready { port, child });
        }
        if Instant::now() > deadline {
            // It goes on recovering; the next start takes it over.
            return Err(not_started(
                home,
                format!("not ready after {} s", READY_PATIENCE.as_secs()),
            ));
        }
        sleep(POLL);
    }
}

fn open_log(home: &Home, user: &RunUser) -> Result<File, PrivatePostgresError> {
    let path = home.log();
    if fs::metadata(&path).is_ok_and(|meta| meta.len() > LOG_LIMIT_BYTES) {
        let old = path.with_extension("1");
        fs::rename(&path, &old).file("rename", &path)?;
    }
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .file("open", &path)?;
    user.own(&path)?;
    Ok(file)
}

fn not_started(home: &Home, reason: String) -> PrivatePostgresError {
    let log = home.log();
    PrivatePostgresError::NotStarted {
        reason,
        tail: tail(&log).unwrap_or_else(|error| format!("(unreadable: {error})")),
        log,
    }
}

fn tail(path: &PathBuf) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}
