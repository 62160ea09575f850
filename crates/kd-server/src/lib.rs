//! Faces for other programs. It translates their wires into ops of the engine and its events back; it decides nothing,
//! and reaches disk and models only through the [`Kingdom`] that it is given.

mod answer;
mod connections;
mod consult;
pub mod http;
mod identity;
pub mod kingdom;
pub mod mcp;
mod models;
mod page;

pub use identity::{BadTokens, Tokens, generate};
pub use kingdom::{Ask, Followed, Following, Kingdom, Listed, Method, Refusal, Started};
