//! How bytes travel, whatever they mean: HTTP calls and server-sent events.

pub(crate) mod http;
pub(crate) mod sse;
