//! The teacher's page: how the classes stand.

pub mod api;
mod progress;

pub(crate) use progress::ProgressPage;
