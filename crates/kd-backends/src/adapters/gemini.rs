//! Gemini's `streamGenerateContent` API.

use crate::adapters::parts;
use crate::attachments;
use crate::status;
use crate::transport::http::{Decoder, Dialect, Out, To};
use crate::transport::sse::Event;
use kd_core::media::MediaKind;
use kd_core::request::{PictureSource, Said, ToolChoice};
use kd_core::{Failure, FailureKind, Finish, Request, Usage};
use reqwest::header::HeaderName;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The wire format of Gemini's `streamGenerateContent`.
pub(crate) struct Gemini;

/// Returns the name of a model for a path: characters that would end the path or start a query are escaped.
pub(crate) fn escaped(model: &str) -> String {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let mut name = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                name.push(char::from(byte))
            }
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    name
}

impl Dialect for Gemini {
    fn url(&self, base: &str, model: &str) -> String {
        let name = escaped(model);
        format!("{base}/models/{name}:streamGenerateContent?alt=sse")
    }

    fn key_header(&self, key: &str) -> (HeaderName, String) {
        // In a header, not in the URL: URLs end up in logs.
        (HeaderName::from_static("x-goog-api-key"), key.to_owned())
    }

    fn body(&self, to: To<'_>, request: &Request) -> Value {
        let (system, user) = parts::system_and_user(&request.prompt);
        let talk = request.tools.as_deref();
        let mut contents = Vec::new();
        if !user.is_empty() || talk.is_none_or(|talk| talk.said.is_empty()) {
            let mut parts = Vec::new();
            for file in &request.attachments {
                let data = attachments::base64(file);
                parts.push(json!({"text": attachments::label(file)}));
                parts.push(
                    json!({"inlineData": {"mimeType": file.kind.media_type(), "data": data}}),
                );
            }
            parts.push(json!({"text": user}));
            contents.push(json!({"role": "user", "parts": parts}));
        }
        talk.into_iter()
            .flat_map(|talk| &talk.said)
            .for_each(|said| add(&mut contents, said));
        let mut body = json!({"contents": contents});
        if let Some(talk) = talk.filter(|talk| !talk.tools.is_empty()) {
            let tools = talk.tools.iter();
            let declared: Vec<Value> = tools
                .map(|t| json!({"name": t.name, "description": t.doc, "parametersJsonSchema": t.schema}))
                .collect();
            body["tools"] = json!([{"functionDeclarations": declared}]);
            let choice = choice(&talk.choice);
            parts::put(&mut body, "toolConfig", choice);
        }
        if !system.is_empty() {
            body["systemInstruction"] = json!({"parts": [{"text": system}]});
        }
        let sampling = &request.sampling;
        let mut config = json!({});
        parts::put(
            &mut config,
            "temperature",
            sampling.temperature.map(parts::short),
        );
        parts::put(&mut config, "topP", sampling.top_p.map(parts::short));
        parts::put(&mut config, "maxOutputTokens", sampling.max_tokens);
        // The API's seed is a signed 32-bit number.
        parts::put(&mut config, "seed", sampling.seed.map(|s| s & 0x7fff_ffff));
        parts::put(
            &mut config,
            "stopSequences",
            (!sampling.stop.is_empty()).then_some(&sampling.stop),
        );
        if let Some(schema) = &request.schema {
            config["responseMimeType"] = json!("application/json");
            config["responseJsonSchema"] = parts::strict_schema(schema).0;
        }
        if thinks(to.model) {
            config["thinkingConfig"] = json!({"includeThoughts": true});
        }
        if config.as_object().is_some_and(|c| !c.is_empty()) {
            body["generationConfig"] = config;
        }
        body
    }

    fn takes(&self, kind: MediaKind) -> bool {
        kind != MediaKind::Gif
    }

    fn any_object(&self, body: &mut Value) -> bool {
        let config = body
            .get_mut("generationConfig")
            .and_then(Value::as_object_mut);
        config.is_some_and(|config| config.remove("responseJsonSchema").is_some())
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reading::default())
    }
}

/// Returns whether a model thinks; others reject a request for thoughts.
fn thinks(model: &str) -> bool {
    let Some(version) = model
        .strip_prefix("models/")
        .unwrap_or(model)
        .strip_prefix("gemini-")
    else {
        return false;
    };
    let number: String = version
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    number.parse::<f32>().is_ok_and(|v| v >= 2.5)
}

/// Returns the value of `toolConfig`; the model decides without one.
fn choice(choice: &ToolChoice) -> Option<Value> {
    let config = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    Some(json!({"functionCallingConfig": config}))
}

/// Adds a step of the conversation. Consecutive results share one content.
fn add(contents: &mut Vec<Value>, said: &Said) {
    match said {
        Said::User { text } => contents.push(json!({"role": "user", "parts": [{"text": text}]})),
        Said::Agent { text, calls } => {
            let words = (!text.is_empty()).then(|| json!({"text": text}));
            let calls = calls.iter().map(|c| {
                let mut part = json!({"functionCall": {"name": c.name, "args": c.arguments}});
                parts::put(&mut part, "thoughtSignature", c.signature.as_ref());
                part
            });
            let parts: Vec<Value> = words.into_iter().chain(calls).collect();
            contents.push(json!({"role": "model", "parts": parts}));
        }
        Said::Tool {
            name,
            result,
            failed,
            ..
        } => {
            let key = if *failed { "error" } else { "result" };
            let part = json!({"functionResponse": {"name": name, "response": {key: result}}});
            let open = contents
                .last_mut()
                .filter(|c| c["parts"][0].get("functionResponse").is_some());
            match open.and_then(|c| c["parts"].as_array_mut()) {
                Some(parts) => parts.push(part),
                None => contents.push(json!({"role": "user", "parts": [part]})),
            }
        }
        Said::Picture { picture } => {
            let mut part = match &picture.source {
                PictureSource::Data(data) => json!({"inlineData": {"data": data}}),
                PictureSource::Url(url) => json!({"fileData": {"fileUri": url}}),
            };
            if !picture.media_type.is_empty() {
                let kind = part
                    .as_object_mut()
                    .and_then(|part| part.values_mut().next());
                if let Some(kind) = kind {
                    kind["mimeType"] = picture.media_type.as_str().into();
                }
            }
            contents.push(json!({"role": "user", "parts": [part]}));
        }
    }
}

