//! Fields that the requests of several APIs share: reading them, and telling which one is wrong.

use super::fault::Fault;
use crate::body;
use kd_app::output::OutputSchema;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// The fields that an error may name.
const FIELDS: &[&str] = &[
    "background",
    "input",
    "instructions",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "n",
    "parallel_tool_calls",
    "previous_response_id",
    "stop",
    "stop_sequences",
    "store",
    "stream",
    "stream_options",
    "system",
    "tools",
];

/// Parses the body of a request. `what` describes the expected value, for the error, which names the wrong field.
///
/// # Errors
/// If it is no JSON object, a field is missing, or one has the wrong type.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T, Fault> {
    body::parse(body).map_err(|bad| {
        let mut fault = Fault::invalid(None, format!("this is no {what}: {bad}"));
        let field = bad.field.as_deref();
        fault.param = FIELDS.iter().find(|known| field == Some(**known)).copied();
        fault
    })
}

/// Reads a limit of tokens. Clients that compute it send 1.0 for 1, and -1 for none, as llama.cpp's server takes it;
/// larger numbers count as the largest limit.
///
/// # Errors
/// If it is not a whole number, or another negative one.
pub(super) fn limit<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u32>, D::Error> {
    let bad = || D::Error::custom("must be a whole number, or -1 for no limit");
    let number = match Value::deserialize(reader)? {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64().ok_or_else(bad)?,
        _ => return Err(bad()),
    };
    match number {
        -1.0 => Ok(None),
        n if n >= 0.0 && n.fract() == 0.0 => {
            Ok(Some(format!("{n:.0}").parse().unwrap_or(u32::MAX)))
        }
        _ => Err(bad()),
    }
}

/// Reads the form that an answer must have, in the ways of the APIs: `{"type": "json_schema", "schema": …}`, the schema
/// inside of `json_schema`, or `{"type": "json_object"}`. `None` for text.
///
/// # Errors
/// If it is not one of these. `param` is the field.
pub(super) fn form(form: &Value, param: &'static str) -> Result<Option<Value>, Fault> {
    let bad = |why: &str| Fault::invalid(Some(param), format!("the format of `{param}` {why}"));
    match form["type"].as_str() {
        None if form.is_null() => Ok(None),
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({"type": "object"}))),
        Some("json_schema") => {
            let schema = form.get("schema").unwrap_or(&form["json_schema"]["schema"]);
            match schema.is_object() {
                true => Ok(Some(schema.clone())),
                false => Err(bad("has no schema")),
            }
        }
        _ => Err(bad("must be text, json_object or json_schema")),
    }
}

/// Checks the schema of an answer that the council composes. `param` is the field.
///
/// # Errors
/// If it is not a schema that is complete in itself.
pub(super) fn output(schema: Value, param: &'static str) -> Result<OutputSchema, Fault> {
    OutputSchema::new(schema).map_err(|bad| {
        let why = format!(
            "the format of `{param}` cannot be used: {bad}; {}",
            bad.hint()
        );
        Fault::invalid(Some(param), why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[derive(Debug, Deserialize)]
    struct Asked {
        model: String,
        #[serde(default, deserialize_with = "limit")]
        max_tokens: Option<u32>,
        #[serde(default)]
        stop: Vec<String>,
    }

    fn read(more: Value) -> Result<Asked, Fault> {
        let mut asked: Map<String, Value> = json!({"model": "kd/ask"})
            .as_object()
            .cloned()
            .expect("one");
        asked.extend(more.as_object().cloned().expect("fields"));
        parse(json!(asked).to_string().as_bytes(), "request")
    }

    #[test]
    fn a_limit_is_taken_as_clients_send_it() {
        for (sent, expected) in [
            (json!(null), Some(None)),
            (json!(-1), Some(None)),
            (json!(-1.0), Some(None)),
            (json!(0), Some(Some(0))),
            (json!(1.0), Some(Some(1))),
            (json!(4096), Some(Some(4096))),
            (json!(5_000_000_000_u64), Some(Some(u32::MAX))),
            (json!(1e300), Some(Some(u32::MAX))),
            (json!(-2), None),
            (json!(1.5), None),
            (json!("9"), None),
            (json!([]), None),
        ] {
            let read = read(json!({"max_tokens": sent}));
            match (read, expected) {
                (Ok(asked), Some(expected)) => {
                    assert_eq!(
                        (asked.max_tokens, &*asked.model),
                        (expected, "kd/ask"),
                        "{sent}"
                    );
                }
                (Err(fault), None) => assert_eq!(fault.param, Some("max_tokens"), "{sent}"),
                (read, _) => panic!("{sent}: {read:?}"),
            }
        }
        assert!(read(json!({})).expect("taken").max_tokens.is_none());
    }

    #[test]
    fn an_error_names_its_field_and_no_type_of_this_program() {
        for (body, param, words) in [
            ("{", None, "it is not JSON: it ends too early"),
            ("[]", None, "it must be a JSON object"),
            (r#"{"model": "x"} {}"#, None, "it is not JSON"),
            (
                r#"{"model": "x", "model": "y"}"#,
                Some("model"),
                "`model` is there twice",
            ),
            ("{}", Some("model"), "`model` is missing"),
            (r#"{"model": 3}"#, Some("model"), "`model` must be a text"),
            (
                r#"{"model": "x", "stop": ["a", 1]}"#,
                Some("stop"),
                "`stop[1]` must be a text",
            ),
            (
                r#"{"model": "x", "max_tokens": "9"}"#,
                Some("max_tokens"),
                "`max_tokens` must be a whole number, or -1 for no limit",
            ),
        ] {
            let fault = parse::<Asked>(body.as_bytes(), "request").expect_err("refused");
            assert_eq!(fault.param, param, "{body}");
            assert!(
                fault.message.starts_with("this is no request: "),
                "{}",
                fault.message
            );
            assert!(fault.message.contains(words), "{body}: {}", fault.message);
            assert!(!fault.message.contains("struct"), "{}", fault.message);
        }
        assert!(read(json!({"stop": []})).expect("taken").stop.is_empty());
    }

    #[test]
    fn forms_of_every_api_are_schemas() {
        let schema = json!({"type": "object", "properties": {}});
        for (sent, expected) in [
            (json!(null), Ok(None)),
            (json!({"type": "text"}), Ok(None)),
            (
                json!({"type": "json_object"}),
                Ok(Some(json!({"type": "object"}))),
            ),
            (
                json!({"type": "json_schema", "schema": schema}),
                Ok(Some(schema.clone())),
            ),
            (
                json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}),
                Ok(Some(schema.clone())),
            ),
            (json!({"type": "json_schema"}), Err(())),
            (json!({"type": "json_schema", "schema": "x"}), Err(())),
            (json!({"type": "grammar"}), Err(())),
            (json!({}), Err(())),
            (json!("json"), Err(())),
        ] {
            let read = form(&sent, "text").map_err(|fault| assert_eq!(fault.param, Some("text")));
            assert_eq!(read, expected, "{sent}");
        }
    }
}
