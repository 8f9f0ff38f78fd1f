//! The `server` command.

fn main() {}
