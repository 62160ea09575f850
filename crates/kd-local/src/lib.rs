//! Runs a small language model inside the process: load, batch, constrain to a schema, stream tokens.
//!
//! A GGUF file comes in; an [`Engine`] answers [`Job`]s piece by piece. Jobs that run at the same time are decoded
//! together, and each answer is, bit for bit, the one it would have been alone.

mod error;
pub mod gguf;

pub use error::Error;
