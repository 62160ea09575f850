//! How each wire format writes a piece of an answer: words in, the bytes of one server-sent event out.

use serde_json::{Value, json};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI chat completions.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
    /// Gemini `streamGenerateContent`.
    Gemini,
}

impl Wire {
    /// All of them, for tables of tests.
    pub const ALL: [Wire; 3] = [Wire::OpenAi, Wire::Anthropic, Wire::Gemini];

    /// What a real service says first.
    pub fn opening(self) -> String {
        match self {
            Wire::OpenAi => data(
                &json!({"id": "c1", "model": "fake-1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
            ),
            Wire::Anthropic => {
                event(
                    "message_start",
                    &json!({"type": "message_start", "message": {"id": "m1", "model": "fake-1",
                    "usage": {"input_tokens": 8, "cache_read_input_tokens": 3, "output_tokens": 1}}}),
                ) + &event(
                    "content_block_start",
                    &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                )
            }
            Wire::Gemini => String::new(),
        }
    }

    /// A piece of the answer.
    pub fn text(self, text: &str) -> String {
        match self {
            Wire::OpenAi => data(
                &json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake-1",
                "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}),
            ),
            Wire::Anthropic => event(
                "content_block_delta",
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            ),
            Wire::Gemini => data(
                &json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}],
                    "modelVersion": "fake-1"}),
            ),
        }
    }

    /// A piece of the thinking.
    pub fn thinking(self, text: &str) -> String {
        match self {
            Wire::OpenAi => {
                data(&json!({"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}))
            }
            Wire::Anthropic => event(
                "content_block_delta",
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": text}}),
            ),
            Wire::Gemini => data(
                &json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text, "thought": true}]}}],
                    "modelVersion": "fake-1"}),
            ),
        }
    }

    /// The whole ending: reason, usage (11 tokens in, 3 of them cached; 7 out, 2 of them thinking) and end marker.
    pub fn ending(self, length: bool) -> String {
        match self {
            Wire::OpenAi => {
                let reason = if length { "length" } else { "stop" };
                data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
                    + &data(
                        &json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7,
                        "prompt_tokens_details": {"cached_tokens": 3},
                        "completion_tokens_details": {"reasoning_tokens": 2}}}),
                    )
                    + "data: [DONE]\n\n"
            }
            Wire::Anthropic => {
                let reason = if length { "max_tokens" } else { "end_turn" };
                event(
                    "content_block_stop",
                    &json!({"type": "content_block_stop", "index": 0}),
                ) + &event(
                    "message_delta",
                    &json!({"type": "message_delta", "delta": {"stop_reason": reason},
                            "usage": {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 2}}}),
                ) + &event("message_stop", &json!({"type": "message_stop"}))
            }
            Wire::Gemini => {
                let reason = if length { "MAX_TOKENS" } else { "STOP" };
                data(
                    &json!({"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": reason}],
                    "usageMetadata": {"promptTokenCount": 11, "cachedContentTokenCount": 3,
                        "candidatesTokenCount": 5, "thoughtsTokenCount": 2}}),
                )
            }
        }
    }

    /// An error told in the middle of a stream: the service is overloaded.
    pub fn overloaded(self) -> String {
        match self {
            Wire::OpenAi => data(
                &json!({"error": {"message": "the engine is overloaded", "type": "server_error", "code": 503}}),
            ),
            Wire::Anthropic => event(
                "error",
                &json!({"type": "error", "error": {"type": "overloaded_error", "message": "the engine is overloaded"}}),
            ),
            Wire::Gemini => data(
                &json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "the engine is overloaded"}}),
            ),
        }
    }

    /// An answer that the provider withholds.
    pub fn refusal(self) -> String {
        match self {
            Wire::OpenAi => {
                data(
                    &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]}),
                ) + "data: [DONE]\n\n"
            }
            Wire::Anthropic => {
                event(
                    "message_delta",
                    &json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 1}}),
                ) + &event("message_stop", &json!({"type": "message_stop"}))
            }
            Wire::Gemini => data(&json!({"promptFeedback": {"blockReason": "SAFETY"}})),
        }
    }

    /// The body of an answer with an error status.
    pub fn error_body(self, status: u16, message: &str) -> String {
        let body = match self {
            Wire::OpenAi => json!({"error": {"message": message, "type": "error", "code": status}}),
            Wire::Anthropic => {
                json!({"type": "error", "error": {"type": "error", "message": message}})
            }
            Wire::Gemini => {
                json!({"error": {"code": status, "message": message, "status": "ERROR"}})
            }
        };
        body.to_string()
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn event(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}
