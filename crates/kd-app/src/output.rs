//! A JSON schema of the user or of a client, for the answer of a council: checked before anybody is asked, and applied to
//! the reply.

use jsonschema::{Draft, PatternOptions, Validator};
use kd_core::clean::clean_line;
use kd_core::output::Schema;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Maximum bytes of a schema.
pub const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// Maximum nesting of a schema. Checking a value takes stack for each level.
const DEPTH_MAX: usize = 64;
/// Maximum mistakes of a value that are told.
const FAULTS_MAX: usize = 5;
/// Maximum characters of a mistake.
const FAULT_CHARS_MAX: usize = 200;

/// The form of an answer.
#[derive(Clone)]
pub struct OutputSchema {
    json: Value,
    validator: Arc<Validator>,
}

/// Why a text is no schema for answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSchema {
    /// It is longer than [`SCHEMA_BYTES_MAX`].
    #[error("the schema is longer than {} KiB", SCHEMA_BYTES_MAX >> 10)]
    TooLong,
    /// It is nested too deeply.
    #[error("the schema is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
    /// It is no JSON.
    #[error("the schema is no JSON: {0}")]
    NoJson(String),
    /// It is no JSON object.
    #[error("the schema must be a JSON object")]
    NoObject,
    /// It refers to another document.
    #[error("the schema refers to `{0}`, and nothing is fetched")]
    Remote(String),
    /// It is of a draft that is not supported.
    #[error("`$schema` is `{0}`, which is no known draft")]
    NoDraft(String),
    /// It is no valid JSON schema.
    #[error("this is no JSON schema: {0}")]
    Invalid(String),
}

impl BadSchema {
    /// Returns advice.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooLong => "shorten it: models follow short schemas better",
            Self::TooDeep => "flatten it: models follow flat schemas better",
            Self::NoJson(_) | Self::NoObject => {
                "a schema is an object such as {\"type\": \"object\", \"properties\": {…}}"
            }
            Self::Remote(_) => "copy what it refers to into `$defs`, and refer to \"#/$defs/NAME\"",
            Self::NoDraft(_) => {
                "leave `$schema` out, or use \"https://json-schema.org/draft/2020-12/schema\""
            }
            Self::Invalid(_) => "see https://json-schema.org/draft/2020-12/schema",
        }
    }
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputSchema").field(&self.json).finish()
    }
}

impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl OutputSchema {
    /// Parses a schema. Nothing is fetched.
    ///
    /// # Errors
    /// If it is too long, no JSON, or no schema that is complete in itself.
    pub fn parse(text: &str) -> Result<Self, BadSchema> {
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(BadSchema::TooLong);
        }
        let json = serde_json::from_str(text.trim_start_matches('\u{feff}'));
        Self::new(json.map_err(|error| BadSchema::NoJson(error.to_string()))?)
    }

    /// Takes a schema. Nothing is fetched.
    ///
    /// # Errors
    /// As [`OutputSchema::parse`].
    pub fn new(json: Value) -> Result<Self, BadSchema> {
        if !json.is_object() {
            return Err(BadSchema::NoObject);
        }
        check(&json, 0)?;
        if json.to_string().len() > SCHEMA_BYTES_MAX {
            return Err(BadSchema::TooLong);
        }
        if let Some(named) = json.get("$schema")
            && let Some(named) = named.as_str()
            && matches!(Draft::Draft202012.detect(&json), Draft::Unknown)
        {
            return Err(BadSchema::NoDraft(named.to_owned()));
        }
        let invalid = |error: jsonschema::ValidationError<'_>| BadSchema::Invalid(told(&error));
        jsonschema::meta::validate(&json).map_err(invalid)?;
        let validator = jsonschema::options()
            .offline()
            // Its time grows with the text alone, whatever the pattern.
            .with_pattern_options(PatternOptions::regex())
            .build(&json)
            .map_err(invalid)?;
        Ok(Self {
            json,
            validator: Arc::new(validator),
        })
    }
}

impl Schema for OutputSchema {
    fn json(&self) -> &Value {
        &self.json
    }

