//! Front ends for other programs. Translates their protocols into ops of the engine, and its events back; makes no
//! decisions, and reaches disk and models only through the given [`kd_app::host::Host`].

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod acp;
mod answer;
mod blocking;
mod body;
mod connections;
mod consult;
mod error;
mod events;
pub mod http;
mod identity;
pub mod mcp;
mod metrics;
mod models;
mod page;
mod places;

/// Path of MCP.
pub(crate) const MCP: &str = "/mcp";

pub use error::ServeError;
pub use identity::{BadTokens, Tokens, generate};
