//! Runs a small language model inside the process: load, batch, constrain to a schema, stream tokens.
//!
//! A GGUF file comes in; an [`Engine`] answers [`Job`]s piece by piece. Jobs that run at the same time are decoded
//! together, and each answer is, bit for bit, the one it would have been alone.

pub mod catalog;
pub mod chat;
pub mod constrain;
mod engine;
mod error;
pub mod gguf;
mod kernels;
mod kv;
mod model;
mod pool;
mod quant;
mod sampler;
pub mod tokenizer;

pub use engine::{Engine, Job, ModelInfo, Options, Piece, StopReason, Ticket, Usage, Watch};
pub use error::Error;
pub use kernels::Simd;
pub use sampler::Sampling;

#[cfg(test)]
#[path = "../tests/tiny/mod.rs"]
mod tiny;
#[cfg(test)]
#[path = "../tests/writer/mod.rs"]
mod writer;
