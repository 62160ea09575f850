//! The Anthropic Messages API.

use crate::adapters::parts;
use crate::attachments;
use crate::status;
use crate::transport::http::{Decoder, Dialect, Out, To};
use crate::transport::sse::Event;
use kd_core::request::{Block, PictureSource, Said as Spoken, ToolChoice, ToolTalk};
use kd_core::{Failure, FailureKind, Finish, Request, Usage};
use reqwest::header::HeaderName;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The token limit if none is set: the API requires one.
const MAX_TOKENS: u32 = 8192;

/// The wire format of Anthropic Messages.
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn url(&self, base: &str, _model: &str) -> String {
        format!("{base}/messages")
    }

    fn key_header(&self, key: &str) -> (HeaderName, String) {
        (HeaderName::from_static("x-api-key"), key.to_owned())
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn body(&self, to: To<'_>, request: &Request) -> Value {
        let model = to.model;
        let (system, user) = parts::system_and_user(&request.prompt);
        let sampling = &request.sampling;
        let blocks = request.prompt.history_blocks().filter(|_| to.keeps_prompts);
        let content =
            blocks.map_or_else(|| json!(user), |blocks| blocks.iter().map(block).collect());
        let content = attachments::before(content, request);
        let talk = request.tools.as_deref();
        let mut messages = Vec::new();
        let repeats = talk
            .and_then(|talk| talk.repeats)
            .filter(|_| to.keeps_prompts);
        if repeats.is_some() && !user.is_empty() {
            // The same form in every request, with and without a mark.
            let user = json!([{"type": "text", "text": user}]);
            let content = attachments::before(user, request);
            messages.push(json!({"role": "user", "content": content}));
        } else if !user.is_empty() || talk.is_none_or(|talk| talk.said.is_empty()) {
            messages.push(json!({"role": "user", "content": content}));
        }
        if repeats == Some(0) {
            mark(&mut messages);
        }
        for (at, said) in talk.into_iter().flat_map(|talk| &talk.said).enumerate() {
            add(&mut messages, said);
            if repeats == Some(at + 1) {
                mark(&mut messages);
            }
        }
        let mut body = json!({"model": model, "stream": true, "max_tokens": sampling.max_tokens.unwrap_or(MAX_TOKENS),
            "messages": messages});
        if let Some(talk) = talk.filter(|talk| !talk.tools.is_empty()) {
            let tools = talk.tools.iter();
            body["tools"] = tools
                .map(|t| json!({"name": t.name, "description": t.doc, "input_schema": t.schema}))
                .collect();
            parts::put(&mut body, "tool_choice", choice(talk));
        }
        let system = (!system.is_empty()).then(|| match repeats {
            // Tools and system text stay when the conversation is shortened.
            Some(_) => {
                json!([{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}])
            }
            None => json!(system),
        });
        parts::put(&mut body, "system", system);
        // Its scale ends at 1.
        parts::put(
            &mut body,
            "temperature",
            sampling
                .temperature
                .map(|t| parts::short(t.clamp(0.0, 1.0))),
        );
        // Newer models reject both at once.
        parts::put(
            &mut body,
            "top_p",
            sampling
                .top_p
                .filter(|_| sampling.temperature.is_none())
                .map(parts::short),
        );
        parts::put(
            &mut body,
            "stop_sequences",
            (!sampling.stop.is_empty()).then_some(&sampling.stop),
        );
        if let Some(schema) = &request.schema {
            body["output_config"] =
                json!({"format": {"type": "json_schema", "schema": parts::closed_schema(schema)}});
        }
        body
    }

    fn answer_tokens(&self) -> Option<u32> {
        Some(MAX_TOKENS)
    }

    fn any_object(&self, _body: &mut Value) -> bool {
        false
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reading::default())
    }
}

/// Builds a block of the prompt. The service caches everything up to a mark, and searches up to 20 blocks back for it.
fn block(block: &Block) -> Value {
    let mut value = json!({"type": "text", "text": block.text});
    if block.repeats {
        value["cache_control"] = json!({"type": "ephemeral"});
    }
    value
}

