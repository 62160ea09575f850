//! Anthropic Messages: parses requests and writes answers, complete and streamed.

use super::fault::{Fault, Shape};
use super::fields::{self, limit};
use super::offer::Offer;
use super::picture::{self, is_picture};
use super::side::is_side;
use super::transcript::{self, Message, Role, Transcript, add_line, called, content_of, unread};
use super::{Call, Read, Resolve, Wire, finish_or_call, marked, named_event};
use crate::answer::Answer;
use kd_core::Usage;
use kd_core::request::{ToolCall, ToolChoice};
use serde::Deserialize;
use serde_json::{Value, json};

/// Approximate bytes per token in English text.
const TOKEN_BYTES: usize = 4;

/// Tokens of a picture: services count up to about this many.
const PICTURE_TOKENS: usize = 1600;

/// The field with the form of the answer.
const FORM: &str = "output_config";

/// A request. Other fields configure a single model, and members have their own settings.
#[derive(Debug, Deserialize)]
struct Request {
    model: String,
    messages: Vec<Said>,
    #[serde(default)]
    system: Option<Content>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default, deserialize_with = "limit")]
    max_tokens: Option<u32>,
    #[serde(default)]
    stop_sequences: Option<Vec<String>>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    thinking: Option<Value>,
    #[serde(default)]
    output_config: Option<Value>,
    /// Its older name.
    #[serde(default)]
    output_format: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: String,
    content: Content,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a text or a list of blocks")]
enum Content {
    Text(String),
    Blocks(Vec<Value>),
}

/// Parses a request; refuses what a council cannot do instead of ignoring it.
pub(super) fn read(body: &[u8], _: &Resolve<'_>) -> Result<Read, Fault> {
    let request = parse(body)?;
    let thinks = request.thinking.as_ref().and_then(|t| t["type"].as_str());
    let wire = Reply {
        shows_thoughts: matches!(thinks, Some("enabled" | "adaptive")),
        ..Reply::default()
    };
    let streams = request.stream == Some(true);
    let task = request
        .metadata
        .as_ref()
        .and_then(|data| data["task"].as_str());
    let (talk, acts) = offer(&request)?.finish()?;
    let transcript = transcript(&request)?.check("messages")?;
    let side = is_side(&transcript, talk.max_tokens, task);
    Ok(Read {
        transcript,
        talk,
        acts,
        side,
        streams,
        wire: Box::new(wire),
    })
}

/// Parses the conversation step by step, and the tools.
fn offer(request: &Request) -> Result<Offer, Fault> {
    let mut offer = Offer::default();
    offer.system(&system(request)?);
    for said in &request.messages {
        step(&mut offer, said)?;
    }
    for tool in request.tools.iter().flatten() {
        // Other tools have no schema: the provider knows or runs them.
        if let Some(name) = tool["name"]
            .as_str()
            .filter(|_| tool["input_schema"].is_object())
        {
            let doc = tool["description"].as_str().unwrap_or_default();
            offer.tool(name, doc, &tool["input_schema"]);
        }
    }
    if let Some(choice) = request.tool_choice.as_ref().filter(|c| !c.is_null()) {
        offer.talk.choice = match (choice["type"].as_str(), choice["name"].as_str()) {
            (Some("auto"), _) => ToolChoice::Auto,
            (Some("none"), _) => ToolChoice::None,
            (Some("any"), _) => ToolChoice::Required,
            (Some("tool"), Some(name)) => ToolChoice::Named(name.to_owned()),
            _ => {
                let why = "the type of `tool_choice` must be auto, any, none, or tool with a name";
                return Err(Fault::invalid(Some("tool_choice"), why));
            }
        };
        let single = choice["disable_parallel_tool_use"].as_bool();
        offer.talk.parallel = single.map(|single| !single);
    }
    let form = request
        .output_config
        .as_ref()
        .map(|config| &config["format"]);
    let form = form.filter(|form| !form.is_null());
    offer.talk.schema = match (form, &request.output_format) {
        (Some(form), _) => fields::form(form, FORM)?,
        (None, Some(form)) => fields::form(form, "output_format")?,
        (None, None) => None,
    };
    offer.talk.max_tokens = request.max_tokens;
    offer.talk.stop = request.stop_sequences.clone().unwrap_or_default();
    Ok(offer)
}

/// Parses a message step by step: results first, because they answer the calls before.
fn step(offer: &mut Offer, said: &Said) -> Result<(), Fault> {
    let role = Role::read(&said.role, "messages")?;
    let blocks = match &said.content {
        Content::Text(text) => vec![json!({"type": "text", "text": text})],
        Content::Blocks(blocks) => blocks.clone(),
    };
    let (mut text, mut calls, mut pictures) = (String::new(), Vec::new(), Vec::new());
    for block in &blocks {
        let word = |key: &str| block[key].as_str().unwrap_or_default();
        match word("type") {
            "text" => add_line(&mut text, word("text")),
            "tool_use" => calls.push(ToolCall {
                id: word("id").to_owned(),
                name: word("name").to_owned(),
                arguments: block["input"].clone(),
                ..ToolCall::default()
            }),
            "tool_result" => {
                let failed = block["is_error"].as_bool() == Some(true);
                let returned = returned(block)?;
                offer.result(word("tool_use_id"), returned.text, failed, "messages")?;
                pictures.extend(returned.pictures);
            }
            kind if is_picture(kind) => pictures.push(picture::read(block, "messages")?),
            _ => {}
        }
    }
    match role {
        Role::Assistant => offer.agent(&text, calls),
        Role::System => offer.system(&text),
        Role::User | Role::Tool => offer.user(&text),
    }
    offer.pictures(pictures);
    Ok(())
}

