//! A Redis of a test's own, which it can pause, fill and kill.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use redis::{FromRedisValue, aio::MultiplexedConnection};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running Redis, which keeps nothing; it is killed when this is dropped.
pub(crate) struct RedisServer {
    port: u16,
    child: Child,
    /// Direct, so that a test sees what is there.
    connection: MultiplexedConnection,
}

impl RedisServer {
    pub(crate) async fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = spawn(port);
        Self {
            port,
            child,
            connection: connect(port).await,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Kills it, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, empty, at the same address.
    pub(crate) async fn start_again(&mut self) {
        self.child = spawn(self.port);
        self.connection = connect(self.port).await;
    }

    /// Stops its process without ending it: connections stay and nothing answers.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Runs a command, written as at the prompt.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &str) -> T {
        let mut words = command.split(' ');
        let mut sent = redis::cmd(words.next().unwrap());
        sent.arg(words.collect::<Vec<_>>());
        sent.query_async(&mut self.connection.clone())
            .await
            .unwrap()
    }

    /// The names of all locks.
    pub(crate) async fn locks(&self) -> Vec<String> {
        let names: Vec<String> = self.run("KEYS yici:front_lock:*").await;
        names
            .into_iter()
            .filter(|name| !name.contains("probe"))
            .collect()
    }

    /// The name of the only lock, waited for.
    pub(crate) async fn lock(&self) -> String {
        let found = async {
            loop {
                if let [name] = &self.locks().await[..] {
                    return name.clone();
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap()
    }

    /// Waits until there is no lock.
    pub(crate) async fn until_free(&self) {
        let free = async {
            while !self.locks().await.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, free).await.unwrap();
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(port: u16) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed (.make/tools.sh redis)")
}

async fn connect(port: u16) -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/")).unwrap();
    let connected = async {
        loop {
            if let Ok(connection) = client.get_multiplexed_async_connection().await {
                return connection;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, connected).await.unwrap()
}
