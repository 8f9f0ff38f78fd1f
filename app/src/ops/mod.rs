//! The panel of ops: health at a glance, counters, arrivals over time, stuck records.

pub mod api;
mod arrivals;
mod counters;
mod front_lock;
mod glance;
mod live;
mod panel;
mod stuck;
mod tiles;

pub(crate) use panel::PanelPage;
