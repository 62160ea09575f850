//! The council, heard and seen from outside: inputs in, commands and events out.

#![allow(clippy::unwrap_used)]

mod bench;
mod conclusion;
mod failures;
mod modes;
mod others;
mod queue;
mod retry;
mod road;
mod talk;
