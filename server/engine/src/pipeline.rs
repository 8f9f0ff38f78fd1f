//! Group commit: items that come while a set is being committed form the next set. Nothing waits for a timer.
//!
//! A set that fails is repeated as sets of one, each on its own connection, while the pipeline goes on; so one bad item
//! holds up or fails nobody else. A set that hangs has failed too: its connection may be dead without anybody having been told.

use std::{io::ErrorKind, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::StoreError;

/// The largest set. Beyond this the time of a statement grows faster than what a shared commit saves.
const MAX_SET: usize = 64;
/// How many items may wait before senders wait themselves.
const QUEUE: usize = 4096;
/// How often an item is tried again alone before its failure is reported.
const TRIES_AGAIN: usize = 3;
/// The first pause between tries; each next is three times as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

type Running<O> = BoxFuture<'static, Result<Vec<O>, StoreError>>;

/// How sets are run.
struct Sets<I, O> {
    run: Box<dyn Fn(Arc<[I]>) -> Running<O> + Send + Sync>,
    /// How long one may take.
    patience: Duration,
}

impl<I, O> Sets<I, O> {
    async fn run(&self, items: Arc<[I]>) -> Result<Vec<O>, StoreError> {
        let hung =
            || StoreError::Unavailable(Arc::new(sqlx::Error::Io(ErrorKind::TimedOut.into())));
        tokio::time::timeout(self.patience, (self.run)(items))
            .await
            .unwrap_or_else(|_| Err(hung()))
    }
}

struct Job<I, O> {
    item: I,
    reply: oneshot::Sender<Result<O, StoreError>>,
}

/// A queue in front of a set-based store function.
pub(crate) struct Pipeline<I, O> {
    queue: mpsc::Sender<Job<I, O>>,
}

impl<I, O> Pipeline<I, O>
where
    I: Clone + Send + Sync + 'static,
    O: Send + 'static,
{
    /// Starts a pipeline that runs at most `sets_at_once` sets side by side, each for at most `patience`. `run` answers in the
    /// order of its items, and must be safe to repeat after any failure and to be dropped at any moment. It ends when the last
    /// handle is dropped and its queue is empty.
    pub(crate) fn start<F>(sets_at_once: usize, patience: Duration, run: F) -> Self
    where
        F: Fn(Arc<[I]>) -> Running<O> + Send + Sync + 'static,
    {
        let (queue, jobs) = mpsc::channel(QUEUE);
        tokio::spawn(drive(
            jobs,
            Arc::new(Semaphore::new(sets_at_once)),
            Arc::new(Sets {
                run: Box::new(run),
                patience,
            }),
        ));
        Self { queue }
    }

    /// Hands an item in and waits for what became of it.
    ///
    /// # Errors
    /// What the store said of this item alone, after the tries were used up.
    pub(crate) async fn run(&self, item: I) -> Result<O, StoreError> {
        let (reply, answer) = oneshot::channel();
        let gone = || StoreError::Unavailable(Arc::new(sqlx::Error::WorkerCrashed));
        self.queue
            .send(Job { item, reply })
            .await
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

async fn drive<I, O>(
    mut jobs: mpsc::Receiver<Job<I, O>>,
    slots: Arc<Semaphore>,
    sets: Arc<Sets<I, O>>,
) where
    I: Clone + Send + Sync + 'static,
    O: Send + 'static,
{
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        let mut set = Vec::with_capacity(MAX_SET);
        if jobs.recv_many(&mut set, MAX_SET).await == 0 {
            return;
        }
        let sets = sets.clone();
        tokio::spawn(async move {
            run_set(set, sets).await;
            drop(slot);
        });
    }
}

async fn run_set<I, O>(set: Vec<Job<I, O>>, sets: Arc<Sets<I, O>>)
where
    I: Clone + Send + Sync + 'static,
    O: Send + 'static,
{
    let (items, replies): (Vec<_>, Vec<_>) =
        set.into_iter().map(|job| (job.item, job.reply)).unzip();
    let items: Arc<[I]> = items.into();
    match sets.run(items.clone()).await {
        Ok(outputs) if outputs.len() == items.len() => {
            for (reply, output) in replies.into_iter().zip(outputs) {
                // A caller that is gone is not this layer's concern.
                let _ = reply.send(Ok(output));
            }
        }
        outcome => {
            if let Err(error) = outcome {
                tracing::debug!(set = items.len(), %error, "a set failed and is repeated one by one");
            }
            for (item, reply) in items.iter().cloned().zip(replies) {
                let sets = sets.clone();
                tokio::spawn(async move {
                    let _ = reply.send(run_alone(item, &sets).await);
                });
            }
        }
    }
}

async fn run_alone<I: Clone, O>(item: I, sets: &Sets<I, O>) -> Result<O, StoreError> {
    let once = || async {
        let mut outputs = sets.run(Arc::from([item.clone()])).await?;
        outputs
            .pop()
            .ok_or_else(|| StoreError::Corrupt("a set of one had no answer".into()))
    };
    // Jitter, so that two instances that collided do not collide again.
    let pauses = ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_factor(3.0)
        .with_max_times(TRIES_AGAIN)
        .with_jitter();
    once.retry(pauses).when(may_try_again).await
}

/// What has been waited for already is not waited for again: more tries would only make the pool's queue longer.
fn may_try_again(error: &StoreError) -> bool {
    let waited = match error {
        StoreError::Unavailable(error) => match &**error {
            sqlx::Error::PoolTimedOut => true,
            sqlx::Error::Io(error) => error.kind() == ErrorKind::TimedOut,
            _ => false,
        },
        _ => false,
    };
    error.is_passing() && !waited
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn items_that_come_during_a_set_form_the_next_set() {
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let gate = Arc::new(Semaphore::new(0));
        let pipeline = Arc::new(Pipeline::start(1, LONG, {
            let (sizes, gate) = (sizes.clone(), gate.clone());
            move |items: Arc<[u32]>| {
                let (sizes, gate) = (sizes.clone(), gate.clone());
                Box::pin(async move {
                    sizes.lock().expect("not poisoned").push(items.len());
                    gate.acquire().await.expect("open").forget();
                    Ok(items.iter().map(|i| i * 2).collect())
                })
            }
        }));
        let submit = |n: u32| {
            let pipeline = pipeline.clone();
            tokio::spawn(async move { pipeline.run(n).await })
        };
        let first = submit(1);
        while sizes.lock().expect("not poisoned").is_empty() {
            tokio::task::yield_now().await;
        }
        let rest: Vec<_> = (2..=5).map(submit).collect();
        while pipeline.queue.capacity() != QUEUE - 4 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(2);
        assert_eq!(first.await.expect("joined").expect("ok"), 2);
        for (n, answer) in (2..=5).zip(rest) {
            assert_eq!(answer.await.expect("joined").expect("ok"), n * 2);
        }
        assert_eq!(*sizes.lock().expect("not poisoned"), [1, 4]);
    }

    #[tokio::test]
    async fn one_bad_item_fails_alone() {
        let pipeline = Arc::new(Pipeline::start(1, LONG, |items: Arc<[u32]>| {
            Box::pin(async move {
                if items.contains(&3) {
                    Err(StoreError::Corrupt("three".into()))
                } else {
                    Ok(items.to_vec())
                }
            })
        }));
        let answers = futures::future::join_all((1..=5).map(|n| pipeline.run(n))).await;
        let ok: Vec<_> = answers.iter().map(Result::is_ok).collect();
        assert_eq!(ok, [true, true, false, true, true]);
    }

    #[tokio::test]
    async fn a_set_that_hangs_is_given_up_and_holds_nobody_else_up() {
        let begun = Arc::new(AtomicU32::new(0));
        let pipeline = Arc::new(Pipeline::start(1, Duration::from_millis(20), {
            let begun = begun.clone();
            move |items: Arc<[u32]>| {
                let first = begun.fetch_add(1, Ordering::SeqCst) == 0;
                Box::pin(async move {
                    if first {
                        std::future::pending().await
                    }
                    Ok(items.to_vec())
                })
            }
        }));
        let submit = |n: u32| {
            let pipeline = pipeline.clone();
            async move {
                tokio::time::timeout(LONG, pipeline.run(n))
                    .await
                    .expect("in time")
            }
        };
        let (first, second) = tokio::join!(submit(1), async {
            while begun.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            submit(2).await
        });
        assert_eq!((first.expect("repeated"), second.expect("ok")), (1, 2));
    }

    #[tokio::test]
    async fn an_item_that_always_hangs_is_repeated_once() {
        let begun = Arc::new(AtomicU32::new(0));
        let pipeline = Pipeline::<u32, u32>::start(1, Duration::from_millis(20), {
            let begun = begun.clone();
            move |_| {
                begun.fetch_add(1, Ordering::SeqCst);
                Box::pin(std::future::pending())
            }
        });
        assert!(matches!(
            pipeline.run(1).await,
            Err(StoreError::Unavailable(_))
        ));
        assert_eq!(begun.load(Ordering::SeqCst), 2);
    }
}
