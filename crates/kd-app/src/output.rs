//! A JSON schema of the user or of a client, for the answer of a council: checked before anybody is asked, and applied to
//! the reply.

mod steps;

use jsonschema::{Draft, PatternOptions, Validator};
use kd_core::clean::clean_line;
use kd_core::output::Schema;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use steps::{DEPTH_MAX, PARTS_MAX, PATTERNS_MAX, Steps};

/// Maximum bytes of a schema.
pub const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// Maximum bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// Maximum mistakes of a value that are listed.
const FAULTS_MAX: usize = 5;
/// Maximum characters of a mistake.
const FAULT_CHARS_MAX: usize = 200;

/// The form of an answer.
#[derive(Clone)]
pub struct OutputSchema {
    json: Value,
    validator: Arc<Validator>,
    steps: Arc<Steps>,
}

/// Why a text is not a schema for answers.
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
    /// It refers to a part that it does not have.
    #[error("the schema refers to `{0}`, and has no schema there")]
    Unresolved(String),
    /// A part of it has what only the whole may have.
    #[error("a part of the schema has `{0}`, which only the whole may have")]
    Inner(String),
    /// It refers to itself for the same place of a value.
    #[error("the schema refers to itself for the same place of a value")]
    Circular,
    /// Values would be checked in too many steps.
    #[error(
        "the schema branches too often: more than {PARTS_MAX} of its parts apply to the same place of a value"
    )]
    Branches,
    /// It has more than [`PATTERNS_MAX`] patterns.
    #[error("the schema has more than {PATTERNS_MAX} patterns")]
    Patterns,
    /// It is of a draft that is not supported.
    #[error("`$schema` is `{0}`, which is no known draft")]
    NoDraft(String),
    /// It is not a valid JSON schema.
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
            Self::Unresolved(_) | Self::Inner(_) => {
                "put each part into `$defs`, without `$id` and `$schema`, and refer to \"#/$defs/NAME\""
            }
            Self::Circular => {
                "let a part refer to itself only inside `properties`, `items` or `additionalProperties`"
            }
            Self::Branches => {
                "put fewer `anyOf`, `oneOf` and `allOf` into each other, also through `$ref`"
            }
            Self::Patterns => "use `enum`, or describe the form of a text in `description`",
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
        Steps::scan(&json)?;
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
        let validator = jsonschema::options()
            .offline()
            // Its time grows with the text alone, whatever the pattern.
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
            .should_validate_formats(false)
            .build(&json)
            .map_err(invalid)?;
        let steps = Arc::new(Steps::new(&json)?);
        Ok(Self {
            json,
            steps,
            validator: Arc::new(validator),
        })
    }
}

impl Schema for OutputSchema {
    fn json(&self) -> &Value {
        &self.json
    }

    fn allows(&self, value: &Value) -> bool {
        self.steps.can_check(value) && self.validator.is_valid(value)
    }

    fn faults(&self, value: &Value) -> Vec<String> {
        if !self.steps.can_check(value) {
            return vec!["it is too large or too deep for this schema".to_owned()];
        }
        // The mistakes of `anyOf` hold those of all its branches.
        if !self.steps.can_tell(value) {
            return vec!["it does not match the schema".to_owned()];
        }
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
            (
                "{\"$ref\": \"#\"}",
                "the schema refers to itself for the same place",
            ),
            (
                "{\"$defs\": {\"a\": {\"anyOf\": [{\"$ref\": \"#/$defs/b\"}]}, \"b\": {\"$ref\": \"#/$defs/a\"}}}",
                "the schema refers to itself for the same place",
            ),
            (
                "{\"properties\": {\"a\": {\"$schema\": \"http://127.0.0.1/meta\"}}}",
                "a part of the schema has `$schema`",
            ),
            (
                "{\"properties\": {\"a\": {\"$id\": \"https://example.com/a\"}}}",
                "a part of the schema has `$id`",
            ),
            (
                "{\"enum\": [{}], \"items\": {\"$ref\": \"#/enum/0\"}}",
                "the schema refers to `#/enum/0`, and has no schema there",
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
            (
                json!({"items": {"$ref": "#"}, "type": "array"}),
                json!([[[]], []]),
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

    /// A schema whose parts each try the next one twice.
    fn fan(keyword: &str, levels: usize) -> Value {
        let mut parts = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
            parts.insert(format!("a{level}"), json!({keyword: [next, next]}));
        }
        parts.insert(format!("a{levels}"), json!({"type": "object"}));
        json!({"$defs": parts, "$ref": "#/$defs/a0"})
    }

    #[test]
    fn a_schema_that_branches_too_often_is_refused() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for levels in [40, 18, 14] {
                let refused = OutputSchema::new(fan(keyword, levels));
                assert_eq!(refused, Err(BadSchema::Branches), "{keyword}");
            }
            // Where no value is, it counts, too.
            let mut inside = fan(keyword, 40);
            let schema = json!({"items": {"items": {"items": {"items": {"$ref": "#/$defs/a0"}}}}});
            inside["$ref"] = json!("#/$defs/top");
            inside["$defs"]["top"] = schema;
            assert_eq!(OutputSchema::new(inside), Err(BadSchema::Branches));
            let few = OutputSchema::new(fan(keyword, 8)).expect("a schema");
            assert_eq!(few.allows(&json!({})), keyword != "oneOf");
        }
    }

