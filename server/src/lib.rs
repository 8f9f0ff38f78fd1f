//! The application's server: settings, sign-in, HTTP, the private Postgres, wiring and graceful stop.
