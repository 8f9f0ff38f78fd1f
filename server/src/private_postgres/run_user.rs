//! The user that Postgres runs as, and programs run as that user.

use std::{
    io,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{FileContext, PrivatePostgresError};

/// Users that Postgres may run as when the server was started by root, the best first.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// The user that Postgres runs as.
#[derive(Debug, Clone)]
pub(super) struct RunUser {
    /// For messages.
    pub(super) name: String,
    /// User and group to change to; `None` when this process already is that user.
    ids: Option<(u32, u32)>,
}

impl RunUser {
    /// Chooses the user: the current one, or, for root, the owner of the existing `home`, else `postgres`, else `nobody`.
    pub(super) fn choose(home: Option<&Path>) -> Result<Self, PrivatePostgresError> {
        let me = id(&["-u"])?.ok_or(PrivatePostgresError::NoUser)?;
        let owner = match home {
            Some(dir) => {
                let meta = dir.metadata().file("read", dir)?;
                Some((meta.uid(), meta.gid()))
            }
            None => None,
        };
        if me != 0 {
            return match (owner, home) {
                (Some((owner, _)), Some(dir)) if owner != me => {
                    Err(PrivatePostgresError::OtherOwner {
                        dir: dir.to_owned(),
                        owner,
                        me,
                    })
                }
                _ => Ok(Self {
                    name: me.to_string(),
                    ids: None,
                }),
            };
        }
        if let Some((uid, gid)) = owner.filter(|(uid, _)| *uid != 0) {
            return Ok(Self {
                name: uid.to_string(),
                ids: Some((uid, gid)),
            });
        }
        for name in UNPRIVILEGED {
            if let (Some(uid), Some(gid)) = (id(&["-u", name])?, id(&["-g", name])?) {
                return Ok(Self {
                    name: name.to_owned(),
                    ids: Some((uid, gid)),
                });
            }
        }
        Err(PrivatePostgresError::NoUser)
    }

    /// Whether the programs run as another user than this process.
    pub(super) fn is_other(&self) -> bool {
        self.ids.is_some()
    }

    /// A command that runs as this user, away from the terminal: in its own process group, so that Ctrl-C does not reach
    /// Postgres before the server has drained; without this process's `PG*` variables, which would redirect it.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::null())
            .env("LC_ALL", "C");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        if let Some((uid, gid)) = self.ids {
            // Changing the user as root also clears the supplementary groups (std does that before the exec).
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Makes `path` belong to this user.
    pub(super) fn own(&self, path: &Path) -> Result<(), PrivatePostgresError> {
        match self.ids {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)).file("change the owner of", path),
            None => Ok(()),
        }
    }

    /// The first directory from the root down to `dir` that this user cannot enter. Asked of the system itself, as that user,
    /// because mode bits alone do not tell (access control lists, mount options).
    pub(super) fn first_closed(&self, dir: &Path) -> Result<Option<PathBuf>, PrivatePostgresError> {
        if !self.is_other() {
            return Ok(None);
        }
        let mut ancestors: Vec<&Path> = dir.ancestors().collect();
        ancestors.reverse();
        for ancestor in ancestors {
            let status = self
                .command("/bin/sh")
                .args(["-c", r#"cd -- "$1""#, "sh"])
                .arg(ancestor)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .map_err(|source| run_error("/bin/sh", source))?;
            if !status.success() {
                return Ok(Some(ancestor.to_owned()));
            }
        }
        Ok(None)
    }
}

/// A [`PrivatePostgresError::Run`].
pub(super) fn run_error(program: impl Into<String>, source: io::Error) -> PrivatePostgresError {
    PrivatePostgresError::Run {
        program: program.into(),
        source,
    }
}

/// What `id` answers, a number; `None` when there is no such user.
fn id(args: &[&str]) -> Result<Option<u32>, PrivatePostgresError> {
    let output = Command::new("id")
        .args(args)
        .stderr(Stdio::null())
        .output()
        .map_err(|source| run_error("id", source))?;
    Ok(std::str::from_utf8(&output.stdout)
        .ok()
        .filter(|_| output.status.success())
        .and_then(|text| text.trim().parse().ok()))
}
