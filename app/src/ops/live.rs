//! The panel's stream: one per visible tab, closed while the tab is hidden or paused, with its state and the age of its data.

use codee::string::JsonSerdeCodec;
use domain::view::PanelView;
use leptos::{ev, prelude::*};
use leptos_use_event_source::{
    ConnectionReadyState, ReconnectLimit, UseEventSourceOptions, UseEventSourceReturn,
    use_event_source_with_options,
};
use web_sys::VisibilityState;

/// How soon a lost stream is opened again, in milliseconds; the server may be restarting.
const RECONNECT_MS: u64 = 1_000;

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
        let url = format!("/api/v1/panel/events?window={}", first.window);
        let view = RwSignal::new(first);
        let (paused, hydrated) = (RwSignal::new(false), RwSignal::new(false));
        let received = RwSignal::new(None);
        let UseEventSourceReturn {
            message,
            ready_state,
            open,
            close,
            ..
        } = use_event_source_with_options::<PanelView, JsonSerdeCodec>(
            url,
            UseEventSourceOptions::default()
                .immediate(false)
                .reconnect_limit(ReconnectLimit::Infinite)
                .reconnect_interval(RECONNECT_MS)
                .named_events(["panel".to_owned()]),
        );
        let was_open = RwSignal::new(false);
        Effect::new(move || {
            if let Some(newest) = message.get() {
                view.set(newest.data);
                received.set(Some(js_sys::Date::now()));
            }
        });
        Effect::new(move || {
            if ready_state.get() == ConnectionReadyState::Open {
                was_open.set(true);
            }
        });
        let visible = RwSignal::new(true);
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
        Effect::new(move || {
            if !hydrated.get() {
                return;
            }
            if visible.get() && !paused.get() {
                open();
            } else {
                close();
            }
        });
        let stream = Memo::new(move |_| match ready_state.get() {
            _ if !hydrated.get() => Stream::Off,
            _ if paused.get() => Stream::Paused,
            ConnectionReadyState::Open => Stream::Open,
            _ if was_open.get() => Stream::Lost,
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
