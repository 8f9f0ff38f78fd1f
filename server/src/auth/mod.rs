//! Who somebody is: passwords, tokens, and the identity of each request.
//!
//! A browser's session and a machine client's token are the same thing: 256 random bits whose SHA-256 is looked up in
//! Postgres with every request, so that a sign-out holds at once on every instance. A session library would keep its id in
//! the clear, need a second mechanism for machine clients, and a second statement per request.

mod identity;
pub mod password;
pub mod token;

pub use identity::{Identity, SESSION_COOKIE, Signed, identify};
