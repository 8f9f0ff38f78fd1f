//! Where the cluster's files are, and how they come into being: all at once or not at all.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString};
use uuid::Uuid;

use super::{
    FileContext, PrivatePostgresError,
    binaries::Binaries,
    run_user::{RunUser, run_error},
};

/// The superuser of the cluster, the role that the application connects as.
pub(super) const ROLE: &str = "yici";

/// Where the cluster goes when root's data directory is one that Postgres's user cannot enter, e.g. below `/root`.
const OPEN_BASE: &str = "/var/lib/yici";

/// Only loopback, only with the password.
const PG_HBA: &str = "# Written by the server.\nhost all all 127.0.0.1/32 scram-sha-256\n";

/// The directory of one cluster: its data, its password and its log.
#[derive(Debug, Clone)]
pub(super) struct Home(PathBuf);

impl Home {
    /// The home under `data_dir` (absolute, links resolved), if it has been made. A link is followed, because Postgres
    /// wants the real path.
    pub(super) fn find(data_dir: &Path) -> Result<Option<Self>, PrivatePostgresError> {
        let entry = data_dir.join("postgres");
        match fs::canonicalize(&entry) {
            Ok(path) => Ok(Some(Self(path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read_link(&entry) {
                Ok(target) => Err(PrivatePostgresError::DanglingHome {
                    link: entry,
                    target,
                }),
                Err(_) => Ok(None),
            },
            Err(error) => Err(error).file("open", &entry),
        }
    }

    /// Makes the home. Everything happens in a sibling that gets its name only when it is complete, so that a kill in the
    /// middle of `initdb` leaves nothing that could be taken for a cluster. The caller holds the data directory's lock.
    pub(super) fn create(
        data_dir: &Path,
        user: &RunUser,
        binaries: &Binaries,
    ) -> Result<Self, PrivatePostgresError> {
        let entry = data_dir.join("postgres");
        let Some(closed) = user.first_closed(data_dir)? else {
            remove_unfinished(data_dir, ".postgres.new-");
            let temporary = data_dir.join(format!(".postgres.new-{}", unique()));
            build(&temporary, user, binaries)?;
            publish(&temporary, &entry)?;
            return Ok(Self(entry));
        };
        // The way is closed to Postgres's user (typically a checkout below /root). Opening root's directories is not ours to
        // do, so the cluster lives in a place that is open, and the data directory links to it.
        let base = Path::new(OPEN_BASE);
        let not_enterable = |dir| PrivatePostgresError::NotEnterable {
            dir,
            user: user.name.clone(),
        };
        if make_open_dir(base).is_err() || user.first_closed(base)?.is_some() {
            return Err(not_enterable(closed));
        }
        let mine = format!("{:016x}", path_hash(data_dir));
        remove_unfinished(base, &format!(".new-{mine}-"));
        let name = unique();
        let temporary = base.join(format!(".new-{mine}-{name}"));
        let home = base.join(format!("{mine}-{name}"));
        build(&temporary, user, binaries)?;
        publish(&temporary, &home)?;
        symlink(&home, &entry).file("create", &entry)?;
        sync_dir(data_dir)?;
        tracing::info!(
            closed = %closed.display(), user = user.name, home = %home.display(),
            "the private Postgres keeps its data outside the data directory, which its user cannot enter"
        );
        Ok(Self(home))
    }

    /// The directory itself.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// PGDATA.
    pub(super) fn data(&self) -> PathBuf {
        self.0.join("cluster")
    }

    /// The log file of Postgres.
    pub(super) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// The major version that wrote the data.
    pub(super) fn major(&self) -> Result<u32, PrivatePostgresError> {
        let file = self.data().join("PG_VERSION");
        let text = fs::read_to_string(&file).file("read", &file)?;
        text.trim()
            .parse()
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no version number"))
            .file("understand", &file)
    }

    /// The connection URL for a port and a database.
    pub(super) fn url(
        &self,
        port: u16,
        database: &str,
    ) -> Result<SecretString, PrivatePostgresError> {
        let file = self.0.join("password");
        let password = SecretString::from(fs::read_to_string(&file).file("read", &file)?);
        Ok(SecretString::from(format!(
            "postgres://{ROLE}:{}@127.0.0.1:{port}/{database}",
            password.expose_secret().trim_end()
        )))
    }
}

/// Fills a new directory with a cluster.
fn build(dir: &Path, user: &RunUser, binaries: &Binaries) -> Result<(), PrivatePostgresError> {
    let made = try_build(dir, user, binaries);
    if made.is_err() {
        // Nothing of value is in it; the error that is reported is the first one.
        drop(fs::remove_dir_all(dir));
    }
    made
}

fn try_build(dir: &Path, user: &RunUser, binaries: &Binaries) -> Result<(), PrivatePostgresError> {
    DirBuilder::new()
        .mode(0o700)
        .create(dir)
        .file("create", dir)?;
    let password = dir.join("password");
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&password)
        .file("create", &password)?;
    // Twice 122 random bits from the system.
    writeln!(file, "{}{}", unique(), unique()).file("write", &password)?;
    file.sync_all().file("write", &password)?;
    user.own(&password)?;
    user.own(dir)?;

    let data = dir.join("cluster");
    // C.UTF-8 sorts by code point as C does and knows upper and lower case beyond ASCII; older systems have only C.
    let first = initdb(&data, &password, "C.UTF-8", user, binaries);
    if first.is_err() {
        initdb(&data, &password, "C", user, binaries)?;
    }
    let hba = data.join("pg_hba.conf");
    let mut file = File::create(&hba).file("write", &hba)?;
    file.write_all(PG_HBA.as_bytes()).file("write", &hba)?;
    file.sync_all().file("write", &hba)?;
    sync_dir(dir)
}

fn initdb(
    data: &Path,
    password: &Path,
    locale: &str,
    user: &RunUser,
    binaries: &Binaries,
) -> Result<(), PrivatePostgresError> {
    let program = binaries.program("initdb");
    let output = user
        .command(&program)
        .arg("-D")
        .arg(data)
        .arg("--pwfile")
        .arg(password)
        .args(["-U", ROLE, "-A", "scram-sha-256", "-E", "UTF8", "--locale"])
        .arg(locale)
        .args(["--data-checksums", "--no-instructions"])
        .output()
        .map_err(|source| run_error(program.display().to_string(), source))?;
    if output.status.success() {
        return Ok(());
    }
    Err(PrivatePostgresError::Failed {
        program: "initdb",
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// Gives a complete directory its name, durably.
fn publish(temporary: &Path, home: &Path) -> Result<(), PrivatePostgresError> {
    fs::rename(temporary, home).file("create", home)?;
    sync_dir(home.parent().unwrap_or(home))
}

fn sync_dir(dir: &Path) -> Result<(), PrivatePostgresError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .file("sync", dir)
}

/// Removes what killed starts left behind. Failing to is no reason not to start.
fn remove_unfinished(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name: OsString = entry.file_name();
        if name.as_encoded_bytes().starts_with(prefix.as_bytes()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

fn make_open_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        // Whatever the umask is.
        Ok(()) => fs::set_permissions(dir, Permissions::from_mode(0o755)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// A name for a data directory in a place that several of them share; the random part beside it makes it unique.
fn path_hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// 32 hexadecimal digits that nobody can guess.
fn unique() -> String {
    Uuid::new_v4().simple().to_string()
}
