//! Front ends for other programs. Translates their protocols into ops of the engine, and its events back; makes no
//! decisions, and reaches disk and models only through the given [`Kingdom`].

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
