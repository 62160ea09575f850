//! The shapes of the wire: what of a request is read, how an answer's usage and a failure are told.

use crate::answer::Answer;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use kd_core::Usage;
use kd_core::clean::clean_line;
use serde::Deserialize;
use serde_json::{Value, json};

/// The most characters of a name that an error repeats.
pub(super) const NAME_CHARS_MAX: usize = 80;

/// A request. Fields that are not here, such as `temperature`, are for one model and mean nothing to a council.
#[derive(Debug, Deserialize)]
pub(super) struct Chat {
    pub(super) model: String,
    pub(super) messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    n: Option<u64>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default)]
    function_call: Option<Value>,
    #[serde(default)]
    response_format: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

/// A message of the transcript.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) role: String,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    tool_calls: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl Chat {
    /// Reads a request, and refuses what a council cannot do rather than ignore it.
    pub(super) fn read(body: &[u8]) -> Result<Self, Fault> {
        let chat: Self = serde_json::from_slice(body).map_err(|error| {
            Fault::invalid(None, format!("this is no chat completion: {error}"))
        })?;
        if chat.n.is_some_and(|n| n != 1) {
            return Err(Fault::invalid(
                Some("n"),
                "a council gives one answer: `n` must be 1",
            ));
        }
        let forced = |choice: &Value| !matches!(choice.as_str(), Some("auto" | "none"));
        if chat.tool_choice.as_ref().is_some_and(forced) {
            let why =
                "the council calls no tools of the client: `tool_choice` must be auto or none";
            return Err(Fault::invalid(Some("tool_choice"), why));
        }
        if chat.function_call.as_ref().is_some_and(forced) {
            let why =
                "the council calls no tools of the client: `function_call` must be auto or none";
            return Err(Fault::invalid(Some("function_call"), why));
        }
        let form = chat
            .response_format
            .as_ref()
            .and_then(|form| form["type"].as_str());
        if form.is_some_and(|form| form != "text") {
            let why = "the council answers in text: `response_format` must be text";
            return Err(Fault::invalid(Some("response_format"), why));
        }
        for message in &chat.messages {
            message.check()?;
        }
        match chat.messages.last() {
            None => Err(Fault::invalid(Some("messages"), "`messages` is empty")),
            Some(last) if !matches!(last.role.as_str(), "user" | "tool" | "function") => {
                let why = "the last message must be the user's: it is the question";
                Err(Fault::invalid(Some("messages"), why))
            }
            Some(last) if last.role == "user" && last.text().trim().is_empty() => {
                let why = "the last message is empty: it is the question";
                Err(Fault::invalid(Some("messages"), why))
            }
            Some(_) => Ok(chat),
        }
    }

    /// Whether the answer is streamed.
    pub(super) fn streams(&self) -> bool {
        self.stream == Some(true)
    }

    /// Whether the stream ends with the usage.
    pub(super) fn wants_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .is_some_and(|o| o.include_usage == Some(true))
    }
}

impl Message {
    fn check(&self) -> Result<(), Fault> {
        const ROLES: [&str; 6] = [
            "system",
            "developer",
            "user",
            "assistant",
            "tool",
            "function",
        ];
        if !ROLES.contains(&self.role.as_str()) {
            let role = clean_line(&self.role, NAME_CHARS_MAX);
            return Err(Fault::invalid(
                Some("messages"),
                format!("there is no role `{role}`"),
            ));
        }
        if let Some(Content::Parts(parts)) = &self.content {
            let other = parts
                .iter()
                .find(|part| !matches!(part.kind.as_str(), "text" | "refusal"));
            if let Some(other) = other {
                let kind = clean_line(&other.kind, NAME_CHARS_MAX);
                let why = format!("the council reads text only, not `{kind}`");
                return Err(Fault::invalid(Some("messages"), why));
            }
        }
        Ok(())
    }

    /// Its text; of an assistant that called tools, these calls too.
    pub(super) fn text(&self) -> String {
        let mut text = match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => {
                let texts = parts
                    .iter()
                    .filter_map(|p| p.text.as_deref().or(p.refusal.as_deref()));
                texts.collect::<Vec<_>>().join("\n")
            }
        };
        if let Some(calls) = self.tool_calls.as_ref().and_then(Value::as_array) {
            for call in calls {
                let function = &call["function"];
                let said = |key: &str| function[key].as_str().unwrap_or_default().to_owned();
                let line = format!("[called {} with {}]", said("name"), said("arguments"));
                if !text.is_empty() {
                    text.push('\n');
                }
                text += &line;
            }
        }
        text
    }
}

