//! The batch endpoints of each wire format.

use super::wire::Endpoint;
use super::{anthropic, gemini, openai};
use kd_core::config::Wire;

/// Returns the batch endpoints of a wire format.
pub(super) fn endpoint(wire: Wire) -> &'static dyn Endpoint {
    match wire {
        Wire::OpenAi => &openai::OpenAi,
        Wire::Anthropic => &anthropic::Anthropic,
        Wire::Gemini => &gemini::Gemini,
    }
}
