//! Helpers for the HTTP dialects: the prompt in two parts, and building a body.

use kd_core::Prompt;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Splits the prompt. System text: rules and persona. User text: history and turn. The constant part comes first, for
/// services that cache prefixes.
pub(crate) fn system_and_user(prompt: &Prompt) -> (String, String) {
    let join = |a: &str, b: &str| match (a.is_empty(), b.is_empty()) {
        (false, false) => format!("{a}\n\n{b}"),
        _ => format!("{a}{b}"),
    };
    (
        join(&prompt.rules, &prompt.persona),
        join(&prompt.history, &prompt.turn),
    )
}

/// Reads an optional text, and borrows it where it has no escapes. The code that serde derives for an optional
/// [`Cow`] always copies, twice for each token.
pub(crate) fn text<'de: 'a, 'a, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'_>>::deserialize(from)?.map(|text| text.0))
}

/// Sets a field if there is a value.
pub(crate) fn put<T: Serialize>(body: &mut Value, name: &str, value: Option<T>) {
    if let Some(value) = value.and_then(|v| serde_json::to_value(v).ok()) {
        body[name] = value;
    }
}

/// Rounds a number to the digits that the user wrote: `0.7`, not `0.699999988079071`.
pub(crate) fn short(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

/// Returns the beginning of a text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Returns the schema without our hints, and whether it meets OpenAI's strict mode: closed objects, all fields
/// required.
pub(crate) fn strict_schema(schema: &Value) -> (Value, bool) {
    let schema = without(schema, &|name| name.starts_with("x-"));
    let strict = is_strict(&schema);
    (schema, strict)
}

/// Returns the schema as Anthropic accepts it: closed objects, and without the bounds that it rejects (checked when the
/// answer arrives).
pub(crate) fn closed_schema(schema: &Value) -> Value {
    const REFUSED: [&str; 9] = [
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ];
    let mut schema = without(schema, &|name| {
        name.starts_with("x-") || REFUSED.contains(&name)
    });
    close(&mut schema);
    schema
}

/// Returns whether a key of a schema contains user-defined names rather than keywords.
fn holds_names(key: &str) -> bool {
    matches!(
        key,
        "properties" | "$defs" | "definitions" | "patternProperties"
    )
}

/// Returns whether a key contains data rather than schemas.
fn holds_data(key: &str) -> bool {
    matches!(key, "const" | "enum" | "default" | "examples")
}

fn without(schema: &Value, dropped: &dyn Fn(&str) -> bool) -> Value {
    match schema {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, _)| !dropped(key))
                .map(|(key, value)| {
                    let value = match value {
                        Value::Object(names) if holds_names(key) => Value::Object(
                            names
                                .iter()
                                .map(|(n, s)| (n.clone(), without(s, dropped)))
                                .collect::<Map<_, _>>(),
                        ),
                        value if holds_data(key) => value.clone(),
                        value => without(value, dropped),
                    };
                    (key.clone(), value)
                })
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(|s| without(s, dropped)).collect()),
        other => other.clone(),
    }
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") {
                map.insert("additionalProperties".into(), Value::Bool(false));
            }
            for (key, value) in map.iter_mut().filter(|(key, _)| !holds_data(key)) {
                match value {
                    Value::Object(names) if holds_names(key) => names.values_mut().for_each(close),
                    value => close(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let here = match map.get("properties").and_then(Value::as_object) {
                None => true,
                Some(fields) => {
                    let required = map.get("required").and_then(Value::as_array);
                    map.get("additionalProperties") == Some(&Value::Bool(false))
                        && fields
                            .keys()
                            .all(|f| required.is_some_and(|r| r.iter().any(|n| n == f)))
                }
            };
            here && map
                .iter()
                .filter(|(key, _)| !holds_data(key))
                .all(|(key, value)| match value {
                    Value::Object(names) if holds_names(key) => names.values().all(is_strict),
                    value => is_strict(value),
                })
        }
        Value::Array(list) => list.iter().all(is_strict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_optional_text_is_borrowed_unless_it_has_escapes() {
        #[derive(Deserialize)]
        struct Chunk<'a> {
            #[serde(borrow, default, deserialize_with = "super::text")]
            text: Option<Cow<'a, str>>,
        }
        let read = |json| serde_json::from_str::<Chunk<'_>>(json).unwrap().text;
        assert!(matches!(
            read(r#"{"text": "word"}"#),
            Some(Cow::Borrowed("word"))
        ));
        assert_eq!(read(r#"{"text": "a\nb"}"#).as_deref(), Some("a\nb"));
        assert_eq!(read(r#"{"text": null}"#), None);
        assert_eq!(read("{}"), None);
        assert!(serde_json::from_str::<Chunk<'_>>(r#"{"text": 1}"#).is_err());
    }

    #[test]
    fn the_prompt_has_two_parts_without_empty_ones() {
        let prompt = |r: &str, p: &str, h: &str, t: &str| Prompt {
            rules: r.into(),
            persona: p.into(),
            history: h.into(),
            turn: t.into(),
            ..Prompt::default()
        };
        let parts = system_and_user(&prompt("r", "p", "h", "t"));
        assert_eq!((parts.0.as_str(), parts.1.as_str()), ("r\n\np", "h\n\nt"));
        let parts = system_and_user(&prompt("", "p", "", "t"));
        assert_eq!((parts.0.as_str(), parts.1.as_str()), ("p", "t"));
    }

    #[test]
    fn schemas_are_fitted_to_their_service() {
        let schema = json!({"type": "object", "x-guidance": {"a": 1}, "required": ["vote", "maxLength"],
            "properties": {"vote": {"enum": ["yes", "no"], "x-order": 1}, "maxLength": {"type": "string", "maxLength": 9}}});
        let (plain, strict) = strict_schema(&schema);
        assert!(!strict, "the object is open");
        assert_eq!(plain["properties"]["vote"], json!({"enum": ["yes", "no"]}));
        assert_eq!(plain["properties"]["maxLength"]["maxLength"], 9);
        let closed = closed_schema(&schema);
        assert_eq!(closed["additionalProperties"], false);
        assert_eq!(
            closed["properties"]["maxLength"],
            json!({"type": "string"}),
            "a field may be named like a bound"
        );
        assert!(strict_schema(&closed).1);
    }

    #[test]
    fn numbers_are_sent_as_they_were_written() {
        assert_eq!(serde_json::to_string(&short(0.7)).unwrap(), "0.7");
    }
}