/// Tokens as the wire tells them.
pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    })
}

/// A failure in the shape of the wire.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<&'static str>,
    message: String,
}

impl Fault {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code: None,
            param: None,
            message: message.into(),
        }
    }

    /// The request is wrong.
    pub(super) fn invalid(param: Option<&'static str>, message: impl Into<String>) -> Self {
        Self {
            param,
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
        }
    }

    /// There is no such model.
    pub(super) fn model(model: &str, names: String) -> Self {
        let model = clean_line(model, NAME_CHARS_MAX);
        let message = format!("there is no model `{model}`; models: {names}");
        Self {
            code: Some("model_not_found"),
            param: Some("model"),
            ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
        }
    }

    /// The request was not let in.
    pub(super) fn door(status: StatusCode, why: &str) -> Self {
        let code = (status == StatusCode::UNAUTHORIZED).then_some("invalid_api_key");
        Self {
            code,
            ..Self::new(status, "invalid_request_error", why)
        }
    }

    /// There is no such endpoint.
    pub(super) fn path() -> Self {
        let message = "there is no such endpoint; there are /v1/models and /v1/chat/completions";
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    /// The endpoint takes another method.
    pub(super) fn method() -> Self {
        let message = "GET /v1/models, POST /v1/chat/completions";
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "invalid_request_error",
            message,
        )
    }

    /// The house refuses, for a reason that the user can change.
    pub(super) fn refused(why: &str) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_request_error",
            why,
        )
    }

    /// Nobody answered.
    pub(super) fn unanswered(answer: &Answer) -> Self {
        let message = format!("{} (thread {})", answer.failure(), answer.thread());
        Self::new(StatusCode::BAD_GATEWAY, "api_error", message)
    }

    /// Something of ours broke.
    pub(super) fn broken(why: String) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "api_error", why)
    }

    /// As the wire tells it.
    pub(super) fn json(&self) -> Value {
        let Self {
            kind,
            code,
            param,
            message,
            ..
        } = self;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        // Clients would ask again, and members would be paid again.
        let headers = [("x-should-retry", "false")];
        (self.status, headers, Json(self.json())).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Result<Chat, Fault> {
        Chat::read(value.to_string().as_bytes())
    }

    #[test]
    fn what_a_council_cannot_do_is_refused_with_its_field() {
        let user = json!({"role": "user", "content": "hi"});
        for (more, param) in [
            (json!({"n": 2}), Some("n")),
            (json!({"tool_choice": "required"}), Some("tool_choice")),
            (
                json!({"function_call": {"name": "x"}}),
                Some("function_call"),
            ),
            (
                json!({"tool_choice": {"type": "function"}}),
                Some("tool_choice"),
            ),
            (
                json!({"response_format": {"type": "json_schema"}}),
                Some("response_format"),
            ),
            (json!({"messages": []}), Some("messages")),
            (
                json!({"messages": [{"role": "user", "content": " "}]}),
                Some("messages"),
            ),
            (
                json!({"messages": [{"role": "boss", "content": "x"}]}),
                Some("messages"),
            ),
            (
                json!({"messages": [user, {"role": "assistant", "content": "x"}]}),
                Some("messages"),
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
                Some("messages"),
            ),
            (json!({"messages": "hi"}), None),
            (json!({"model": 3}), None),
        ] {
            let mut request = json!({"model": "kd/ask", "messages": [user]});
            for (key, value) in more.as_object().into_iter().flatten() {
                request[key] = value.clone();
            }
            let fault = read(&request).unwrap_err();
            assert_eq!(
                (fault.status, fault.param),
                (StatusCode::BAD_REQUEST, param),
                "{more}"
            );
        }
        assert!(Chat::read(b"{").is_err());
    }

    #[test]
    fn what_clients_send_along_is_taken() {
        let request = json!({
            "model": "kd/ask", "temperature": 0.7, "max_tokens": 5, "n": 1, "tools": [{"type": "function"}],
            "tool_choice": "auto", "response_format": {"type": "text"}, "stream": true, "user": "x",
            "stream_options": {"include_usage": true},
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
                    "function": {"name": "read", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "three"},
            ],
        });
        let chat = read(&request).unwrap();
        assert!(chat.streams() && chat.wants_usage());
        let texts: Vec<_> = chat.messages.iter().map(Message::text).collect();
        assert_eq!(
            texts,
            ["Be brief.", "one\ntwo", "[called read with {}]", "three"]
        );
    }
}
