//! How bytes travel, whatever they mean: HTTP calls, server-sent events, child processes and their lines.

pub(crate) mod http;
pub mod lines;
pub(crate) mod sse;