/// State of an answer being decoded.
#[derive(Default)]
struct Reading {
    usage: Option<Usage>,
    finish: Option<String>,
}

impl Decoder for Reading {
    fn event(&mut self, event: Event<'_>, out: &mut Out) -> Result<(), serde_json::Error> {
        let chunk: Chunk<'_> = serde_json::from_str(event.data)?;
        if let Some(error) = chunk.error.filter(|e| !e.is_null()) {
            out.fail(status::in_stream(&error));
            return Ok(());
        }
        out.started(chunk.model.as_deref(), chunk.id.as_deref());
        let before = out.size();
        let usage = chunk.usage;
        if let Some(usage) = &usage {
            self.usage = usage.whole(before);
        }
        if let Some(reason) = chunk.feedback.and_then(|f| f.block_reason) {
            out.used(self.usage);
            out.fail(Failure::new(
                FailureKind::Refused,
                format!(
                    "the provider's filter refused the prompt ({})",
                    parts::excerpt(&reason)
                ),
            ));
            return Ok(());
        }
        let Some(candidate) = chunk.candidates.into_iter().flatten().next() else {
            return Ok(());
        };
        for part in candidate
            .content
            .and_then(|c| c.parts)
            .into_iter()
            .flatten()
        {
            let text = part.text.as_deref().unwrap_or_default();
            if let Some(call) = part.call {
                out.signed_call(
                    &call.id.unwrap_or_default(),
                    &call.name,
                    &call.args.to_string(),
                    part.signature,
                );
            } else if part.thought {
                out.thinking(text)
            } else {
                out.text(text)
            }
        }
        if let Some(reason) = candidate.finish_reason {
            // Token counts may follow, so only the end of the stream ends the answer.
            self.finish = Some(reason.into_owned());
        }
        // A count covers only the text before it: if more text follows, it is incomplete.
        if out.size() != before {
            self.usage = usage.and_then(|usage| usage.whole(out.size()));
        }
        Ok(())
    }

    fn over(&mut self, out: &mut Out) {
        // Before the end, a count covers only the text so far.
        out.used(self.usage.filter(|_| self.finish.is_some()));
        match self.finish.as_deref() {
            None => {}
            Some("MAX_TOKENS") => out.finish(Finish::Length, self.usage),
            Some(
                "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE",
            ) => {
                let reason = self.finish.take().unwrap_or_default();
                out.fail(Failure::new(
                    FailureKind::Refused,
                    format!("the provider's filter withheld the answer ({reason})"),
                ));
            }
            Some("MALFORMED_RESPONSE" | "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") => {
                out.fail(Failure::new(
                    FailureKind::Decode,
                    "the model's answer was malformed, says the service",
                ));
            }
            Some(_) => out.finish(Finish::Stop, self.usage),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(
        borrow,
        default,
        deserialize_with = "parts::text",
        rename = "responseId"
    )]
    id: Option<Cow<'a, str>>,
    #[serde(
        borrow,
        default,
        deserialize_with = "parts::text",
        rename = "modelVersion"
    )]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default, rename = "promptFeedback")]
    feedback: Option<Feedback<'a>>,
    #[serde(default, rename = "usageMetadata")]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default, deserialize_with = "parts::text")]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, deserialize_with = "parts::text")]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    thought: bool,
    #[serde(default, rename = "functionCall")]
    call: Option<FunctionCall>,
    /// Models from version 3 on want it back with the call.
    #[serde(default, rename = "thoughtSignature")]
    signature: Option<String>,
}

#[derive(Deserialize)]
struct FunctionCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default, deserialize_with = "parts::text")]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireUsage {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    total_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

impl WireUsage {
    /// Returns the count if it covers both sides: the service omits the answer's count when it is empty. `said` is the
    /// length of the answer so far in bytes.
    fn whole(&self, said: usize) -> Option<Usage> {
        let input_tokens = self.prompt_token_count?;
        let thinking_tokens = self.thoughts_token_count.unwrap_or(0);
        let output_tokens = match self.candidates_token_count {
            Some(answer) => answer.saturating_add(thinking_tokens),
            None if said == 0 => thinking_tokens,
            None => self.total_token_count?.checked_sub(input_tokens)?,
        };
        Some(Usage {
            input_tokens,
            output_tokens,
            cached_tokens: self.cached_content_token_count.unwrap_or(0),
            thinking_tokens,
            ..Usage::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_cannot_leave_its_place_in_the_address() {
        let url = Gemini.url("http://h/v1beta", "models/gemini-3-pro");
        assert_eq!(
            url,
            "http://h/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
        );
        let url = Gemini.url("http://h/v1beta", "../x?y#z");
        assert_eq!(
            url,
            "http://h/v1beta/models/..%2Fx%3Fy%23z:streamGenerateContent?alt=sse"
        );
    }

    #[test]
    fn thoughts_are_asked_of_those_that_think() {
        for (model, yes) in [
            ("gemini-2.5-flash", true),
            ("models/gemini-3-pro", true),
            ("gemini-2.0-flash", false),
            ("gemma-3", false),
        ] {
            assert_eq!(thinks(model), yes, "{model}");
        }
    }
}