/// Returns the value of `tool_choice`; the model decides without one.
fn choice(talk: &ToolTalk) -> Option<Value> {
    let mut choice = match &talk.choice {
        ToolChoice::Auto if talk.parallel != Some(false) => return None,
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => return Some(json!({"type": "none"})),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
    };
    if talk.parallel == Some(false) {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

/// Marks the end of what the next request begins with.
fn mark(messages: &mut [Value]) {
    let Some(message) = messages.last_mut() else {
        return;
    };
    if let Value::String(text) = &message["content"] {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    let blocks = message["content"].as_array_mut();
    if let Some(block) = blocks.and_then(|blocks| blocks.last_mut()) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// Adds a step of the conversation. Consecutive steps of the user's side share one message, because the roles must
/// alternate.
fn add(messages: &mut Vec<Value>, said: &Spoken) {
    match said {
        Spoken::User { text } => add_block(messages, json!({"type": "text", "text": text})),
        Spoken::Agent { text, calls } => {
            let words = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            let calls = calls.iter().map(|c| {
                let input = if c.arguments.is_object() {
                    c.arguments.clone()
                } else {
                    json!({})
                };
                json!({"type": "tool_use", "id": c.id, "name": c.name, "input": input})
            });
            let content: Vec<Value> = words.into_iter().chain(calls).collect();
            messages.push(json!({"role": "assistant", "content": content}));
        }
        Spoken::Tool {
            id, result, failed, ..
        } => {
            let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": result});
            if *failed {
                block["is_error"] = true.into();
            }
            add_block(messages, block);
        }
        Spoken::Picture { picture } => {
            let source = match &picture.source {
                PictureSource::Data(data) => {
                    json!({"type": "base64", "media_type": picture.media_type, "data": data})
                }
                PictureSource::Url(url) => json!({"type": "url", "url": url}),
            };
            add_block(messages, json!({"type": "image", "source": source}));
        }
    }
}

/// Adds a block to the open message of the user's side, or to a new one.
fn add_block(messages: &mut Vec<Value>, block: Value) {
    let open = messages.last_mut().filter(|m| m["role"] == "user");
    match open {
        Some(message) => {
            if let Value::String(text) = &message["content"] {
                message["content"] = json!([{"type": "text", "text": text}]);
            }
            if let Some(blocks) = message["content"].as_array_mut() {
                blocks.push(block);
            }
        }
        None => messages.push(json!({"role": "user", "content": [block]})),
    }
}

/// State of an answer being decoded.
#[derive(Default)]
struct Reading {
    /// The tool call in progress: id, name, arguments.
    call: Option<(String, String, String)>,
    usage: Usage,
    /// Whether the final token count arrived: the count at the start of a message covers only its first token.
    counted: bool,
    stop: Option<String>,
}

impl Reading {
    /// Updates the usage: later counts cover the whole answer, so they replace earlier ones.
    fn count(&mut self, usage: WireUsage) {
        if let Some(fresh) = usage.input_tokens {
            let cached = usage.cache_read_input_tokens.unwrap_or(0);
            self.usage.input_tokens =
                fresh + cached + usage.cache_creation_input_tokens.unwrap_or(0);
            self.usage.cached_tokens = cached;
            self.usage.written_tokens = usage.cache_creation_input_tokens.unwrap_or(0);
        }
        if let Some(output) = usage.output_tokens {
            self.usage.output_tokens = output;
        }
        if let Some(thinking) = usage.output_tokens_details.and_then(|d| d.thinking_tokens) {
            self.usage.thinking_tokens = thinking;
        }
    }

    fn finish(&self, reason: &str, out: &mut Out) {
        let usage = self.counted.then_some(self.usage);
        match reason {
            "refusal" => {
                out.used(usage);
                out.fail(Failure::new(
                    FailureKind::Refused,
                    "the model declined to answer",
                ));
            }
            "max_tokens" | "model_context_window_exceeded" => out.finish(Finish::Length, usage),
            _ => out.finish(Finish::Stop, usage),
        }
    }
}

impl Decoder for Reading {
    fn event(&mut self, event: Event<'_>, out: &mut Out) -> Result<(), serde_json::Error> {
        let said: Said<'_> = serde_json::from_str(event.data)?;
        // The type is in the data too; some proxies drop the event's name.
        match said.kind.as_deref().unwrap_or(event.name) {
            "message_start" => {
                let message = said.message.unwrap_or_default();
                out.started(message.model.as_deref(), message.id.as_deref());
                self.count(message.usage);
            }
            "content_block_delta" => {
                let delta = said.delta.unwrap_or_default();
                if let (Some(call), Some(piece)) = (&mut self.call, &delta.partial_json) {
                    call.2.push_str(piece);
                }
                out.text(delta.text.as_deref().unwrap_or_default());
                out.thinking(delta.thinking.as_deref().unwrap_or_default());
            }
            "content_block_start" => {
                let block = said.content_block.unwrap_or_default();
                if block.kind.as_deref() == Some("tool_use") {
                    let own = |text: &Option<Cow<'_, str>>| {
                        text.as_deref().unwrap_or_default().to_owned()
                    };
                    self.call = Some((own(&block.id), own(&block.name), String::new()));
                }
                out.text(block.text.as_deref().unwrap_or_default());
                out.thinking(block.thinking.as_deref().unwrap_or_default());
            }
            "content_block_stop" => {
                if let Some((id, name, arguments)) = self.call.take() {
                    out.call(&id, &name, &arguments);
                }
            }
            "message_delta" => {
                let usage = said.usage.unwrap_or_default();
                self.counted = usage.output_tokens.is_some();
                self.count(usage);
                if let Some(reason) = said.delta.and_then(|d| d.stop_reason) {
                    self.stop = Some(reason.into_owned());
                }
            }
            "message_stop" => {
                let reason = self.stop.take().unwrap_or_default();
                self.finish(&reason, out);
            }
            "error" => out.fail(status::in_stream(&said.error.unwrap_or_default())),
            // `ping` and future events.
            _ => {}
        }
        Ok(())
    }

    fn over(&mut self, out: &mut Out) {
        if let Some(reason) = self.stop.take() {
            self.finish(&reason, out);
        }
    }
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default, deserialize_with = "parts::text", rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<Opening<'a>>,
    #[serde(borrow, default)]
    delta: Option<Piece<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Piece<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Opening<'a> {
    #[serde(borrow, deserialize_with = "parts::text")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "parts::text")]
    model: Option<Cow<'a, str>>,
    usage: WireUsage,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece<'a> {
    #[serde(borrow, deserialize_with = "parts::text", rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "parts::text")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "parts::text")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "parts::text")]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "parts::text")]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "parts::text")]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "parts::text")]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens_details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    thinking_tokens: Option<u64>,
}
