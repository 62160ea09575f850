//! OpenAI Responses: writes answers, complete and streamed.

use super::echo::Echo;
use super::fault::Fault;
use super::{Call, Wire, finish, marked, named_event, now};
use crate::answer::Answer;
use kd_core::Usage;
use kd_core::request::ToolCall;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The argument of a tool that takes free text.
pub(super) const CUSTOM: &str = "input";
/// The field with the form of the answer.
pub(super) const FORM: &str = "text";

/// Returns token usage in the wire format.
fn usage(usage: &Usage) -> Value {
    let value = json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.written_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    });
    marked(value, usage)
}

/// One response in progress.
#[derive(Debug, Default)]
pub(super) struct Response {
    /// Whether the client wants to refer to the answer later.
    stores: bool,
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
    /// What it repeats of its request.
    echo: Echo,
}

impl Response {
    /// Creates one that continues an answer, with these tools that take free text.
    pub(super) fn new(
        stores: bool,
        previous: Option<String>,
        custom: BTreeSet<String>,
        echo: Echo,
    ) -> Self {
        Self {
            echo,
            stores,
            previous,
            custom,
            ..Self::default()
        }
    }

    fn id(&self, call: &Call) -> String {
        format!("resp_{}", call.id)
    }

    /// Returns the response as an object.
    fn object(&self, call: &Call, status: &str, output: &[Value]) -> Value {
        let mut object = json!({
            "id": self.id(call),
            "object": "response",
            "created_at": call.created,
            "completed_at": null,
            "status": status,
            "background": false,
            "conversation": null,
            "error": null,
            "incomplete_details": null,
            "max_tool_calls": null,
            "model": call.model,
            "output": output,
            "previous_response_id": self.previous,
            "prompt": null,
            "prompt_cache_retention": null,
            "reasoning": {"effort": null, "summary": null},
            "service_tier": "default",
            "store": self.stores && call.is_kept,
            "temperature": null,
            "top_logprobs": null,
            "top_p": null,
            "truncation": "disabled",
            "usage": null,
        });
        self.echo.lay_over(&mut object);
        object
    }

    /// Returns the items of a whole answer.
    fn output(&self, call: &Call, answer: &Answer) -> Vec<Value> {
        let status = finish(answer, "completed", "incomplete");
        let text = answer.content();
        let has_text = !text.is_empty() || answer.calls().is_empty();
        let text = has_text.then(|| said(call, status, Some(&text)));
        let calls = answer.calls().iter();
        let calls = calls.map(|called| self.item(called, "completed", true));
        text.into_iter().chain(calls).collect()
    }

    /// Returns the finished response.
    fn ended(&self, call: &Call, answer: &Answer, output: &[Value]) -> Value {
        let status = finish(answer, "completed", "incomplete");
        let mut object = self.object(call, status, output);
        if answer.is_cut() {
            object["incomplete_details"] = json!({"reason": "max_output_tokens"});
        } else {
            object["completed_at"] = now().into();
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
        self.stores.then(|| self.id(call))
    }

    fn items(&self, call: &Call, answer: &Answer) -> Vec<Value> {
        if !self.stores || !call.is_kept {
            return Vec::new();
        }
        match self.closed.is_empty() {
            true => self.output(call, answer),
            false => self.closed.clone(),
        }
    }

    fn form(&self) -> &'static str {
        FORM
    }

    fn whole(&self, call: &Call, answer: &Answer) -> Value {
        self.ended(call, answer, &self.output(call, answer))
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
