//! The process of Postgres as its pid file shows it.
//!
//! A pid file proves nothing by itself: its process may be dead, or its number may belong to somebody else by now.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use super::{FileContext, PrivatePostgresError, run_user::RunUser};

/// How often a state that has to change is looked at: starting takes about 100 ms.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// A process id that no system gives out, for a pid file whose process is known to be another one.
const NOBODY_PID: u32 = 0x7fff_fffe;

/// What `postmaster.pid` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PidFile {
    pub(super) pid: u32,
    pub(super) port: Option<u16>,
    pub(super) ready: bool,
}

impl PidFile {
    /// Line 1 is the process id, line 4 the port, line 8 the status; the later lines are added while Postgres starts.
    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        Some(Self {
            pid: lines.first()?.parse().ok()?,
            port: lines.get(3).and_then(|line| line.parse().ok()),
            ready: lines.get(7) == Some(&"ready"),
        })
    }
}

/// What is known about the postmaster of a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Postmaster {
    /// No pid file, or one that Postgres itself will find to be stale.
    Absent,
    /// Accepts connections on this port.
    Ready {
        /// On loopback.
        port: u16,
    },
    /// Starts, recovers or stops: this will change.
    Busy,
}

/// Looks at the postmaster of `data`. A pid file whose process is another one or a zombie is made harmless, so that
/// Postgres can start; call it only while holding the lock of the data directory.
pub(super) fn look(data: &Path, user: &RunUser) -> Result<Postmaster, PrivatePostgresError> {
    let path = data.join("postmaster.pid");
    let Some(text) = read(&path)? else {
        return Ok(Postmaster::Absent);
    };
    let Some(file) = PidFile::parse(&text) else {
        // Being written just now, or cut off by a crash: Postgres calls such a file an error and names it.
        return Ok(Postmaster::Absent);
    };
    match owner_of(file.pid, data, user) {
        Process::Ours => Ok(match file {
            PidFile {
                ready: true,
                port: Some(port),
                ..
            } => Postmaster::Ready { port },
            _ => Postmaster::Busy,
        }),
        Process::Other => {
            // Removing the file would also remove its shared memory key, by which Postgres finds out whether backends of the
            // dead postmaster still write to the data. So only the process id is replaced.
            let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
            fs::write(&path, format!("{NOBODY_PID}\n{rest}")).file("write", &path)?;
            Ok(Postmaster::Absent)
        }
        Process::Unknown => Ok(Postmaster::Absent),
    }
}

/// The port of a ready postmaster, without any judgement about its process: for a guest, who does not hold the lock.
pub(super) fn ready_port(data: &Path) -> Result<Option<u16>, PrivatePostgresError> {
    Ok(read(&data.join("postmaster.pid"))?
        .and_then(|text| PidFile::parse(&text))
        .filter(|file| file.ready)
        .and_then(|file| file.port))
}

/// The process id of a ready postmaster.
pub(super) fn ready_pid(data: &Path) -> Result<Option<u32>, PrivatePostgresError> {
    Ok(read(&data.join("postmaster.pid"))?
        .and_then(|text| PidFile::parse(&text))
        .filter(|file| file.ready)
        .map(|file| file.pid))
}

fn read(path: &Path) -> Result<Option<String>, PrivatePostgresError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).file("read", path),
    }
}

/// Whose process has a number.
#[derive(Debug, PartialEq, Eq)]
enum Process {
    /// The postmaster of the data directory.
    Ours,
    /// Surely not it: a zombie, or a process that works elsewhere.
    Other,
    /// None at all, or one that may not be looked at; Postgres's own check is right about both.
    Unknown,
}

#[cfg(target_os = "linux")]
fn owner_of(pid: u32, data: &Path, user: &RunUser) -> Process {
    // `pid (comm) state …`; a zombie still counts as a process for kill(2), by which Postgres looks.
    let zombie = fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit_once(") ")
                .map(|(_, rest)| rest.starts_with('Z'))
        })
        .unwrap_or(false);
    if zombie {
        return Process::Other;
    }
    // A postmaster works in its data directory, wherever that has been moved to. The link may be read by the process's own
    // user; root without CAP_SYS_PTRACE (a container) may not.
    match cwd_of(pid, user) {
        Some(cwd) if cwd == data => Process::Ours,
        Some(_) => Process::Other,
        None => Process::Unknown,
    }
}

#[cfg(target_os = "linux")]
fn cwd_of(pid: u32, user: &RunUser) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let output = user
        .command("readlink")
        .args(["-n", &format!("/proc/{pid}/cwd")])
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(output.stdout)))
}

#[cfg(not(target_os = "linux"))]
fn owner_of(pid: u32, data: &Path, user: &RunUser) -> Process {
    // Postgres is started as `postgres -D DATA -p PORT`.
    let output = user
        .command("ps")
        .args(["-ww", "-o", "command=", "-p", &pid.to_string()])
        .stderr(Stdio::null())
        .output();
    match output {
        Ok(output)
            if String::from_utf8_lossy(&output.stdout).contains(&*data.to_string_lossy()) =>
        {
            Process::Ours
        }
        _ => Process::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pid_file_is_read_at_every_stage_of_a_start() {
        let full = "42\n/d\n1700000000\n5433\n\n127.0.0.1\n  1 2\nready   \n";
        let file = PidFile::parse(full).unwrap();
        assert_eq!((file.pid, file.port, file.ready), (42, Some(5433), true));
        let file = PidFile::parse("42\n/d\n1700000000\n5433\n\n").unwrap();
        assert_eq!((file.port, file.ready), (Some(5433), false));
        let stopping = full.replace("ready", "stopping");
        assert!(!PidFile::parse(&stopping).unwrap().ready);
        assert_eq!(PidFile::parse(""), None);
        assert_eq!(PidFile::parse("garbage\n"), None);
    }
}
