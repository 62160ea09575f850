//! Runs a small language model inside the process: load, batch, constrain to a schema, stream tokens.
//!
//! An [`Engine`] loads a GGUF file and answers [`Job`]s piece by piece. Concurrent jobs are decoded in one batch, and
//! each answer is bit-identical to the one it would get alone. With the feature `llama-cpp`, llama.cpp runs the models
//! that the built-in code does not support, behind the same `Engine`.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod catalog;
pub mod chat;
pub mod constrain;
mod engine;
mod error;
pub mod gguf;
mod kernels;
mod kv;
#[cfg(feature = "llama-cpp")]
mod llama_cpp;
mod load;
mod model;
mod pool;
mod quant;
mod sampler;
pub mod tokenizer;

pub use engine::{
    Carrier, Engine, Job, ModelInfo, Options, Piece, StopReason, Ticket, Usage, Watch,
};
pub use error::Error;
pub use kernels::Simd;
pub use sampler::Sampling;

#[cfg(test)]
#[path = "../tests/tiny/mod.rs"]
mod tiny;
#[cfg(test)]
#[path = "../tests/writer/mod.rs"]
mod writer;
