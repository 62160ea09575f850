//! OpenAI Responses: parses requests.

use super::echo::Echo;
use super::fault::{Fault, NAME_CHARS_MAX};
use super::fields::{self, limit};
use super::offer::{Offer, arguments, choose};
use super::response::{CUSTOM, FORM, Response};
use super::side::is_side;
use super::transcript::{Content, Message, Role, Transcript, called, content_of};
use super::{Read, Resolve};
use kd_core::clean::clean_line;
use kd_core::request::ToolCall;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
    #[serde(default, deserialize_with = "limit")]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    text: Option<Value>,
    #[serde(default)]
    prompt: Option<Value>,
    #[serde(default)]
    store: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be a text or a list of items")]
enum Input {
    Text(String),
    Items(Vec<Value>),
}

/// Parses a request; refuses what a council cannot do instead of ignoring it.
pub(super) fn read(body: &[u8], resolve: &Resolve<'_>) -> Result<Read, Fault> {
    let mut request: Request = fields::parse(body, "response request")?;
    if let Some(Input::Items(items)) = &mut request.input {
        resolve(items, INPUT)?;
    }
    if request.background == Some(true) {
        let why = "answers are not stored: `background` must be false";
        return Err(Fault::invalid(Some("background"), why));
    }
    if request.conversation.as_ref().is_some_and(|c| !c.is_null()) {
        let why =
            "there are no conversations on this server: send `input` or `previous_response_id`";
        return Err(Fault::invalid(Some("conversation"), why));
    }
    if request
        .prompt
        .as_ref()
        .is_some_and(|prompt| !prompt.is_null())
    {
        let why = "there are no stored prompts on this server: send its text as `instructions`";
        return Err(Fault::invalid(Some("prompt"), why));
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
        wire: Box::new(Response::new(
            request.store != Some(false),
            request.previous_response_id,
            custom,
            Echo::of(body, request.max_output_tokens),
        )),
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
        ..Transcript::default()
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
    offer.talk.schema = match &request.text {
        Some(text) => fields::form(&text["format"], FORM)?,
        None => None,
    };
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
        ..ToolCall::default()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &Value) -> Result<Read, Fault> {
        read(value.to_string().as_bytes(), &|_, _| Ok(()))
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
            (json!({"input": 3}), Some("input")),
            (json!({"prompt": {"id": "pmpt_1"}}), Some("prompt")),
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
