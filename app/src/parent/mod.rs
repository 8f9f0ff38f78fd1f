//! The parent's page: how the children's tasks stand.

pub mod api;
mod report;

pub(crate) use report::ReportPage;
