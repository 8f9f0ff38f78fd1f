//! The pages of ops and admins: the panel, which is live, and the sheets that its numbers lead to.

pub mod acts;
pub mod api;
mod arrivals;
mod counters;
mod findings;
mod front_lock;
mod glance;
mod keep;
mod keys;
mod live;
mod panel;
pub mod sheet;
#[cfg(feature = "ssr")]
mod sheets;
mod slot;
mod stuck;
mod tiles;

pub(crate) use panel::PanelPage;
pub(crate) use sheet::SheetPage;
