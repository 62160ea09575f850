//! The adapters: one file per service or kind of program.

pub mod agent_cli;
pub(crate) mod local;
pub mod scripted;

mod anthropic;
pub(crate) mod gemini;
mod openai;
mod parts;
pub(crate) mod persistent;
pub mod programs;
mod reach;

use crate::transport::http::Dialect;
use kd_core::config::Wire;

/// Returns the dialect of a wire format.
pub(crate) fn dialect(wire: Wire) -> &'static dyn Dialect {
    match wire {
        Wire::OpenAi => &openai::OpenAi,
        Wire::Anthropic => &anthropic::Anthropic,
        Wire::Gemini => &gemini::Gemini,
    }
}
