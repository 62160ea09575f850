//! The forum's store, equal on SQLite and PostgreSQL.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests; what is left out is said"
)]

mod accounts;
mod bounds;
mod bytes;
mod chain;
mod columns;
mod company;
mod decided;
mod dice;
mod erase;
mod forks;
mod governance;
mod hostile;
mod imports;
mod logs;
mod order;
#[path = "../support/postgres.rs"]
mod postgres_server;
mod relay;
mod rules;
mod runs;
mod servers;
mod shape;
mod talk;
mod tls;
mod together;