    fn allows(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    fn faults(&self, value: &Value) -> Vec<String> {
        let faults = self.validator.iter_errors(value).take(FAULTS_MAX);
        faults.map(|fault| told(&fault)).collect()
    }
}

/// Returns a schema for the engine.
pub(crate) fn shared(output: Option<OutputSchema>) -> Option<Arc<dyn Schema>> {
    output.map(|schema| Arc::new(schema) as Arc<dyn Schema>)
}

/// Describes a mistake and its place in one line.
fn told(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place = match place.as_str() {
        "" => String::new(),
        place => format!("at {place}: "),
    };
    clean_line(&format!("{place}{}", error.masked()), FAULT_CHARS_MAX)
}

/// Checks nesting and references.
fn check(schema: &Value, depth: usize) -> Result<(), BadSchema> {
    if depth > DEPTH_MAX {
        return Err(BadSchema::TooDeep);
    }
    match schema {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            let refers = matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef");
            match value.as_str().filter(|to| refers && !to.starts_with('#')) {
                Some(to) => Err(BadSchema::Remote(clean_line(to, 120))),
                None => check(value, depth + 1),
            }
        }),
        Value::Array(items) => items.iter().try_for_each(|item| check(item, depth + 1)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::output::read;
    use serde_json::json;

    fn schema() -> OutputSchema {
        let schema = json!({"type": "object", "properties": {
            "answer": {"enum": ["SQLite", "PostgreSQL"]},
            "reasons": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        }, "required": ["answer"], "additionalProperties": false});
        OutputSchema::new(schema).expect("a schema")
    }

    #[test]
    fn what_is_no_schema_complete_in_itself_is_refused() {
        let deep = format!(
            "{}{{}}{}",
            "{\"not\": ".repeat(DEPTH_MAX + 1),
            "}".repeat(DEPTH_MAX + 1)
        );
        let long = format!("{{\"title\": \"{}\"}}", "x".repeat(SCHEMA_BYTES_MAX));
        for (text, why) in [
            ("", "the schema is no JSON: EOF"),
            ("{", "the schema is no JSON: EOF"),
            ("[]", "the schema must be a JSON object"),
            ("true", "the schema must be a JSON object"),
            ("{\"type\": \"text\"}", "this is no JSON schema: at /type: "),
            ("{\"type\": 3}", "this is no JSON schema: at /type: "),
            (
                "{\"required\": \"a\"}",
                "this is no JSON schema: at /required: ",
            ),
            ("{\"pattern\": \"(\"}", "this is no JSON schema: "),
            ("{\"$ref\": \"#/$defs/a\"}", "this is no JSON schema: "),
            (
                "{\"items\": {\"$ref\": \"https://example.com/a.json\"}}",
                "the schema refers to `https://example.com/a.json`, and nothing is fetched",
            ),
            (
                "{\"$ref\": \"file:///etc/passwd\"}",
                "the schema refers to `file:///etc/passwd`",
            ),
            (
                "{\"$ref\": \"other.json\"}",
                "the schema refers to `other.json`",
            ),
            (
                "{\"$schema\": \"https://example.com/mine\"}",
                "`$schema` is `https://example.com/mine`, which is no known draft",
            ),
            (&deep, "the schema is nested more than 64 levels deep"),
            (&long, "the schema is longer than 256 KiB"),
        ] {
            let error = OutputSchema::parse(text).expect_err(text);
            assert!(error.to_string().starts_with(why), "{text}: {error}");
            assert!(!error.hint().is_empty());
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        for (schema, value, allowed) in [
            (json!({"$ref": "#"}), json!({}), true),
            (
                json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
                json!({}),
                true,
            ),
            (
                json!({"properties": {"next": {"$ref": "#"}}, "additionalProperties": false}),
                json!({"next": {"next": {"last": 1}}}),
                false,
            ),
        ] {
            let schema = OutputSchema::new(schema).expect("a schema");
            assert_eq!(schema.allows(&value), allowed, "{schema:?}");
        }
        // A pattern that other engines try in exponential time.
        let slow = OutputSchema::new(json!({"pattern": "^(a+)+$"})).expect("a schema");
        assert!(!slow.allows(&json!("a".repeat(5000) + "b")));
    }

    #[test]
    fn a_value_is_read_from_a_reply_as_models_write_it() {
        let value = json!({"answer": "SQLite", "reasons": ["small"]});
        for reply in [
            value.to_string(),
            format!("```json\n{value:#}\n```"),
            format!("Here it is: {value} I hope it helps."),
            "{'answer': 'SQLite', 'reasons': ['small'],}".to_owned(),
            format!("<think>{{\"answer\": \"MySQL\"}}</think>{value}"),
        ] {
            assert_eq!(read(&schema(), &reply), Ok(value.clone()), "{reply}");
        }
        let two = format!("{value} or {}", json!({"answer": "PostgreSQL"}));
        for (reply, why) in [
            ("{\"answer\": \"MySQL\"}", "at /answer: value is not one of"),
            ("{\"reasons\": []}", "\"answer\" is a required property"),
            (
                "{\"answer\": \"SQLite\", \"x\": 1}",
                "Additional properties",
            ),
            ("Use SQLite.", "the reply holds no JSON value"),
            ("", ""),
            (two.as_str(), ""),
        ] {
            let wrong = read(&schema(), reply).expect_err(reply).to_string();
            assert!(wrong.contains(why) && !wrong.is_empty(), "{reply}: {wrong}");
        }
        let list = OutputSchema::new(json!({"type": "array", "items": {"type": "integer"}}));
        let list = list.expect("a schema");
        for reply in ["[1, 2]", "```json\n[1, 2]\n```", "\n[1,2]\n"] {
            assert_eq!(read(&list, reply), Ok(json!([1, 2])), "{reply}");
        }
        assert!(read(&list, "[1, \"a\"]").is_err());
        assert!(schema().is_of_objects() && !list.is_of_objects());
    }
}
