//! Anthropic Messages: parses requests and writes answers, complete and streamed.

use super::fault::{Fault, NAME_CHARS_MAX, Shape};
use super::transcript::{Message, Role, Transcript, add_line, called, text_of};
use super::{Call, Read, Wire, finish, named_event};
use crate::answer::Answer;
use kd_core::Usage;
use kd_core::clean::clean_line;
use serde::Deserialize;
use serde_json::{Value, json};

/// Approximate bytes per token in English text.
const TOKEN_BYTES: usize = 4;

/// A request. Other fields configure a single model and have no meaning for a council.
#[derive(Debug, Deserialize)]
struct Request {
    model: String,
    messages: Vec<Said>,
    #[serde(default)]
    system: Option<Content>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default)]
    thinking: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: String,
    content: Content,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Value>),
}

/// Parses a request; refuses what a council cannot do instead of ignoring it.
pub(super) fn read(body: &[u8]) -> Result<Read, Fault> {
    let request = parse(body)?;
    let forced = |choice: &Value| !matches!(choice["type"].as_str(), Some("auto" | "none"));
    if request.tool_choice.as_ref().is_some_and(forced) {
        let why = "the council calls no tools of the client: `tool_choice` must be auto or none";
        return Err(Fault::invalid(Some("tool_choice"), why));
    }
    let thinks = request.thinking.as_ref().and_then(|t| t["type"].as_str());
    let wire = Reply {
        shows_thoughts: matches!(thinks, Some("enabled" | "adaptive")),
        ..Reply::default()
    };
    Ok(Read {
        streams: request.stream == Some(true),
        transcript: transcript(request)?.check("messages")?,
        wire: Box::new(wire),
    })
}

/// Estimates the tokens of a request: the exact count depends on the member that answers.
pub(super) fn count(body: &[u8]) -> Result<Value, Fault> {
    let said = transcript(parse(body)?)?;
    let bytes: usize = said.messages.iter().map(|m| m.text.len()).sum();
    Ok(json!({"input_tokens": bytes.div_ceil(TOKEN_BYTES)}))
}

fn parse(body: &[u8]) -> Result<Request, Fault> {
    serde_json::from_slice(body)
        .map_err(|error| Fault::invalid(None, format!("this is no request for a message: {error}")))
}

fn transcript(request: Request) -> Result<Transcript, Fault> {
    let mut messages = Vec::new();
    let system = match request.system {
        None => String::new(),
        Some(Content::Text(text)) => text,
        Some(Content::Blocks(blocks)) => text_of(&blocks, &["text"], &[], "system")?,
    };
    if !system.trim().is_empty() {
        messages.push(Message::new(Role::System, system));
    }
    for said in &request.messages {
        add(&mut messages, said)?;
    }
    Ok(Transcript {
        model: request.model,
        messages,
        previous: None,
    })
}

/// Adds a message; tool results come before the user's text, each as a separate message.
fn add(messages: &mut Vec<Message>, said: &Said) -> Result<(), Fault> {
    let role = Role::read(&said.role, "messages")?;
    let blocks = match &said.content {
        Content::Text(text) => {
            messages.push(Message::new(role, text));
            return Ok(());
        }
        Content::Blocks(blocks) => blocks,
    };
    let before = messages.len();
    let mut text = String::new();
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" => add_line(&mut text, block["text"].as_str().unwrap_or_default()),
            // Thinking of an earlier answer is this server's progress.
            "thinking" | "redacted_thinking" => {}
            "tool_use" => {
                let name = block["name"].as_str().unwrap_or_default();
                add_line(&mut text, &called(name, &block["input"].to_string()));
            }
            "tool_result" => {
                let result = match &block["content"] {
                    Value::Array(parts) => text_of(parts, &["text"], &[], "messages")?,
                    content => content.as_str().unwrap_or_default().to_owned(),
                };
                messages.push(Message::new(Role::Tool, result));
            }
            other => {
                let kind = clean_line(other, NAME_CHARS_MAX);
                let why = format!("the council reads text only, not `{kind}`");
                return Err(Fault::invalid(Some("messages"), why));
            }
        }
    }
    if !text.is_empty() || messages.len() == before {
        messages.push(Message::new(role, text));
    }
    Ok(())
}

/// Returns token usage in the wire format: cached tokens are not part of the input.
fn usage(usage: &Usage) -> Value {
    let cached = usage.cached_tokens.saturating_add(usage.written_tokens);
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(cached),
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.written_tokens,
        "output_tokens": usage.output_tokens,
    })
}

/// One message in progress.
#[derive(Debug, Default)]
struct Reply {
    /// Whether the client requested thinking; other clients take the first block for the answer.
    shows_thoughts: bool,
    /// Number of blocks opened.
    blocks: usize,
    open: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Thinking,
    Text,
}

