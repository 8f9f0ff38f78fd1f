//! The application's server: settings, sign-in, HTTP, the private Postgres, wiring and graceful stop.

pub mod private_postgres;
pub mod settings;