/// Returns a tool's result.
fn returned(block: &Value) -> Result<transcript::Content, Fault> {
    match &block["content"] {
        Value::Array(parts) => content_of(parts, &["text"], "messages"),
        content => Ok(content.as_str().unwrap_or_default().into()),
    }
}

fn system(request: &Request) -> Result<String, Fault> {
    match &request.system {
        None => Ok(String::new()),
        Some(Content::Text(text)) => Ok(text.clone()),
        Some(Content::Blocks(blocks)) => Ok(content_of(blocks, &["text"], "system")?.in_words()),
    }
}

/// Estimates the tokens of a request: the exact count depends on the member that answers. Also returns its model.
pub(super) fn count(body: &[u8]) -> Result<(String, Value), Fault> {
    let request = parse(body)?;
    if request.messages.is_empty() {
        return Err(Fault::invalid(Some("messages"), "`messages` is empty"));
    }
    let said = transcript(&request)?;
    let tools = request.tools.iter().flatten().map(|t| t.to_string().len());
    let bytes = said.messages.iter().map(|m| m.text.len()).sum::<usize>() + tools.sum::<usize>();
    let (talk, _) = offer(&request)?.finish()?;
    let pictures = talk.pictures().count() * PICTURE_TOKENS;
    let tokens = bytes.div_ceil(TOKEN_BYTES) + pictures;
    Ok((request.model, json!({"input_tokens": tokens})))
}

fn parse(body: &[u8]) -> Result<Request, Fault> {
    fields::parse(body, "request for a message")
}

fn transcript(request: &Request) -> Result<Transcript, Fault> {
    let mut messages = Vec::new();
    let system = system(request)?;
    if !system.trim().is_empty() {
        messages.push(Message::new(Role::System, system));
    }
    for said in &request.messages {
        add(&mut messages, said)?;
    }
    Ok(Transcript {
        model: request.model.clone(),
        messages,
        ..Transcript::default()
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
            // The thinking in an earlier answer is progress that this server wrote.
            "thinking" | "redacted_thinking" => {}
            "tool_use" => {
                let name = block["name"].as_str().unwrap_or_default();
                add_line(&mut text, &called(name, &block["input"].to_string()));
            }
            "tool_result" => {
                messages.push(Message::new(Role::Tool, returned(block)?.in_words()));
            }
            kind if is_picture(kind) => {
                add_line(&mut text, &picture::read(block, "messages")?.words());
            }
            other => return Err(unread(other, "messages")),
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
    let value = json!({
        "input_tokens": usage.input_tokens.saturating_sub(cached),
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.written_tokens,
        "output_tokens": usage.output_tokens,
    });
    marked(value, usage)
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

    /// Writes a call of a client's tool as a block.
    fn tool_use(&mut self, call: &ToolCall) -> String {
        let index = self.blocks;
        self.blocks += 1;
        let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        let data = json!({"index": index, "content_block": block});
        let mut out = event("content_block_start", data);
        let delta = json!({"type": "input_json_delta", "partial_json": call.arguments_text()});
        out += &event(
            "content_block_delta",
            json!({"index": index, "delta": delta}),
        );
        out + &event("content_block_stop", json!({"index": index}))
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

fn finish(answer: &Answer) -> &'static str {
    finish_or_call(answer, "end_turn", "max_tokens", "tool_use")
}

impl Wire for Reply {
    fn form(&self) -> &'static str {
        FORM
    }

    fn whole(&self, call: &Call, answer: &Answer) -> Value {
        let (text, calls) = (answer.content(), answer.calls());
        let has_text = !text.is_empty() || calls.is_empty();
        let text = has_text.then(|| json!({"type": "text", "text": text}));
        let calls = calls
            .iter()
            .map(|c| json!({"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments}));
        let mut object = Self::object(call, text.into_iter().chain(calls).collect());
        object["stop_reason"] = finish(answer).into();
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

    fn end(&mut self, _call: &Call, answer: &Answer, text: &str) -> String {
        let mut out = String::new();
        if !text.is_empty() || answer.calls().is_empty() {
            out += &self.open(Kind::Text);
        }
        out += &self.close();
        for call in answer.calls() {
            out += &self.tool_use(call);
        }
        let delta = json!({"stop_reason": finish(answer), "stop_sequence": null});
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
        read(value.to_string().as_bytes(), &|_, _| Ok(()))
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
                .is_ok_and(|(_, n)| n["input_tokens"].as_u64() > Some(10))
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
            (json!({"messages": "hi"}), Some("messages")),
            (
                json!({"output_config": {"format": {"type": "x"}}}),
                Some("output_config"),
            ),
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
