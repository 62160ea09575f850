//! How bytes travel, whatever they mean: HTTP calls, server-sent events, child processes and their lines.

mod child;
pub mod family;
pub(crate) mod http;
pub mod lines;
mod outlet;
pub mod process;
pub(crate) mod sse;
