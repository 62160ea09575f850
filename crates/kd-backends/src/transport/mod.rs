//! Transports, independent of content: HTTP calls, server-sent events, child processes and their lines.

pub(crate) mod body;
mod child;
pub(crate) mod client;
pub mod family;
pub(crate) mod http;
pub mod keeper;
pub mod lines;
mod outlet;
#[cfg(target_os = "linux")]
mod proc;
pub mod process;
pub(crate) mod refused;
pub mod rights;
#[cfg(target_os = "linux")]
mod signals;
pub mod sse;
#[cfg(target_os = "linux")]
pub(crate) mod tools;
