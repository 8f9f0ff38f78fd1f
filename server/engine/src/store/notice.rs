//! Warnings of Postgres. sqlx hands them to nobody but the log, as events; so they are taken from there.

use std::{
    cell::RefCell,
    fmt,
    pin::pin,
    sync::LazyLock,
    task::{Context, Poll},
};

use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber, dispatcher,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
    subscriber::Interest,
};

/// By which sqlx names notices.
const TARGET: &str = "sqlx::postgres::notice";

/// One for all commits: a new subscriber makes every event of the process be judged anew.
static LISTENER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Listener));

thread_local! {
    /// The last warning that was heard on this thread, while a future is polled.
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a future and answers with the last warning that Postgres gave meanwhile. Nothing else that it says is logged.
pub(super) async fn listen<T>(future: impl Future<Output = T>) -> (T, Option<String>) {
    let (mut future, mut warning) = (pin!(future), None);
    let done = std::future::poll_fn(|context: &mut Context<'_>| -> Poll<T> {
        let polled = dispatcher::with_default(&LISTENER, || future.as_mut().poll(context));
        // Taken at each poll: the next one may be on another thread.
        if let Some(heard) = HEARD.take() {
            warning = Some(heard);
        }
        polled
    })
    .await;
    (done, warning)
}

struct Listener;

impl Listener {
    fn is_warning(metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET && *metadata.level() == Level::WARN
    }
}

impl Subscriber for Listener {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Decided once: what this does not listen to costs the rest of the process nothing.
        if Self::is_warning(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        Self::is_warning(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        HEARD.set(Some(message.0));
    }

    // No span is enabled; these are asked of nobody.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
