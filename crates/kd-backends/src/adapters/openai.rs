//! OpenAI chat completions: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and many more.

use crate::adapters::parts;
use crate::attachments;
use crate::status;
use crate::transport::http::{Decoder, Dialect, Out, To};
use crate::transport::sse::Event;
use kd_core::request::{Said, ToolChoice, ToolTalk};
use kd_core::{Failure, FailureKind, Finish, Request, Usage};
use reqwest::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The wire format of OpenAI chat completions.
pub(crate) struct OpenAi;

impl Dialect for OpenAi {
    fn url(&self, base: &str, _model: &str) -> String {
        format!("{base}/chat/completions")
    }

    fn key_header(&self, key: &str) -> (HeaderName, String) {
        (AUTHORIZATION, format!("Bearer {key}"))
    }

    fn body(&self, to: To<'_>, request: &Request) -> Value {
        let To { base, model, .. } = to;
        let (system, user) = parts::system_and_user(&request.prompt);
        let mut messages = Vec::new();
        if !system.is_empty() {
            messages.push(json!({"role": "system", "content": system}));
        }
        let talk = request.tools.as_deref();
        if !user.is_empty() || talk.is_none_or(|talk| talk.said.is_empty()) {
            messages.push(json!({"role": "user", "content": content(user, request)}));
        }
        messages.extend(talk.into_iter().flat_map(|talk| &talk.said).map(message));
        let mut body = json!({"model": model, "messages": messages, "stream": true, "stream_options": {"include_usage": true}});
        // Caches are local to a machine; requests with the same key are routed to the same machine.
        parts::put(&mut body, "prompt_cache_key", to.cache_key);
        let sampling = &request.sampling;
        // OpenAI itself rejects the old name of the limit for its thinking models; other services do not know the new
        // one.
        let own = base.starts_with("https://api.openai.com/");
        let limit = if own {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        parts::put(&mut body, limit, sampling.max_tokens);
        parts::put(
            &mut body,
            "temperature",
            sampling.temperature.map(parts::short),
        );
        parts::put(&mut body, "top_p", sampling.top_p.map(parts::short));
        parts::put(&mut body, "seed", sampling.seed);
        // OpenAI's own API does not have this field; other servers support it.
        parts::put(
            &mut body,
            "min_p",
            sampling.min_p.filter(|_| !own).map(parts::short),
        );
        parts::put(
            &mut body,
            "stop",
            (!sampling.stop.is_empty()).then_some(&sampling.stop),
        );
        // Services refuse an empty list. Some ignore that no tool may be called; OpenRouter wants the tools of earlier calls.
        let is_router = base.contains("://openrouter.ai/");
        let offers = |talk: &&ToolTalk| talk.choice != ToolChoice::None || is_router;
        if let Some(talk) = talk.filter(|talk| !talk.tools.is_empty()).filter(offers) {
            let tools = talk.tools.iter().map(|t| {
                json!({"type": "function", "function": {"name": t.name, "description": t.doc, "parameters": t.schema}})
            });
            body["tools"] = tools.collect();
            parts::put(&mut body, "tool_choice", choice(&talk.choice));
            parts::put(&mut body, "parallel_tool_calls", talk.parallel);
        }
        if is_router {
            body["usage"] = json!({"include": true});
        }
        if let Some(schema) = &request.schema {
            let (schema, strict) = parts::strict_schema(schema);
            body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": strict, "schema": schema}});
        }
        body
    }

    fn any_object(&self, body: &mut Value) -> bool {
        body["response_format"] = json!({"type": "json_object"});
        true
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reading::default())
    }
}

/// Returns the content of the user's message: a text, or parts if files go with it.
fn content(user: String, request: &Request) -> Value {
    if request.attachments.is_empty() {
        return user.into();
    }
    let text = |text: String| json!({"type": "text", "text": text});
    let mut parts = Vec::new();
    for file in &request.attachments {
        let url = attachments::picture(file).url();
        parts.push(text(attachments::label(file)));
        parts.push(match file.kind.is_picture() {
            true => json!({"type": "image_url", "image_url": {"url": url}}),
            false => json!({"type": "file", "file": {"filename": file.name, "file_data": url}}),
        });
    }
    parts.push(text(user));
    parts.into()
}

/// Returns the value of `tool_choice`; the model decides without one.
fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

