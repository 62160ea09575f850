//! OpenAI Responses: parses requests and writes answers, complete and streamed.

use super::fault::{Fault, NAME_CHARS_MAX};
use super::offer::{Offer, arguments, choose};
use super::side::is_side;
use super::transcript::{Content, Message, Role, Transcript, called, content_of};
use super::{Call, Read, Wire, finish, named_event};
use crate::answer::Answer;
use kd_core::Usage;
use kd_core::clean::clean_line;
use kd_core::request::ToolCall;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The argument of a tool that takes free text.
const CUSTOM: &str = "input";
/// The field with a request's input.
const INPUT: &str = "input";

/// A request. Other fields configure a single model, and members have their own settings.
#[derive(Debug, Deserialize)]
struct Request {
    model: String,
    #[serde(default)]
    input: Option<Input>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    previous_response_id: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    background: Option<bool>,
    #[serde(default)]
    conversation: Option<Value>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    text: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Items(Vec<Value>),
}

/// Parses a request; refuses what a council cannot do instead of ignoring it.
pub(super) fn read(body: &[u8]) -> Result<Read, Fault> {
    let request: Request = serde_json::from_slice(body)
        .map_err(|error| Fault::invalid(None, format!("this is no response request: {error}")))?;
    if request.background == Some(true) {
        let why = "answers are not stored: `background` must be false";
        return Err(Fault::invalid(Some("background"), why));
    }
    if request.conversation.as_ref().is_some_and(|c| !c.is_null()) {
        let why =
            "there are no conversations on this server: send `input` or `previous_response_id`";
        return Err(Fault::invalid(Some("conversation"), why));
    }
    let form = request
        .text
        .as_ref()
        .and_then(|t| t["format"]["type"].as_str());
    if form.is_some_and(|form| form != "text") {
        let why = "the council answers in text: `text.format` must be text";
        return Err(Fault::invalid(Some("text"), why));
    }
    let (offer, custom) = offer(&request)?;
    let (talk, acts) = offer.finish()?;
    let transcript = transcript(&request)?.check(INPUT)?;
    let task = request
        .metadata
        .as_ref()
        .and_then(|data| data["task"].as_str());
    let side = is_side(&transcript, talk.max_tokens, task);
    Ok(Read {
        transcript,
        talk,
        acts,
        side,
        streams: request.stream == Some(true),
        wire: Box::new(Response {
            previous: request.previous_response_id,
            custom,
            ..Response::default()
        }),
    })
}

fn transcript(request: &Request) -> Result<Transcript, Fault> {
    let mut messages = Vec::new();
    let instructions = request.instructions.as_ref();
    if let Some(text) = instructions.filter(|text| !text.trim().is_empty()) {
        messages.push(Message::new(Role::System, text));
    }
    match &request.input {
        None => {}
        Some(Input::Text(text)) => messages.push(Message::new(Role::User, text)),
        Some(Input::Items(items)) => {
            for item in items {
                messages.extend(message(item)?);
            }
        }
    }
    Ok(Transcript {
        model: request.model.clone(),
        messages,
        previous: request.previous_response_id.clone(),
    })
}

/// Parses the conversation step by step, and the tools. Also returns which of them take free text: members get them as
/// tools with one text, and the client gets that text.
fn offer(request: &Request) -> Result<(Offer, BTreeSet<String>), Fault> {
    let mut offer = Offer {
        continues: request.previous_response_id.is_some(),
        ..Offer::default()
    };
    offer.system(request.instructions.as_deref().unwrap_or_default());
    match &request.input {
        None => {}
        Some(Input::Text(text)) => offer.user(text),
        Some(Input::Items(items)) => {
            for item in items {
                step(&mut offer, item)?;
            }
        }
    }
    let mut custom = BTreeSet::new();
    for tool in request.tools.iter().flatten() {
        let word = |key: &str| tool[key].as_str().unwrap_or_default();
        match word("type") {
            "function" => offer.tool(word("name"), word("description"), &tool["parameters"]),
            "custom" => {
                custom.insert(word("name").to_owned());
                let grammar = tool["format"]["definition"].as_str();
                let grammar =
                    grammar.map(|text| format!("\n\nThe text must follow this grammar:\n{text}"));
                let doc = word("description").to_owned() + &grammar.unwrap_or_default();
                let schema = json!({"type": "object", "properties": {CUSTOM: {"type": "string"}}, "required": [CUSTOM], "additionalProperties": false});
                offer.tool(word("name"), &doc, &schema);
            }
            // Others are run by a provider.
            _ => {}
        }
    }
    choose(&mut offer, request.tool_choice.as_ref(), |choice| {
        choice["name"].as_str()
    })?;
    offer.talk.parallel = request.parallel_tool_calls;
    offer.talk.max_tokens = request.max_output_tokens;
    Ok((offer, custom))
}

