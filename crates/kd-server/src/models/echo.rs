//! OpenAI Responses: the fields of a request that its response repeats.
//!
//! Only what the council takes is repeated, and what names the caller: members have their own temperatures and efforts.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;

/// The form that a field must have to be repeated.
type Form = fn(&Value) -> bool;

/// The fields, and their values where the request has none.
const FIELDS: &[(&str, Form, &str)] = &[
    ("instructions", Value::is_string, "null"),
    ("metadata", Value::is_object, "{}"),
    ("parallel_tool_calls", Value::is_boolean, "true"),
    ("prompt_cache_key", Value::is_string, "null"),
    ("safety_identifier", Value::is_string, "null"),
    ("text", Value::is_object, "{}"),
    (
        "tool_choice",
        |choice| choice.is_string() || choice.is_object(),
        r#""auto""#,
    ),
    ("tools", Value::is_array, "[]"),
    ("user", Value::is_string, "null"),
];

/// The form of an answer whose request names none.
const FORMAT: &str = "format";

/// The name of a field, which may contain escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl Borrow<str> for Name<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What a response repeats.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Echo(Map<String, Value>);

impl Echo {
    /// Reads the fields of a request. `tokens_max` is the limit that it sets.
    pub(super) fn of(body: &[u8], tokens_max: Option<u32>) -> Self {
        let sent: BTreeMap<Name<'_>, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
        let mut fields = Map::new();
        for (name, form, default) in FIELDS {
            let read = |text: &str| serde_json::from_str::<Value>(text).ok();
            let value = sent.get(*name).and_then(|raw| read(raw.get())).filter(form);
            let value = value.or_else(|| read(default)).unwrap_or_default();
            fields.insert((*name).to_owned(), value);
        }
        if let Some(Value::Object(text)) = fields.get_mut("text")
            && !text.get(FORMAT).is_some_and(Value::is_object)
        {
            text.insert(FORMAT.to_owned(), json!({"type": "text"}));
        }
        fields.insert("max_output_tokens".to_owned(), json!(tokens_max));
        Self(fields)
    }

    /// Adds the fields to a response.
    pub(super) fn lay_over(&self, response: &mut Value) {
        for (name, value) in &self.0 {
            response[name] = value.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_repeats_what_the_council_takes() {
        let format = json!({"type": "json_schema", "name": "x", "strict": true, "schema": {"type": "object"}});
        let tools =
            json!([{"type": "function", "name": "read", "parameters": null, "strict": true}]);
        let sent = json!({
            "model": "kd/ask", "input": "hi", "instructions": "Be brief.", "metadata": {"a": "b"},
            "parallel_tool_calls": false, "text": {"format": format, "verbosity": "low"},
            "tool_choice": "none", "tools": tools, "user": "ada", "temperature": 0.2, "top_p": 0.5,
            "safety_identifier": "s", "prompt_cache_key": "k", "store": false,
        });
        let mut response = json!({"temperature": null});
        Echo::of(sent.to_string().as_bytes(), Some(9)).lay_over(&mut response);
        assert_eq!(
            response,
            json!({
                "instructions": "Be brief.", "metadata": {"a": "b"}, "parallel_tool_calls": false,
                "text": {"format": format, "verbosity": "low"}, "tool_choice": "none", "tools": tools,
                "user": "ada", "safety_identifier": "s", "prompt_cache_key": "k",
                "max_output_tokens": 9, "temperature": null,
            })
        );
    }

    #[test]
    fn names_of_fields_may_have_escapes() {
        let mut response = json!({});
        let body = br#"{"\u0075ser": "ada", "\u006dodel": "kd/ask", "metadata": {"a": "b"}}"#;
        Echo::of(body, None).lay_over(&mut response);
        assert_eq!(response["user"], "ada");
        assert_eq!(response["metadata"], json!({"a": "b"}));
    }

    #[test]
    fn other_forms_are_not_repeated() {
        let default = json!({
            "instructions": null, "metadata": {}, "parallel_tool_calls": true,
            "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "user": null,
            "safety_identifier": null, "prompt_cache_key": null, "max_output_tokens": null,
        });
        for sent in [
            json!({}),
            json!({"metadata": null, "text": null, "tools": null}),
            json!({"metadata": 7, "text": {"format": null}, "tools": {}, "user": [], "tool_choice": 1}),
        ] {
            let mut response = json!({});
            Echo::of(sent.to_string().as_bytes(), None).lay_over(&mut response);
            assert_eq!(response, default, "{sent}");
        }
    }
}
