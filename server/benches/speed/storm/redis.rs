//! A redis-server of one's own.

use std::{net::TcpListener, process::Stdio, time::Duration};

use anyhow::Context;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
};

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Redis {
    child: Child,
    pub(super) url: String,
}

impl Redis {
    /// Starts it on a free port, without anything kept on disk, and waits until it listens.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start redis-server")?;
        let listening = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, listening)
            .await
            .context("redis-server does not listen")?;
        Ok(Self {
            child,
            url: format!("redis://127.0.0.1:{port}"),
        })
    }

    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}
