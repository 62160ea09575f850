//! Encodes pieces of an answer as server-sent events, in each wire format.

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
    /// OpenAI responses, which Codex speaks.
    Responses,
}

impl Wire {
    /// The formats that `kd` itself uses, for table-driven tests.
    pub const ALL: [Wire; 3] = [Wire::OpenAi, Wire::Anthropic, Wire::Gemini];

    /// Returns the first events of a real service.
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
            Wire::Responses => {
                data(
                    &json!({"type": "response.created", "response": {"id": "r1", "model": "fake-1"}}),
                ) + &data(
                    &json!({"type": "response.output_item.added", "output_index": 0, "item": responses_message("")}),
                )
            }
        }
    }

    /// Encodes a piece of the answer.
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
            Wire::Responses => data(
                &json!({"type": "response.output_text.delta", "item_id": "msg1", "output_index": 0, "content_index": 0, "delta": text}),
            ),
        }
    }

    /// Encodes a piece of thinking.
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
            Wire::Responses => data(
                &json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs1", "output_index": 0, "summary_index": 0, "delta": text}),
            ),
        }
    }

    /// Encodes a tool call, with the ending that belongs to it.
    pub fn tool(self, name: &str, input: &Value) -> String {
        self.calls(&[(name.to_owned(), input.to_string())])
    }

    /// Encodes tool calls with these arguments, with the ending that belongs to them.
    pub fn calls(self, calls: &[(String, String)]) -> String {
        let numbered = (1..).zip(calls);
        match self {
            Wire::OpenAi => {
                let calls: Vec<Value> = numbered
                    .map(|(n, (name, arguments))| {
                        json!({"index": n - 1, "id": format!("call{n}"), "type": "function",
                            "function": {"name": name, "arguments": arguments}})
                    })
                    .collect();
                data(
                    &json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake-1",
                    "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": null}]}),
                ) + &data(
                    &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
                ) + "data: [DONE]\n\n"
            }
            Wire::Anthropic => {
                let mut text = event(
                    "content_block_stop",
                    &json!({"type": "content_block_stop", "index": 0}),
                );
                for (n, (name, arguments)) in numbered {
                    text += &event(
                        "content_block_start",
                        &json!({"type": "content_block_start", "index": n,
                            "content_block": {"type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": {}}}),
                    );
                    text += &event(
                        "content_block_delta",
                        &json!({"type": "content_block_delta", "index": n,
                            "delta": {"type": "input_json_delta", "partial_json": arguments}}),
                    );
                    text += &event(
                        "content_block_stop",
                        &json!({"type": "content_block_stop", "index": n}),
                    );
                }
                text + &event(
                    "message_delta",
                    &json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
                ) + &event("message_stop", &json!({"type": "message_stop"}))
            }
            Wire::Gemini => {
                let parts: Vec<Value> = numbered
                    .map(|(n, (name, arguments))| {
                        let arguments: Value =
                            serde_json::from_str(arguments).unwrap_or(json!(arguments));
                        json!({"functionCall": {"name": name, "args": arguments},
                            "thoughtSignature": format!("signed{n}")})
                    })
                    .collect();
                data(
                    &json!({"candidates": [{"content": {"role": "model", "parts": parts},
                    "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5}}),
                )
            }
            Wire::Responses => {
                let mut text = String::new();
                for (n, (name, arguments)) in numbered {
                    text += &data(
                        &json!({"type": "response.output_item.done", "output_index": n,
                        "item": {"type": "function_call", "id": format!("fc{n}"), "call_id": format!("call{n}"), "name": name,
                            "arguments": arguments, "status": "completed"}}),
                    );
                }
                text + &responses_completed()
            }
        }
    }

    /// Encodes the ending: reason, usage (11 tokens in, 3 of them cached; 7 out, 2 of them thinking) and end marker.
    /// Some wire formats repeat the whole answer.
    pub fn ending(self, length: bool, said: &str) -> String {
        match self {
            Wire::Responses => {
                data(
                    &json!({"type": "response.output_item.done", "output_index": 0, "item": responses_message(said)}),
                ) + &responses_completed()
            }
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

    /// Encodes an error in the middle of a stream: the service is overloaded.
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
            Wire::Responses => data(&json!({"type": "response.failed", "response": {"id": "r1",
                    "error": {"code": "server_is_overloaded", "message": "the engine is overloaded"}}})),
        }
    }

    /// Encodes an answer withheld by the provider.
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
            Wire::Responses => data(&json!({"type": "response.failed", "response": {"id": "r1",
                    "error": {"code": "content_filter", "message": "the answer was withheld"}}})),
        }
    }

    /// Returns the body of a response with an error status.
    pub fn error_body(self, status: u16, message: &str) -> String {
        let body = match self {
            Wire::OpenAi | Wire::Responses => {
                json!({"error": {"message": message, "type": "error", "code": status}})
            }
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

fn responses_message(text: &str) -> Value {
    let content = match text {
        "" => json!([]),
        text => json!([{"type": "output_text", "text": text, "annotations": []}]),
    };
    json!({"type": "message", "id": "msg1", "role": "assistant", "content": content})
}

fn responses_completed() -> String {
    data(
        &json!({"type": "response.completed", "response": {"id": "r1", "usage": {
            "input_tokens": 11, "input_tokens_details": {"cached_tokens": 3},
            "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 18}}}),
    )
}
