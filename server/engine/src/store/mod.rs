//! All SQL of Yici: one statement per function. The caller owns connection and transaction.
//!
//! Results tell *updated*, *moved on* and *missing* apart; nothing here decides, retries or waits.

use sqlx::{migrate::Migrator, types::time::OffsetDateTime};
use time::format_description::well_known::Rfc3339;

pub(crate) mod account;
pub(crate) mod actions;
pub(crate) mod arrival;
pub(crate) mod arrival_list;
pub(crate) mod audit;
pub(crate) mod bulk;
pub(crate) mod compensation;
pub(crate) mod demo;
pub(crate) mod ends;
pub(crate) mod instance;
mod notice;
pub(crate) mod outbox;
pub(crate) mod panel;
pub(crate) mod progress;
pub(crate) mod record;
pub(crate) mod record_detail;
pub(crate) mod record_list;
pub(crate) mod recovery;
pub(crate) mod redemption;
pub(crate) mod scan;
pub(crate) mod task;
pub(crate) mod teaching;
pub(crate) mod token;
pub(crate) mod transaction;
pub(crate) mod watch;

/// The schema, forward only.
pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// A time as the API writes it.
pub(crate) fn rfc3339(at: OffsetDateTime) -> String {
    at.format(&Rfc3339)
        .expect("Postgres's range of years used here fits RFC 3339")
}
