//! The real binary as a child process on a port of its own. Shared with the benches.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, ensure};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// How long it may take to serve, or to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A server that serves; it is killed when this is dropped.
pub(crate) struct Spawned {
    pub(crate) process: Child,
    /// Where it serves.
    pub(crate) base: String,
    folder: TempDir,
}

impl Spawned {
    /// Starts it and waits until it serves. What it logs is kept for [`Self::log`], or goes where our own errors go.
    pub(crate) async fn start(
        database_url: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
        logged: bool,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        // The pages are not looked at, but the server insists on a front end.
        std::fs::create_dir(folder.path().join("pkg"))?;
        std::fs::write(folder.path().join("pkg/yici.js"), "// nothing")?;
        let log = if logged {
            std::fs::File::create(folder.path().join("log"))?.into()
        } else {
            Stdio::inherit()
        };
        let mut process = Command::new(env!("CARGO_BIN_EXE_server"))
            .arg("serve")
            .args(arguments)
            .env("DATABASE_URL", database_url)
            .env("YICI_LISTEN", "127.0.0.1:0")
            .env("YICI_SITE_DIR", folder.path())
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the server")?;
        let stdout = process.stdout.take().context("it has no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let base = loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line())
                .await
                .context("the server does not serve")??
                .context("the server ended before it served")?;
            if let Some(base) = line.strip_prefix("Yici serves on ") {
                break base.to_owned();
            }
        };
        Ok(Self {
            process,
            base,
            folder,
        })
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join("log"))?)
    }

    /// Sends a signal such as `STOP` or `CONT`.
    pub(crate) async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let pid = self.process.id().context("it has ended")?.to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status()
            .await?;
        ensure!(sent.success(), "kill -{name} {pid}: {sent}");
        Ok(())
    }

    /// Waits until the process, which was told to stop, has ended well.
    pub(crate) async fn ended_well(&mut self) -> anyhow::Result<()> {
        let status = tokio::time::timeout(PATIENCE, self.process.wait())
            .await
            .context("the server does not end")??;
        ensure!(status.success(), "it did not end well: {status}");
        Ok(())
    }
}