/// Parses an input item step by step.
fn step(offer: &mut Offer, item: &Value) -> Result<(), Fault> {
    let word = |key: &str| item[key].as_str().unwrap_or_default();
    let call = |arguments| ToolCall {
        id: word("call_id").to_owned(),
        name: word("name").to_owned(),
        arguments,
    };
    match item["type"].as_str() {
        None | Some("message") => {
            let Content { text, pictures } = content(&item["content"])?;
            match Role::read(word("role"), INPUT)? {
                Role::System => offer.system(&text),
                Role::User | Role::Tool => offer.user(&text),
                Role::Assistant => offer.agent(&text, Vec::new()),
            }
            offer.pictures(pictures);
        }
        Some("function_call") => offer.agent("", vec![call(arguments(word("arguments")))]),
        Some("custom_tool_call") => offer.agent("", vec![call(json!({CUSTOM: word("input")}))]),
        Some("function_call_output" | "custom_tool_call_output") => {
            let Content { text, pictures } = content(&item["output"])?;
            offer.result(word("call_id"), text, false, INPUT)?;
            offer.pictures(pictures);
        }
        // Everything else was refused, or has no meaning for a member.
        Some(_) => {}
    }
    Ok(())
}

/// Returns an item's content.
fn content(value: &Value) -> Result<Content, Fault> {
    match value {
        Value::Array(parts) => content_of(
            parts,
            &["input_text", "output_text", "text", "refusal"],
            INPUT,
        ),
        value => Ok(value.as_str().unwrap_or_default().into()),
    }
}

/// Returns it as text.
fn text(value: &Value) -> Result<String, Fault> {
    Ok(content(value)?.in_words())
}

/// Parses an input item as a message; `None` where it has no meaning for a council.
fn message(item: &Value) -> Result<Option<Message>, Fault> {
    let word = |key: &str| item[key].as_str().unwrap_or_default();
    Ok(match item["type"].as_str() {
        None | Some("message") => {
            let role = Role::read(word("role"), INPUT)?;
            Some(Message::new(role, text(&item["content"])?))
        }
        Some("function_call") => {
            let call = called(word("name"), word("arguments"));
            Some(Message::new(Role::Assistant, call))
        }
        Some("custom_tool_call") => {
            let call = called(word("name"), word("input"));
            Some(Message::new(Role::Assistant, call))
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            Some(Message::new(Role::Tool, text(&item["output"])?))
        }
        // Reasoning of an earlier answer is this server's progress.
        Some("reasoning") => None,
        Some(other) => {
            let kind = clean_line(other, NAME_CHARS_MAX);
            let why = format!("the council reads messages and calls of functions, not `{kind}`");
            return Err(Fault::invalid(Some(INPUT), why));
        }
    })
}

/// Returns token usage in the wire format.
fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}

/// One response in progress.
#[derive(Debug, Default)]
struct Response {
    previous: Option<String>,
    /// Number of events sent.
    sent: u64,
    /// Progress so far, while its item is open.
    thoughts: Option<String>,
    /// Closed items.
    closed: Vec<Value>,
    /// Whether the answer's item is open.
    answering: bool,
    /// Tools that take free text.
    custom: BTreeSet<String>,
}

impl Response {
    fn id(&self, call: &Call) -> String {
        format!("resp_{}", call.id)
    }

    /// Returns the response as an object.
    fn object(&self, call: &Call, status: &str, output: &[Value]) -> Value {
        json!({
            "id": self.id(call),
            "object": "response",
            "created_at": call.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "max_output_tokens": null,
            "metadata": {},
            "model": call.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": self.previous,
            "reasoning": {"effort": null, "summary": null},
            "store": true,
            "temperature": null,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "truncation": "disabled",
            "usage": null,
        })
    }