/// Builds a message for a step of the conversation.
fn message(said: &Said) -> Value {
    match said {
        Said::User { text } => json!({"role": "user", "content": text}),
        Said::Agent { text, calls } => {
            let mut message =
                json!({"role": "assistant", "content": (!text.is_empty()).then_some(text)});
            let calls: Vec<Value> = calls
                .iter()
                .map(|c| json!({"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments_text()}}))
                .collect();
            parts::put(
                &mut message,
                "tool_calls",
                (!calls.is_empty()).then_some(calls),
            );
            message
        }
        Said::Tool { id, result, .. } => {
            json!({"role": "tool", "tool_call_id": id, "content": result})
        }
        Said::Picture { picture } => {
            let part = json!({"type": "image_url", "image_url": {"url": picture.url()}});
            json!({"role": "user", "content": [part]})
        }
    }
}

/// State of an answer being decoded.
#[derive(Default)]
struct Reading {
    /// Tool calls arrive in pieces, by index: id, name, arguments.
    calls: BTreeMap<u64, (String, String, String)>,
    finish: Option<Result<Finish, ()>>,
    usage: Option<Usage>,
    refusal: String,
}

impl Reading {
    fn call_bytes(&self) -> usize {
        self.calls.values().map(|c| c.1.len() + c.2.len()).sum()
    }
}

impl Decoder for Reading {
    fn event(&mut self, event: Event<'_>, out: &mut Out) -> Result<(), serde_json::Error> {
        if event.data.trim() == "[DONE]" {
            self.over(out);
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_str(event.data)?;
        if let Some(error) = chunk.error.filter(|e| !e.is_null()) {
            out.fail(status::in_stream(&error));
            return Ok(());
        }
        out.started(chunk.model.as_deref(), chunk.id.as_deref());
        let before = (out.size(), self.refusal.len(), self.call_bytes());
        for choice in chunk.choices.into_iter().flatten() {
            if let Some(delta) = choice.delta {
                for thinking in [delta.reasoning_content, delta.reasoning]
                    .into_iter()
                    .flatten()
                {
                    out.thinking(&thinking);
                }
                delta.content.say(out);
                for piece in delta.tool_calls.into_iter().flatten() {
                    let place = piece.index.unwrap_or(self.calls.len() as u64);
                    let call = self.calls.entry(place).or_default();
                    call.0.push_str(piece.id.as_deref().unwrap_or_default());
                    if let Some(function) = piece.function {
                        call.1
                            .push_str(function.name.as_deref().unwrap_or_default());
                        call.2
                            .push_str(function.arguments.as_deref().unwrap_or_default());
                    }
                }
                self.refusal
                    .push_str(delta.refusal.as_deref().unwrap_or_default());
            }
            match choice.finish_reason.as_deref() {
                None | Some("") => {}
                Some("length") => self.finish = Some(Ok(Finish::Length)),
                Some("content_filter") => self.finish = Some(Err(())),
                Some(_) => self.finish = Some(Ok(Finish::Stop)),
            }
        }
        // A count covers only the text before it: if more text follows, it is incomplete.
        if let Some(usage) = chunk.usage {
            self.usage = match (self.usage, usage.whole()) {
                (Some(before), Some(now)) => Some(before.larger(now)),
                (before, now) => now.or(before),
            };
        } else if (out.size(), self.refusal.len(), self.call_bytes()) != before {
            self.usage = None;
        }
        Ok(())
    }

    fn over(&mut self, out: &mut Out) {
        // Before the end, a count may cover only the text so far.
        out.used(self.usage.filter(|_| self.finish.is_some()));
        match self.finish {
            _ if !self.refusal.is_empty() => {
                out.fail(Failure::new(
                    FailureKind::Refused,
                    format!("the model declined: {}", parts::excerpt(&self.refusal)),
                ));
            }
            Some(Err(())) => out.fail(Failure::new(
                FailureKind::Refused,
                "the provider's filter withheld the answer",
            )),
            Some(Ok(finish)) => {
                for (id, name, arguments) in std::mem::take(&mut self.calls).into_values() {
                    out.call(&id, &name, &arguments);
                }
                out.finish(finish, self.usage);
            }
            // The reader reports the truncation.
            None => {}
        }
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "parts::text")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "parts::text")]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Piece<'a>>,
    #[serde(borrow, default, deserialize_with = "parts::text")]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default, deserialize_with = "parts::text")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "parts::text")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "parts::text")]
    refusal: Option<Cow<'a, str>>,
    #[serde(default)]
    tool_calls: Option<Vec<CallPiece>>,
}

/// A piece of a tool call; some services omit the index if there is only one.
#[derive(Deserialize)]
struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<String>,
}

/// A string in most services, a list of typed parts in some.
#[derive(Default)]
enum Content<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: Vec<Part>,
}

impl Content<'_> {
    fn say(self, out: &mut Out) {
        match self {
            Content::None => {}
            Content::Text(text) => out.text(&text),
            Content::Parts(parts) => {
                for part in parts {
                    part.thinking.iter().for_each(|t| out.thinking(&t.text));
                    out.text(&part.text);
                }
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a list of parts or nothing")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_unit<E>(self) -> Result<Content<'de>, E> {
                Ok(Content::None)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
        }
        from.deserialize_any(Words)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
    /// OpenRouter reports its price; other services use the field differently.
    cost: Option<Number>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Float(f64),
    Other(IgnoredAny),
}

impl WireUsage {
    /// Returns the count if it covers both sides.
    fn whole(self) -> Option<Usage> {
        let rest = |known: Option<u64>| self.total_tokens?.checked_sub(known?);
        let input_tokens = self
            .prompt_tokens
            .or_else(|| rest(self.completion_tokens))?;
        let output_tokens = self
            .completion_tokens
            .or_else(|| rest(self.prompt_tokens))?;
        let cost_usd = self.cost.and_then(|c| match c {
            Number::Float(cost) => Some(cost).filter(|cost| cost.is_finite() && *cost >= 0.0),
            Number::Other(IgnoredAny) => None,
        });
        Some(Usage {
            input_tokens,
            output_tokens,
            cached_tokens: self
                .prompt_tokens_details
                .and_then(|d| d.cached_tokens)
                .unwrap_or(0),
            thinking_tokens: self
                .completion_tokens_details
                .and_then(|d| d.reasoning_tokens)
                .unwrap_or(0),
            cost_usd,
            ..Usage::default()
        })
    }
}
