//! OpenAI Chat Completions: parses requests and writes answers, complete and streamed.

use super::fault::{Fault, Shape};
use super::fields::{self, limit};
use super::offer::{Offer, arguments, choose};
use super::side::is_side;
use super::transcript::{self, Message, Role, Transcript, add_line, called, content_of};
use super::{Call, Read, Resolve, Wire, finish_or_call, marked};
use crate::answer::Answer;
use kd_core::Usage;
use kd_core::request::ToolCall;
use serde::Deserialize;
use serde_json::{Value, json};

/// The field with the form of the answer.
const FORM: &str = "response_format";

/// A request. Other fields, such as `temperature`, configure a single model, and members have their own settings.
#[derive(Debug, Deserialize)]
struct Chat {
    model: String,
    messages: Vec<Said>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    n: Option<u64>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(default, deserialize_with = "limit")]
    max_tokens: Option<u32>,
    #[serde(default, deserialize_with = "limit")]
    max_completion_tokens: Option<u32>,
    #[serde(default)]
    stop: Option<Stop>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    function_call: Option<Value>,
    #[serde(default)]
    functions: Option<Value>,
    #[serde(default)]
    modalities: Option<Value>,
    #[serde(default)]
    response_format: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a text or a list of texts")]
enum Stop {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: String,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a text or a list of parts")]
enum Content {
    Text(String),
    Parts(Vec<Value>),
}

/// Parses a request; refuses what a council cannot do instead of ignoring it.
pub(super) fn read(body: &[u8], _: &Resolve<'_>) -> Result<Read, Fault> {
    let chat: Chat = fields::parse(body, "chat completion")?;
    if chat.n.is_some_and(|n| n != 1) {
        return Err(Fault::invalid(
            Some("n"),
            "a council gives one answer: `n` must be 1",
        ));
    }
    let forced = |choice: &Value| !matches!(choice.as_str(), Some("auto" | "none"));
    if chat.function_call.as_ref().is_some_and(forced) {
        let why =
            "`function_call` must be auto or none: demand calls with `tools` and `tool_choice`";
        return Err(Fault::invalid(Some("function_call"), why));
    }
    let is_empty = |list: &Value| list.as_array().map_or(list.is_null(), Vec::is_empty);
    if chat.functions.as_ref().is_some_and(|list| !is_empty(list)) {
        let why = "`functions` is the older form of `tools`: offer them there";
        return Err(Fault::invalid(Some("functions"), why));
    }
    let kinds = chat.modalities.as_ref().and_then(Value::as_array);
    if kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind != "text")) {
        let why = "the council answers in text: `modalities` must be text alone";
        return Err(Fault::invalid(Some("modalities"), why));
    }
    let messages: Result<Vec<Message>, Fault> = chat.messages.iter().map(message).collect();
    let transcript = Transcript {
        model: chat.model.clone(),
        messages: messages?,
        ..Transcript::default()
    };
    let transcript = transcript.check("messages")?;
    let (talk, acts) = offer(&chat)?.finish()?;
    let task = chat
        .metadata
        .as_ref()
        .and_then(|data| data["task"].as_str());
    let side = is_side(&transcript, talk.max_tokens, task);
    let wants_usage = chat
        .stream_options
        .is_some_and(|options| options.include_usage == Some(true));
    Ok(Read {
        transcript,
        talk,
        acts,
        side,
        streams: chat.stream == Some(true),
        wire: Box::new(Completion {
            wants_usage,
            answering: false,
        }),
    })
}

/// Parses the conversation step by step, and the tools.
fn offer(chat: &Chat) -> Result<Offer, Fault> {
    let mut offer = Offer::default();
    for said in &chat.messages {
        let transcript::Content { text, pictures } = said.content()?;
        match Role::read(&said.role, "messages")? {
            Role::System => offer.system(&text),
            Role::User => offer.user(&text),
            Role::Assistant => {
                let calls = said.tool_calls.iter().flatten();
                offer.agent(&text, calls.map(call).collect());
            }
            Role::Tool => {
                let id = said.tool_call_id.as_deref().unwrap_or_default();
                offer.result(id, text, false, "messages")?;
            }
        }
        offer.pictures(pictures);
    }
    for tool in chat.tools.iter().flatten() {
        // Others are run by a provider.
        if let Some(name) = tool["function"]["name"].as_str() {
            let doc = tool["function"]["description"].as_str();
            offer.tool(
                name,
                doc.unwrap_or_default(),
                &tool["function"]["parameters"],
            );
        }
    }
    choose(&mut offer, chat.tool_choice.as_ref(), |choice| {
        choice["function"]["name"].as_str()
    })?;
    offer.talk.schema = match &chat.response_format {
        Some(form) => fields::form(form, FORM)?,
        None => None,
    };
    offer.talk.parallel = chat.parallel_tool_calls;
    offer.talk.max_tokens = chat.max_completion_tokens.or(chat.max_tokens);
    offer.talk.stop = match &chat.stop {
        None => Vec::new(),
        Some(Stop::One(text)) => vec![text.clone()],
        Some(Stop::Several(texts)) => texts.clone(),
    };
    Ok(offer)
}

/// Parses a call of an earlier answer.
fn call(call: &Value) -> ToolCall {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let function = &call["function"];
    ToolCall {
        id: word(&call["id"]),
        name: word(&function["name"]),
        arguments: arguments(&word(&function["arguments"])),
        ..ToolCall::default()
    }
}

