//! The program from outside: the real binary in an empty home. One test program, so that it is linked once, and the tests
//! that wait leave their cores to others.
//!
//! `cargo test -p kd --test program chat::` runs the tests of one file.

mod acp;
mod acting;
mod ask;
mod ask_back;
mod at_once;
mod attach;
mod attach_media;
mod batch;
mod cache;
mod chat;
mod cost;
mod council;
mod crash;
mod deliberate;
mod docs;
mod doctor;
mod eval;
mod eval_live;
mod eval_share;
mod eval_share_money;
mod examples;
mod faces;
mod faults;
mod first;
mod fleet;
mod forget;
mod fork;
mod forum;
mod hostile;
mod limits;
mod many;
mod mark;
mod marks_weeks;
mod mcp;
mod models;
mod output;
mod page;
mod printed;
mod private;
mod provider_batch;
mod records;
mod replies;
mod review;
mod schemas;
mod screen;
mod seal;
mod seats;
mod secrets;
mod seeds;
mod serve;
mod support;
mod terminal;
mod think;
mod tools;
mod trust;
mod versions;
mod vote;

// A real database.
#[allow(
    clippy::print_stderr,
    reason = "the server of tests says that it is not there"
)]
#[path = "../../kd-sql/tests/support/postgres.rs"]
mod postgres_server;
// The tiny model of the engine's tests.
#[path = "../../kd-local/tests/tiny/mod.rs"]
mod tiny;
#[path = "../../kd-local/tests/writer/mod.rs"]
mod writer;
