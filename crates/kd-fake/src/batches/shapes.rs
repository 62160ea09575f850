//! The output of the batch endpoints of each wire format: responses, results, errors.

use super::TOKENS;
use crate::wire::Wire;
use serde_json::{Value, json};

/// An answer that fits every schema of a deliberation.
fn structured() -> String {
    json!({"reason": "r", "answer": "yes", "confidence": 0.8, "choice": "A", "ranking": ["A"],
        "recommendation": "Do it.", "consensus": "c", "support": "s", "dissent": "none", "cites": ["A"]})
    .to_string()
}

/// Returns the last words of a request; JSON if it has a schema.
pub(super) fn echo(wire: Wire, body: &Value) -> String {
    let schemas = [
        &body["response_format"],
        &body["output_config"],
        &body["generationConfig"]["responseJsonSchema"],
    ];
    if schemas.iter().any(|schema| schema.is_object()) {
        return structured();
    }
    let last = |list: &Value| list.as_array().and_then(|list| list.last().cloned());
    let said = match wire {
        Wire::Gemini => last(&body["contents"]).and_then(|one| last(&one["parts"])),
        _ => last(&body["messages"]),
    };
    let said = said.unwrap_or_default();
    let content = match wire {
        Wire::Gemini => said["text"].clone(),
        _ => said["content"].clone(),
    };
    let text = match content {
        Value::String(text) => text,
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
        _ => String::new(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    format!(
        "echo: {}",
        words[words.len().saturating_sub(12)..].join(" ")
    )
}

/// Returns a complete response.
fn response(wire: Wire, text: &str) -> Value {
    let (input, output) = TOKENS;
    match wire {
        Wire::Anthropic => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "fake-1",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": input, "output_tokens": output}})
        }
        Wire::Gemini => {
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]},
            "finishReason": "STOP", "index": 0}], "modelVersion": "fake-1", "responseId": "r1",
            "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output,
                "totalTokenCount": input + output}})
        }
        Wire::OpenAi | Wire::Responses => {
            json!({"id": "c1", "object": "chat.completion", "model": "fake-1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": null},
                "finish_reason": "stop"}],
            "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}})
        }
    }
}

/// Returns a result in the form of an entry in the list or file of results.
pub(super) fn result(wire: Wire, id: &Value, text: &str) -> Value {
    let response = response(wire, text);
    match wire {
        Wire::Anthropic => {
            json!({"custom_id": id, "result": {"type": "succeeded", "message": response}})
        }
        Wire::Gemini => json!({"metadata": {"key": id}, "response": response}),
        _ => json!({"id": "r", "custom_id": id, "error": null,
            "response": {"status_code": 200, "request_id": "q", "body": response}}),
    }
}

/// Returns the result of a request that failed.
pub(super) fn error(wire: Wire, id: &Value) -> Value {
    let message = "the fake server says no";
    match wire {
        Wire::Anthropic => {
            json!({"custom_id": id, "result": {"type": "errored", "error": {"type": "error",
            "error": {"type": "invalid_request_error", "message": message}}}})
        }
        Wire::Gemini => {
            json!({"metadata": {"key": id}, "error": {"code": 3, "message": message}})
        }
        _ => json!({"id": "r", "custom_id": id, "error": null, "response": {"status_code": 400,
            "request_id": "q", "body": {"error": {"message": message, "type": "invalid_request_error"}}}}),
    }
}

/// Returns the result of a request that was not asked.
pub(super) fn unasked(wire: Wire, id: &Value, expired: bool) -> Value {
    match wire {
        Wire::Anthropic => {
            let how = if expired { "expired" } else { "canceled" };
            json!({"custom_id": id, "result": {"type": how}})
        }
        Wire::Gemini => {
            let code = if expired { 4 } else { 1 };
            json!({"metadata": {"key": id}, "error": {"code": code, "message": "not asked"}})
        }
        _ => {
            let code = if expired {
                "batch_expired"
            } else {
                "batch_cancelled"
            };
            json!({"id": "r", "custom_id": id, "response": null,
                "error": {"code": code, "message": "not asked"}})
        }
    }
}

/// The id of a request in a batch, and its body.
pub(super) fn parts(wire: Wire, request: &Value) -> (Value, Value) {
    match wire {
        Wire::Anthropic => (request["custom_id"].clone(), request["params"].clone()),
        Wire::Gemini => (
            request["metadata"]["key"].clone(),
            request["request"].clone(),
        ),
        _ => (request["custom_id"].clone(), request["body"].clone()),
    }
}

/// Makes the usage of a result unreadable.
pub(super) fn spoil_usage(wire: Wire, result: &mut Value) {
    let at = match wire {
        Wire::Anthropic => "/result/message/usage",
        Wire::Gemini => "/response/usageMetadata",
        Wire::OpenAi | Wire::Responses => "/response/body/usage",
    };
    if let Some(usage) = result.pointer_mut(at) {
        *usage = json!({"prompt_tokens": "many", "input_tokens": -1, "output_tokens": "few",
            "promptTokenCount": "many", "candidatesTokenCount": {}});
    }
}

/// Returns a batch of somebody else, as a list shows it.
pub(super) fn stranger(wire: Wire, n: usize) -> Value {
    let id = format!("other_{n}");
    match wire {
        Wire::Anthropic => {
            json!({"id": id, "type": "message_batch", "created_at": "2100-01-01T00:00:00Z",
            "processing_status": "ended", "request_counts": {"succeeded": 100_000}})
        }
        Wire::Gemini => json!({"name": format!("batches/{id}"), "metadata": {"displayName": id}}),
        Wire::OpenAi | Wire::Responses => json!({"id": id, "status": "completed", "metadata": {}}),
    }
}