impl Said {
    fn content(&self) -> Result<transcript::Content, Fault> {
        match &self.content {
            None => Ok(transcript::Content::default()),
            Some(Content::Text(text)) => Ok(text.as_str().into()),
            Some(Content::Parts(parts)) => content_of(parts, &["text", "refusal"], "messages"),
        }
    }
}

/// Parses a message: its text, and an assistant's tool calls.
fn message(said: &Said) -> Result<Message, Fault> {
    let role = Role::read(&said.role, "messages")?;
    let mut text = said.content()?.in_words();
    for call in said.tool_calls.iter().flatten() {
        let function = &call["function"];
        let word = |key: &str| function[key].as_str().unwrap_or_default();
        add_line(&mut text, &called(word("name"), word("arguments")));
    }
    Ok(Message {
        role,
        text,
        name: said.name.clone(),
    })
}

/// Returns token usage in the wire format.
fn usage(usage: &Usage) -> Value {
    let value = json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    });
    marked(value, usage)
}

/// One completion in progress.
#[derive(Clone, Debug)]
struct Completion {
    /// Whether the stream ends with usage.
    wants_usage: bool,
    /// Whether a piece of the answer was sent: clients show reasoning after it as a second block.
    answering: bool,
}

const DONE: &str = "data: [DONE]\n\n";

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn id(call: &Call) -> String {
    format!("chatcmpl-{}", call.id)
}

/// Returns a chunk of a stream.
fn chunk(call: &Call, delta: Value, finish: Option<&str>) -> Value {
    json!({
        "id": id(call),
        "object": "chat.completion.chunk",
        "created": call.created,
        "model": call.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
    })
}

/// Returns a call of a client's tool in the wire format.
fn tool_call(call: &ToolCall) -> Value {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text()}})
}

fn finish(answer: &Answer) -> &'static str {
    finish_or_call(answer, "stop", "length", "tool_calls")
}

impl Wire for Completion {
    fn form(&self) -> &'static str {
        FORM
    }

    fn whole(&self, call: &Call, answer: &Answer) -> Value {
        let text = answer.content();
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if !answer.calls().is_empty() {
            if text.is_empty() {
                message["content"] = Value::Null;
            }
            message["tool_calls"] = answer.calls().iter().map(tool_call).collect();
        }
        json!({
            "id": id(call),
            "object": "chat.completion",
            "created": call.created,
            "model": call.model,
            "choices": [{
                "index": 0,
                "message": message,
                "logprobs": null,
                "finish_reason": finish(answer),
            }],
            "usage": usage(&answer.usage()),
            "kd": answer.json(),
        })
    }

    fn begin(&mut self, call: &Call) -> String {
        event(&chunk(
            call,
            json!({"role": "assistant", "content": ""}),
            None,
        ))
    }

    fn thought(&mut self, call: &Call, line: &str) -> String {
        if self.answering {
            return self.quiet(call);
        }
        event(&chunk(call, json!({"reasoning_content": line}), None))
    }

    fn text(&mut self, call: &Call, piece: &str) -> String {
        self.answering = true;
        event(&chunk(call, json!({"content": piece}), None))
    }

    fn end(&mut self, call: &Call, answer: &Answer, _text: &str) -> String {
        let mut out = String::new();
        for (index, tool) in answer.calls().iter().enumerate() {
            let mut piece = tool_call(tool);
            piece["index"] = index.into();
            out += &event(&chunk(call, json!({"tool_calls": [piece]}), None));
        }
        let mut end = chunk(call, json!({}), Some(finish(answer)));
        end["kd"] = answer.json();
        out += &event(&end);
        if self.wants_usage {
            let mut last = chunk(call, json!({}), None);
            last["choices"] = json!([]);
            last["usage"] = usage(&answer.usage());
            out += &event(&last);
        }
        out + DONE
    }

    fn fail(&mut self, _call: &Call, fault: &Fault) -> String {
        event(&fault.json(Shape::OpenAi)) + DONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn of(value: &Value) -> Result<Read, Fault> {
        read(value.to_string().as_bytes(), &|_, _| Ok(()))
    }

    #[test]
    fn what_a_council_cannot_do_is_refused_with_its_field() {
        let user = json!({"role": "user", "content": "hi"});
        for (more, param) in [
            (json!({"n": 2}), Some("n")),
            (json!({"tool_choice": "required"}), Some("tool_choice")),
            (json!({"tool_choice": "sometimes"}), Some("tool_choice")),
            (
                json!({"messages": [user, {"role": "tool", "tool_call_id": "x", "content": "y"}]}),
                Some("messages"),
            ),
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
            (json!({"messages": "hi"}), Some("messages")),
            (json!({"model": 3}), Some("model")),
            (json!({"functions": [{"name": "x"}]}), Some("functions")),
            (json!({"modalities": ["text", "audio"]}), Some("modalities")),
            (json!({"max_tokens": "9"}), Some("max_tokens")),
        ] {
            let mut request = json!({"model": "kd/ask", "messages": [user]});
            for (key, value) in more.as_object().into_iter().flatten() {
                request[key] = value.clone();
            }
            let fault = of(&request).err().expect("refused");
            assert_eq!(
                (fault.status, fault.param),
                (StatusCode::BAD_REQUEST, param),
                "{more}"
            );
        }
        assert!(read(b"{", &|_, _| Ok(())).is_err());
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
        let read = of(&request).expect("taken");
        assert!(read.streams);
        let texts: Vec<_> = read.transcript.messages.iter().map(|m| &m.text).collect();
        assert_eq!(
            texts,
            ["Be brief.", "one\ntwo", "[called read with {}]", "three"]
        );
    }
}
