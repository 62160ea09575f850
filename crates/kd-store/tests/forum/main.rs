//! The forum's store, the same on SQLite and on PostgreSQL.

mod governance;
mod runs;
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests; what is left out is said")]

mod servers;
mod talk;
mod together;
