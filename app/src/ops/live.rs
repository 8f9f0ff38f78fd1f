//! The panel's stream: one per visible tab, closed while the tab is hidden or paused, with its state and the age of its data. A tab
//! beyond the streams that a browser can have asks again and again instead.

use std::time::Duration;

use codee::string::JsonSerdeCodec;
use domain::view::{PanelView, Window};
use leptos::{ev, prelude::*, task::spawn_local};
use leptos_use_event_source::{
    ConnectionReadyState, ReconnectLimit, UseEventSourceOptions, UseEventSourceReturn,
    use_event_source_with_options,
};
use web_sys::VisibilityState;

use super::{api::panel, slot};

/// How soon a lost stream is opened again, in milliseconds; the server may be restarting.
const RECONNECT_MS: u64 = 1_000;
/// How often a tab without a stream asks; as often as a stream sends at least.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// How the stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Before hydration: the numbers of the page's rendering.
    Off,
    /// Not open yet.
    Connecting,
    /// Numbers come in.
    Open,
    /// It broke; it is being opened again.
    Lost,
    /// The person stopped it.
    Paused,
}

/// How numbers come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Not at all: before hydration, out of sight, paused.
    None,
    /// By a stream.
    Streamed,
    /// By asking; whether the last time was answered.
    Asked(Option<bool>),
}

/// The panel's numbers as they come in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    /// The newest numbers.
    pub(crate) view: RwSignal<PanelView>,
    /// How the stream stands.
    pub(crate) stream: Memo<Stream>,
    /// Whether the person stopped it.
    pub(crate) paused: RwSignal<bool>,
    /// When the newest numbers came, by the reader's clock in milliseconds; the clocks of two machines are never compared.
    pub(crate) received: RwSignal<Option<f64>>,
}

impl Live {
    /// Opens the stream for the window of the first numbers, once the page is hydrated.
    pub(crate) fn open(first: PanelView) -> Self {
        let window = first.window;
        let view = RwSignal::new(first);
        let (paused, hydrated, visible) = (
            RwSignal::new(false),
            RwSignal::new(false),
            RwSignal::new(true),
        );
        let received = RwSignal::new(None);
        let UseEventSourceReturn {
            message,
            ready_state,
            open,
            close,
            ..
        } = use_event_source_with_options::<PanelView, JsonSerdeCodec>(
            format!("/api/v1/panel/events?window={window}"),
            UseEventSourceOptions::default()
                .immediate(false)
                .reconnect_limit(ReconnectLimit::Infinite)
                .reconnect_interval(RECONNECT_MS)
                .named_events(["panel".to_owned()]),
        );
        let come = move |newest| {
            view.try_set(newest);
            received.try_set(Some(js_sys::Date::now()));
        };
        Effect::new(move || {
            if let Some(newest) = message.get() {
                come(newest.data);
            }
        });
        Effect::new(move || {
            received.set(Some(js_sys::Date::now()));
            hydrated.set(true);
            let look =
                move || visible.set(document().visibility_state() == VisibilityState::Visible);
            look();
            let event = ev::Custom::<ev::Event>::new("visibilitychange");
            let handle = window_event_listener(event, move |_| look());
            on_cleanup(move || handle.remove());
        });
        let wanted = Memo::new(move |_| hydrated.get() && visible.get() && !paused.get());
        let way = follow(wanted, open, close, move |way| ask(way, window, come));
        let was_open = RwSignal::new(false);
        Effect::new(move || {
            if ready_state.get() == ConnectionReadyState::Open {
                was_open.set(true);
            }
        });
        let stream = Memo::new(move |_| match (way.get(), ready_state.get()) {
            _ if !hydrated.get() => Stream::Off,
            _ if paused.get() => Stream::Paused,
            (Way::Asked(Some(true)), _) | (Way::Streamed, ConnectionReadyState::Open) => {
                Stream::Open
            }
            (Way::Asked(Some(false)), _) => Stream::Lost,
            (Way::Streamed, _) if was_open.get() => Stream::Lost,
            _ => Stream::Connecting,
        });
        Self {
            view,
            stream,
            paused,
            received,
        }
    }
}

/// Has a slot and a stream while numbers are wanted; without a slot the way is to ask, and to look for one each time.
fn follow(
    wanted: Memo<bool>,
    open: impl Fn() + Clone + Send + Sync + 'static,
    close: impl Fn() + Clone + Send + Sync + 'static,
    ask: impl Fn(RwSignal<Way>) + Copy + 'static,
) -> RwSignal<Way> {
    let way = RwSignal::new(Way::None);
    let look = move || {
        let open = open.clone();
        slot::take(move |found| {
            let is_wanted = wanted.try_get_untracked() == Some(true)
                && way
                    .try_get_untracked()
                    .is_some_and(|way| way != Way::Streamed);
            match found {
                // It came too late, or twice.
                Some(found) if !is_wanted => found.release(),
                Some(found) => {
                    slot::hold(found);
                    way.set(Way::Streamed);
                    open();
                }
                None if is_wanted && way.get_untracked() == Way::None => way.set(Way::Asked(None)),
                None => {}
            }
        });
    };
    let again = look.clone();
    Effect::new(move || {
        if wanted.get() {
            look();
        } else {
            close();
            slot::leave();
            way.set(Way::None);
        }
    });
    let asks = Memo::new(move |_| matches!(way.get(), Way::Asked(_)));
    Effect::new(move || {
        if !asks.get() {
            return;
        }
        ask(way);
        let again = again.clone();
        let turn = move || {
            again();
            ask(way);
        };
        if let Ok(timer) = set_interval_with_handle(turn, ASK_EVERY) {
            on_cleanup(move || timer.clear());
        }
    });
    on_cleanup(slot::leave);
    way
}

/// Asks for the numbers once, if that is still the way when they come.
fn ask(way: RwSignal<Way>, window: Window, come: impl Fn(PanelView) + 'static) {
    spawn_local(async move {
        let answer = panel(window).await;
        if !matches!(way.try_get_untracked(), Some(Way::Asked(_))) {
            return;
        }
        way.set(Way::Asked(Some(answer.is_ok())));
        if let Ok(newest) = answer {
            come(newest);
        }
    });
}