impl Reply {
    /// Returns the message as an object.
    fn object(call: &Call, content: Value) -> Value {
        json!({
            "id": format!("msg_{}", call.id),
            "type": "message",
            "role": "assistant",
            "model": call.model,
            "content": content,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage(&Usage::default()),
        })
    }

    fn close(&mut self) -> String {
        let Some(kind) = self.open.take() else {
            return String::new();
        };
        let index = self.blocks - 1;
        let mut out = String::new();
        if kind == Kind::Thinking {
            // Clients send thinking back with its signature. This one is empty, so it is skipped then.
            let delta = json!({"type": "signature_delta", "signature": ""});
            out += &event(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            );
        }
        out + &event("content_block_stop", json!({"index": index}))
    }

    fn open(&mut self, kind: Kind) -> String {
        if self.open == Some(kind) {
            return String::new();
        }
        let mut out = self.close();
        let block = match kind {
            Kind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Kind::Text => json!({"type": "text", "text": ""}),
        };
        out += &event(
            "content_block_start",
            json!({"index": self.blocks, "content_block": block}),
        );
        self.blocks += 1;
        self.open = Some(kind);
        out
    }

    fn delta(&self, delta: Value) -> String {
        event(
            "content_block_delta",
            json!({"index": self.blocks.saturating_sub(1), "delta": delta}),
        )
    }
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = kind.into();
    named_event(kind, &data)
}

impl Wire for Reply {
    fn whole(&self, call: &Call, answer: &Answer) -> Value {
        let content = json!([{"type": "text", "text": answer.content()}]);
        let mut object = Self::object(call, content);
        object["stop_reason"] = finish(answer, "end_turn", "max_tokens").into();
        object["usage"] = usage(&answer.usage());
        object["kd"] = answer.json();
        object
    }

    fn begin(&mut self, call: &Call) -> String {
        let message = Self::object(call, json!([]));
        event("message_start", json!({"message": message})) + &self.quiet(call)
    }

    fn quiet(&mut self, _call: &Call) -> String {
        event("ping", json!({}))
    }

    fn thought(&mut self, call: &Call, line: &str) -> String {
        if !self.shows_thoughts || self.open == Some(Kind::Text) {
            return self.quiet(call);
        }
        let open = self.open(Kind::Thinking);
        open + &self.delta(json!({"type": "thinking_delta", "thinking": line}))
    }

    fn text(&mut self, _call: &Call, piece: &str) -> String {
        let open = self.open(Kind::Text);
        open + &self.delta(json!({"type": "text_delta", "text": piece}))
    }

    fn end(&mut self, _call: &Call, answer: &Answer, _text: &str) -> String {
        let mut out = self.open(Kind::Text);
        out += &self.close();
        let delta =
            json!({"stop_reason": finish(answer, "end_turn", "max_tokens"), "stop_sequence": null});
        let data = json!({"delta": delta, "usage": usage(&answer.usage()), "kd": answer.json()});
        out += &event("message_delta", data);
        out + &event("message_stop", json!({}))
    }

    fn fail(&mut self, _call: &Call, fault: &Fault) -> String {
        named_event("error", &fault.json(Shape::Anthropic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &Value) -> Result<Read, Fault> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn blocks_become_messages() {
        let request = json!({"model": "kd/ask", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "read"}], "tool_choice": {"type": "auto"}, "messages": [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "asking ann", "signature": ""},
                {"type": "text", "text": "two"},
                {"type": "tool_use", "id": "1", "name": "read", "input": {"a": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "three"}]},
                {"type": "text", "text": "four"},
            ]},
        ]});
        let read = of(&request).expect("taken");
        let said: Vec<_> = read
            .transcript
            .messages
            .iter()
            .map(|m| (m.role, m.text.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                (Role::System, "Be brief."),
                (Role::User, "one"),
                (Role::Assistant, "two\n[called read with {\"a\":1}]"),
                (Role::Tool, "three"),
                (Role::User, "four"),
            ]
        );
        assert!(
            count(request.to_string().as_bytes())
                .is_ok_and(|n| n["input_tokens"].as_u64() > Some(10))
        );
    }

    #[test]
    fn what_a_council_cannot_do_is_refused_with_its_field() {
        let user = json!({"role": "user", "content": "hi"});
        for (more, param) in [
            (json!({"tool_choice": {"type": "any"}}), Some("tool_choice")),
            (json!({"messages": []}), Some("messages")),
            (
                json!({"messages": [{"role": "user", "content": []}]}),
                Some("messages"),
            ),
            (
                json!({"messages": [user, {"role": "assistant", "content": "{"}]}),
                Some("messages"),
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "image"}]}]}),
                Some("messages"),
            ),
            (json!({"messages": "hi"}), None),
        ] {
            let mut request = json!({"model": "kd/ask", "max_tokens": 9, "messages": [user]});
            for (key, value) in more.as_object().into_iter().flatten() {
                request[key] = value.clone();
            }
            let fault = of(&request).err().expect("refused");
            assert_eq!(fault.param, param, "{more}");
        }
    }
}