    /// Returns the finished response.
    fn ended(&self, call: &Call, answer: &Answer, output: &[Value]) -> Value {
        let status = finish(answer, "completed", "incomplete");
        let mut object = self.object(call, status, output);
        if answer.is_cut() {
            object["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        object["usage"] = usage(&answer.usage());
        object["kd"] = answer.json();
        object
    }

    fn event(&mut self, kind: &str, mut data: Value) -> String {
        data["type"] = kind.into();
        data["sequence_number"] = self.sent.into();
        self.sent += 1;
        named_event(kind, &data)
    }

    /// Formats an event about the current item.
    fn at(&mut self, kind: &str, item: &str, more: Value) -> String {
        let mut data = json!({"item_id": item, "output_index": self.closed.len()});
        for (key, value) in more.as_object().into_iter().flatten() {
            data[key] = value.clone();
        }
        self.event(kind, data)
    }

    /// Closes the reasoning item.
    fn close_thoughts(&mut self, call: &Call) -> String {
        let Some(thoughts) = self.thoughts.take() else {
            return String::new();
        };
        let id = format!("rs_{}", call.id);
        let part = json!({"type": "summary_text", "text": thoughts});
        let item = json!({"id": id, "type": "reasoning", "summary": [part]});
        let mut out = self.at(
            "response.reasoning_summary_text.done",
            &id,
            json!({"summary_index": 0, "text": thoughts}),
        );
        out += &self.at(
            "response.reasoning_summary_part.done",
            &id,
            json!({"summary_index": 0, "part": part}),
        );
        let data = json!({"output_index": self.closed.len(), "item": item});
        out += &self.event("response.output_item.done", data);
        self.closed.push(item);
        out
    }

    /// Closes the answer's item.
    fn close_answer(&mut self, call: &Call, answer: &Answer, text: &str) -> String {
        let id = message_id(call);
        let mut out = self.open_answer(call);
        out += &self.at(
            "response.output_text.done",
            &id,
            json!({"content_index": 0, "text": text, "logprobs": []}),
        );
        out += &self.at(
            "response.content_part.done",
            &id,
            json!({"content_index": 0, "part": part(text)}),
        );
        let status = finish(answer, "completed", "incomplete");
        let item = said(call, status, Some(text));
        let data = json!({"output_index": self.closed.len(), "item": item});
        out += &self.event("response.output_item.done", data);
        self.closed.push(item);
        out
    }

    /// Returns the item of a call of a client's tool; an item that begins has no arguments yet.
    fn item(&self, call: &ToolCall, status: &str, is_whole: bool) -> Value {
        let text = match is_whole {
            true => self.input(call),
            false => String::new(),
        };
        let (kind, id, key) = match self.custom.contains(&call.name) {
            true => ("custom_tool_call", "ctc", CUSTOM),
            false => ("function_call", "fc", "arguments"),
        };
        json!({"id": format!("{id}_{}", call.id), "type": kind, "status": status, "call_id": call.id,
            "name": call.name, key: text})
    }

    /// Returns the arguments of a call as the client gets them.
    fn input(&self, call: &ToolCall) -> String {
        match self.custom.contains(&call.name) {
            true => call.arguments[CUSTOM]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            false => call.arguments_text(),
        }
    }

    /// Writes a call of a client's tool as an item.
    fn call(&mut self, call: &ToolCall) -> String {
        let (item, whole) = (
            self.item(call, "in_progress", false),
            self.item(call, "completed", true),
        );
        let id = item["id"].as_str().unwrap_or_default().to_owned();
        let input = self.input(call);
        let (events, key) = match self.custom.contains(&call.name) {
            true => ("response.custom_tool_call_input", CUSTOM),
            false => ("response.function_call_arguments", "arguments"),
        };
        let data = json!({"output_index": self.closed.len(), "item": item});
        let mut out = self.event("response.output_item.added", data);
        out += &self.at(&format!("{events}.delta"), &id, json!({"delta": input}));
        let done = json!({key: input, "name": call.name});
        out += &self.at(&format!("{events}.done"), &id, done);
        let data = json!({"output_index": self.closed.len(), "item": whole});
        out += &self.event("response.output_item.done", data);
        self.closed.push(whole);
        out
    }

    /// Opens the answer's item.
    fn open_answer(&mut self, call: &Call) -> String {
        if self.answering {
            return String::new();
        }
        self.answering = true;
        let mut out = self.close_thoughts(call);
        let item = said(call, "in_progress", None);
        let data = json!({"output_index": self.closed.len(), "item": item});
        out += &self.event("response.output_item.added", data);
        out + &self.at(
            "response.content_part.added",
            &message_id(call),
            json!({"content_index": 0, "part": part("")}),
        )
    }
}

fn message_id(call: &Call) -> String {
    format!("msg_{}", call.id)
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Returns the answer's item.
fn said(call: &Call, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.map(part).into_iter().collect();
    json!({"id": message_id(call), "type": "message", "status": status, "role": "assistant", "content": content})
}

impl Wire for Response {
    fn goes_on_by(&self, call: &Call) -> Option<String> {
        Some(self.id(call))
    }

    fn whole(&self, call: &Call, answer: &Answer) -> Value {
        let status = finish(answer, "completed", "incomplete");
        let text = answer.content();
        let has_text = !text.is_empty() || answer.calls().is_empty();
        let text = has_text.then(|| said(call, status, Some(&text)));
        let calls = answer.calls().iter();
        let calls = calls.map(|called| self.item(called, "completed", true));
        let output: Vec<Value> = text.into_iter().chain(calls).collect();
        self.ended(call, answer, &output)
    }

    fn begin(&mut self, call: &Call) -> String {
        let object = self.object(call, "in_progress", &[]);
        let created = self.event("response.created", json!({"response": object}));
        created + &self.quiet(call)
    }

    // Clients that wait for events ignore comments.
    fn quiet(&mut self, call: &Call) -> String {
        let object = self.object(call, "in_progress", &[]);
        self.event("response.in_progress", json!({"response": object}))
    }

    fn thought(&mut self, call: &Call, line: &str) -> String {
        if self.answering {
            return self.quiet(call);
        }
        let id = format!("rs_{}", call.id);
        let mut out = String::new();
        if self.thoughts.is_none() {
            let item = json!({"id": id, "type": "reasoning", "summary": []});
            let data = json!({"output_index": self.closed.len(), "item": item});
            out += &self.event("response.output_item.added", data);
            out += &self.at(
                "response.reasoning_summary_part.added",
                &id,
                json!({"summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
            );
        }
        self.thoughts.get_or_insert_default().push_str(line);
        out + &self.at(
            "response.reasoning_summary_text.delta",
            &id,
            json!({"summary_index": 0, "delta": line}),
        )
    }

    fn text(&mut self, call: &Call, piece: &str) -> String {
        let open = self.open_answer(call);
        open + &self.at(
            "response.output_text.delta",
            &message_id(call),
            json!({"content_index": 0, "delta": piece, "logprobs": []}),
        )
    }

    fn end(&mut self, call: &Call, answer: &Answer, text: &str) -> String {
        let mut out = String::new();
        if !text.is_empty() || answer.calls().is_empty() {
            out += &self.close_answer(call, answer, text);
        }
        out += &self.close_thoughts(call);
        for called in answer.calls() {
            out += &self.call(called);
        }
        let object = self.ended(call, answer, &self.closed);
        let kind = finish(answer, "response.completed", "response.incomplete");
        out + &self.event(kind, json!({"response": object}))
    }

    fn fail(&mut self, call: &Call, fault: &Fault) -> String {
        let mut out = self.close_thoughts(call);
        let mut object = self.object(call, "failed", &self.closed);
        object["error"] = json!({"code": "server_error", "message": fault.message});
        out += &self.event("response.failed", json!({"response": object}));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &Value) -> Result<Read, Fault> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn items_become_messages() {
        let request = json!({"model": "kd/ask", "instructions": "Be brief.", "tools": [{"type": "function"}], "input": [
            {"role": "user", "content": "one"},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "name": "read", "arguments": "{}", "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "two"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "three"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "four"}]},
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
                (Role::Assistant, "[called read with {}]"),
                (Role::Tool, "two"),
                (Role::Assistant, "three"),
                (Role::User, "four"),
            ]
        );
    }

    #[test]
    fn what_a_council_cannot_do_is_refused_with_its_field() {
        for (more, param) in [
            (json!({"background": true}), Some("background")),
            (json!({"conversation": "conv_1"}), Some("conversation")),
            (json!({"tool_choice": "required"}), Some("tool_choice")),
            (
                json!({"text": {"format": {"type": "json_schema"}}}),
                Some("text"),
            ),
            (json!({"input": null}), Some("input")),
            (json!({"input": " "}), Some("input")),
            (
                json!({"input": [{"type": "item_reference", "id": "x"}]}),
                Some("input"),
            ),
            (
                json!({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
                Some("input"),
            ),
            (
                json!({"input": [{"role": "boss", "content": "x"}]}),
                Some("input"),
            ),
            (json!({"input": 3}), None),
        ] {
            let mut request = json!({"model": "kd/ask", "input": "hi"});
            for (key, value) in more.as_object().into_iter().flatten() {
                request[key] = value.clone();
            }
            let fault = of(&request).err().expect("refused");
            assert_eq!(fault.param, param, "{more}");
        }
    }
}
