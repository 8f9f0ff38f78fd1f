//! A proxy in front of Postgres that cuts a connection at a chosen moment, as a network does.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use engine::{EngineConfig, Pools};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

use crate::support::{World, in_time, start_on};

/// When to cut.
#[derive(Clone, Copy)]
pub(crate) enum Cut {
    /// Before what the client sends reaches Postgres.
    Before,
    /// After Postgres has answered, and before the client hears it.
    After,
    /// Never: what the client sends goes nowhere, and nobody is told.
    Hang,
    /// Never: what the client sends waits until it is released.
    Hold,
    /// Never: Postgres's answer begins with a warning.
    Warn,
}

/// What Postgres says when somebody cancels its wait for a standby: the commit is here, and maybe nowhere else.
const WARNING: &[u8] = b"SWARNING\0VWARNING\0C01000\0Mcanceling wait for synchronous replication due to user request\0\0";

/// What the proxy waits for: bytes in what a client sends.
type Armed = Arc<Mutex<Option<(Vec<u8>, Cut)>>>;

/// What went over the wire: the executions of prepared statements, the texts of simple ones, and errors.
type Seen = Arc<Mutex<Vec<String>>>;

/// A wire that can be cut.
pub(crate) struct Wire {
    armed: Armed,
    seen: Seen,
    released: Arc<Notify>,
    /// Connections that go through it.
    pub(crate) pool: PgPool,
}

/// An engine whose connections go through a wire.
pub(crate) async fn wired(pool: PgPool, config: EngineConfig) -> (World, Wire) {
    let wire = Wire::new(&pool).await;
    let pools = Pools {
        work: wire.pool.clone(),
        reading: pool.clone(),
    };
    let engine = start_on(pools, config).await;
    (World::with_engine(engine, pool).await, wire)
}

impl Wire {
    /// Puts a wire between a new pool and the database of this one.
    pub(crate) async fn new(pool: &PgPool) -> Self {
        let options = pool.connect_options();
        let upstream = format!("{}:{}", options.get_host(), options.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (armed, seen) = (Armed::default(), Seen::default());
        let released = Arc::new(Notify::new());
        tokio::spawn({
            let (armed, seen, released) = (armed.clone(), seen.clone(), Arc::clone(&released));
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(carry(
                        client,
                        upstream.clone(),
                        armed.clone(),
                        seen.clone(),
                        released.clone(),
                    ));
                }
            }
        });
        let through = options.as_ref().clone().host("127.0.0.1").port(port);
        Self {
            armed,
            seen,
            released,
            pool: PgPoolOptions::new()
                .max_connections(6)
                .connect_with(through)
                .await
                .unwrap(),
        }
    }

    /// Cuts the next connection that sends these bytes.
    pub(crate) fn cut(&self, when: Cut, bytes: &str) {
        *self.armed.lock().unwrap() = Some((bytes.as_bytes().to_vec(), when));
    }

    /// What was sent since the last time this was asked: `execute` for each prepared statement, the text of
    /// each other, and `error` for each error.
    pub(crate) fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// Lets go on what is held.
    pub(crate) fn release(&self) {
        self.released.notify_one();
    }

    /// Waits until what was asked for has happened.
    pub(crate) async fn until_cut(&self) {
        in_time(async {
            while !self.is_cut() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }

    /// Whether the cut that was asked for has happened.
    pub(crate) fn is_cut(&self) -> bool {
        self.armed.lock().unwrap().is_none()
    }
}

async fn carry(
    mut client: TcpStream,
    upstream: String,
    armed: Armed,
    seen: Seen,
    released: Arc<Notify>,
) -> Option<()> {
    let mut server = TcpStream::connect(upstream).await.ok()?;
    let mut frames = Frames::default();
    let (mut asked, mut answered) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let chunk = &asked[..read.ok().filter(|n| *n > 0)?];
                frames.read(chunk, &seen);
                let cut = {
                    let mut armed = armed.lock().unwrap();
                    let fits = |(bytes, _): &(Vec<u8>, Cut)| chunk.windows(bytes.len()).any(|window| window == bytes);
                    if armed.as_ref().is_some_and(fits) { armed.take() } else { None }
                };
                match cut {
                    Some((_, Cut::Before)) => return None,
                    Some((_, Cut::Hang)) => std::future::pending().await,
                    Some((_, Cut::Hold)) => {
                        released.notified().await;
                        server.write_all(chunk).await.ok()?;
                    }
                    Some((_, Cut::Warn)) => {
                        server.write_all(chunk).await.ok()?;
                        // Nothing of the answer was asked for before, so it begins with a whole message.
                        server.readable().await.ok()?;
                        let length = u32::try_from(WARNING.len() + 4).ok()?;
                        client.write_all(b"N").await.ok()?;
                        client.write_all(&length.to_be_bytes()).await.ok()?;
                        client.write_all(WARNING).await.ok()?;
                    }
                    Some((_, Cut::After)) => {
                        server.write_all(chunk).await.ok()?;
                        // Postgres answers only after it has committed.
                        let _heard_by_nobody = server.read(&mut answered).await.ok()?;
                        return None;
                    }
                    None => server.write_all(chunk).await.ok()?,
                }
            }
            read = server.read(&mut answered) => {
                let n = read.ok().filter(|n| *n > 0)?;
                // The severity of an error, as Postgres writes it in every language.
                if answered[..n].windows(8).any(|window| window == b"VERROR\0C") {
                    seen.lock().unwrap().push("error".into());
                }
                client.write_all(&answered[..n]).await.ok()?;
            }
        }
    }
}

/// Takes a client's bytes apart into the messages of Postgres's protocol.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
    started: bool,
}

impl Frames {
    fn read(&mut self, chunk: &[u8], seen: &Seen) {
        self.bytes.extend_from_slice(chunk);
        loop {
            // The very first message has no type.
            let head = usize::from(self.started);
            let Some(length) = self.bytes.get(head..head + 4) else {
                return;
            };
            let end = head + u32::from_be_bytes(length.try_into().unwrap()) as usize;
            if self.bytes.len() < end {
                return;
            }
            let frame: Vec<u8> = self.bytes.drain(..end).collect();
            match (self.started, frame[0]) {
                (true, b'E') => seen.lock().unwrap().push("execute".into()),
                (true, b'Q') => {
                    let text = String::from_utf8_lossy(&frame[5..end - 1]).into_owned();
                    seen.lock().unwrap().push(text);
                }
                _ => {}
            }
            self.started = true;
        }
    }
}
