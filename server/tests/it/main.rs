//! The server's integration tests, one binary.

mod private_postgres;
