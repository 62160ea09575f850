//! Faces for other programs. It translates their wires into ops of the engine and its events back; it decides nothing,
//! and reaches disk and models only through the [`Kingdom`] that it is given.

pub mod kingdom;
pub mod mcp;

pub use kingdom::{Ask, Kingdom, Listed, Method, Refusal, Started};