    #[test]
    fn a_value_that_takes_too_many_steps_is_not_checked() {
        // Each level of a value doubles them.
        let next = json!({"properties": {"next": {"$ref": "#"}}});
        let schema = OutputSchema::new(json!({"allOf": [next, next], "type": "object"}));
        let schema = schema.expect("a schema");
        let nested = |levels| (0..levels).fold(json!({}), |value, _| json!({"next": value}));
        assert!(schema.allows(&nested(8)));
        assert!(!schema.allows(&nested(60)));
        assert_eq!(
            schema.faults(&nested(60)),
            ["it is too large or too deep for this schema"]
        );
        // Mistakes are listed if there are few.
        let any = OutputSchema::new(fan("anyOf", 10)).expect("a schema");
        let many = json!(vec![1; 100_000]);
        assert_eq!(any.faults(&json!("x")).len(), 1);
        assert!(!any.allows(&many));
        assert_eq!(any.faults(&many).len(), 1);
        let list = json!({"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}});
        let list = OutputSchema::new(list).expect("a schema");
        assert_eq!(list.faults(&json!([1, 2, 3, 4, 5, 6, 7])).len(), FAULTS_MAX);
        assert_eq!(
            list.faults(&json!(vec![1; 40_000])),
            ["it does not match the schema"]
        );
    }

    #[test]
    fn patterns_are_few_and_small() {
        let letters = json!({"pattern": "0\\p{L}{180}"});
        let refused = OutputSchema::new(letters).expect_err("too large");
        assert!(matches!(refused, BadSchema::Invalid(_)), "{refused}");
        let many = |count: usize| {
            let fields = (0..count).map(|n| (format!("p{n}"), json!({"pattern": "^a+$"})));
            json!({"properties": fields.collect::<serde_json::Map<_, _>>()})
        };
        assert!(OutputSchema::new(many(PATTERNS_MAX)).is_ok());
        let refused = OutputSchema::new(many(PATTERNS_MAX + 1));
        assert_eq!(refused, Err(BadSchema::Patterns));
        let names = (0..=PATTERNS_MAX).map(|n| (format!("^p{n}$"), json!(true)));
        let names = json!({"patternProperties": names.collect::<serde_json::Map<_, _>>()});
        assert_eq!(OutputSchema::new(names), Err(BadSchema::Patterns));
    }

    #[test]
    fn what_values_say_is_no_keyword() {
        let data = json!({"$ref": "http://x", "$schema": "y", "$id": "z", "pattern": "("});
        for schema in [
            json!({"enum": [data]}),
            json!({"const": data}),
            json!({"default": data, "examples": [data]}),
            json!({"properties": {"$ref": {"type": "string"}, "id": {}, "enum": {}, "pattern": {}}}),
        ] {
            let taken = OutputSchema::new(schema.clone());
            assert!(taken.is_ok(), "{schema}: {taken:?}");
        }
        let hidden = json!({"properties": {"enum": {"$ref": "http://x"}}});
        assert_eq!(
            OutputSchema::new(hidden),
            Err(BadSchema::Remote("http://x".to_owned()))
        );
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
        // Each of many values is not checked.
        for (others, found) in [(10, true), (100, false)] {
            let others = "{\"answer\": \"MySQL\"}\n".repeat(others);
            assert_eq!(read(&schema(), &format!("{others}{value}")).is_ok(), found);
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
