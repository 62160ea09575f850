//! Bodies of requests in JSON: reading them, and telling in plain words which field is wrong and what it must be.
//!
//! Input: bytes, and the type to read. Output: the value, or the [`Bad`] field. Of a body, only the names of fields and
//! wrong choices are repeated, cleaned and shortened; of the words of the library that reads it, none.

use axum::http::{HeaderMap, header};
use kd_core::clean::clean_line;
use serde::de::DeserializeOwned;
use std::fmt;

/// Maximum fields and choices that an error names.
const NAMES_MAX: usize = 40;
/// Maximum characters of what clients chose in an error.
const CHARS_MAX: usize = 200;

/// What the library expects, and the words for it in an error.
const EXPECTED: &[(&str, &str)] = &[
    ("a string", "a text"),
    ("a borrowed string", "a text"),
    ("a sequence", "a list"),
    ("a boolean", "true or false"),
    ("a map", "an object"),
    ("string or map", "a text"),
    ("unit", "null"),
    ("usize", UNSIGNED),
    ("u8", UNSIGNED),
    ("u16", UNSIGNED),
    ("u32", UNSIGNED),
    ("u64", UNSIGNED),
    ("i32", WHOLE),
    ("i64", WHOLE),
    ("f32", "a number"),
    ("f64", "a number"),
];
const UNSIGNED: &str = "a whole number, 0 or greater";
const WHOLE: &str = "a whole number";

/// Returns whether a request says that its body is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

/// Why a body cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// The first part of the wrong field's path.
    pub(crate) field: Option<String>,
    why: String,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Bad {
    fn whole(why: impl Into<String>) -> Self {
        Self {
            field: None,
            why: why.into(),
        }
    }
}

/// Reads a JSON object.
///
/// # Errors
/// If it is none, or a field is missing, unknown or wrong.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Bad> {
    if body.trim_ascii().is_empty() {
        return Err(Bad::whole("the body is empty; it must be a JSON object"));
    }
    if body.trim_ascii_start().starts_with(b"{") {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let wrong = match serde_path_to_error::deserialize(&mut reader) {
            Ok(read) => match reader.end() {
                Ok(()) => return Ok(read),
                Err(error) => return Err(no_json(&error)),
            },
            Err(error) => bad(&error.path().to_string(), &error.inner().to_string()),
        };
        return Err(mistake(body).unwrap_or(wrong));
    }
    Err(mistake(body).unwrap_or_else(|| Bad::whole("it must be a JSON object")))
}

/// Returns what is wrong with a text that is no JSON.
fn mistake(body: &[u8]) -> Option<Bad> {
    let read = serde_json::from_slice::<serde::de::IgnoredAny>(body);
    read.err().map(|error| no_json(&error))
}

/// Describes a text that is no JSON by its place.
fn no_json(error: &serde_json::Error) -> Bad {
    let what = match error.is_eof() {
        true => "it ends too early",
        false => "it has a mistake",
    };
    let (line, column) = (error.line(), error.column());
    Bad::whole(format!(
        "it is not JSON: {what} at line {line}, column {column}"
    ))
}

/// Describes an error of the library.
fn bad(path: &str, told: &str) -> Bad {
    let told = told.rsplit_once(" at line ").map_or(told, |(why, _)| why);
    let path = if path == "." { "" } else { path };
    let (named, why) = match Told::of(told) {
        Told::Missing(name) => (name, format!("`{}` is missing", within(path, name))),
        Told::Twice(name) => (name, format!("`{}` is there twice", within(path, name))),
        Told::Unknown(names) => {
            // The path ends with the field that is not known.
            let field = if path.is_empty() { "a field" } else { path };
            let field = shown(field);
            let why = match names.is_empty() {
                true => format!("{field} is not known: no field is"),
                false => format!("{field} is not known; known are {}", list(&names, "and")),
            };
            ("", why)
        }
        Told::NoChoice(names) => ("", must_be(path, &list(&names, "or"))),
        Told::Expected(what) => ("", must_be(path, &expected(what))),
        Told::Other(why) if why.starts_with("must be ") => (
            "",
            must_be(path, why.strip_prefix("must be ").unwrap_or_default()),
        ),
        Told::Other(why) => {
            let place = match path {
                "" => String::new(),
                path => format!("{}: ", shown(path)),
            };
            ("", format!("{place}{}", clean_line(why, CHARS_MAX)))
        }
    };
    let field = if path.is_empty() { named } else { path };
    let field = field.split(['.', '[']).next().unwrap_or_default();
    Bad {
        field: (!field.is_empty()).then(|| field.to_owned()),
        why,
    }
}

fn must_be(path: &str, what: &str) -> String {
    match path {
        "" => format!("it must be {what}"),
        path => format!("{} must be {what}", shown(path)),
    }
}

/// Returns a path as a name; names that clients choose are cut.
fn shown(path: &str) -> String {
    match path {
        "a field" => path.to_owned(),
        path => format!("`{}`", clean_line(path, CHARS_MAX)),
    }
}

fn within(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

fn list(names: &[&str], last: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((end, [])) => end.clone(),
        Some((end, rest)) => format!("{} {last} {end}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

fn expected(what: &str) -> String {
    let known = EXPECTED.iter().find(|(word, _)| *word == what);
    let is_type = ["struct ", "map", "internally tagged", "adjacently tagged"];
    match known {
        Some((_, told)) => (*told).to_owned(),
        None if is_type.iter().any(|word| what.starts_with(word)) => "an object".to_owned(),
        // The words of our own types.
        None => what.strip_prefix("must be ").unwrap_or(what).to_owned(),
    }
}

/// What the library says.
enum Told<'a> {
    Missing(&'a str),
    Twice(&'a str),
    Unknown(Vec<&'a str>),
    NoChoice(Vec<&'a str>),
    Expected(&'a str),
    Other(&'a str),
}

impl<'a> Told<'a> {
    fn of(told: &'a str) -> Self {
        let name = |rest: &'a str| rest.split('`').next().unwrap_or_default();
        if let Some(rest) = told.strip_prefix("missing field `") {
            return Self::Missing(name(rest));
        }
        if let Some(rest) = told.strip_prefix("duplicate field `") {
            return Self::Twice(name(rest));
        }
        let parts = told.rsplit_once(", expected ");
        if told.starts_with("unknown field ") {
            // The unknown name may hold anything: the known ones are those after the last "expected".
            return Self::Unknown(parts.map_or_else(Vec::new, |(_, names)| quoted(names)));
        }
        if told.starts_with("unknown variant ") {
            return Self::NoChoice(parts.map_or_else(Vec::new, |(_, names)| quoted(names)));
        }
        let is_of_value = ["invalid type: ", "invalid value: ", "invalid length "];
        if let Some((_, what)) = parts
            && is_of_value.iter().any(|start| told.starts_with(start))
        {
            return Self::Expected(what);
        }
        match told {
            // A choice is expected, and every choice here is a text.
            "expected value" => Self::Expected("a string"),
            told => Self::Other(told),
        }
    }
}

fn quoted(names: &str) -> Vec<&str> {
    let names = names.split('`').skip(1).step_by(2);
    names.take(NAMES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Asked {
        question: String,
        method: Way,
        #[serde(default)]
        members: Vec<String>,
        #[serde(default)]
        skip: usize,
        #[serde(default)]
        id: Option<i64>,
        #[serde(default)]
        share: f64,
        #[serde(default)]
        stream: bool,
        #[serde(default)]
        inner: Option<Inner>,
        #[serde(default)]
        input: Option<Input>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Inner {
        name: String,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Way {
        Ask,
        Think,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged, expecting = "must be a text or a list of items")]
    #[allow(dead_code)]
    enum Input {
        Text(String),
        Items(Vec<i64>),
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    #[test]
    fn an_error_names_the_field_and_what_it_must_be() {
        let with = |more: &str| format!(r#"{{"question": "a", "method": "ask", {more}}}"#);
        for (body, field, words) in [
            ("", None, "the body is empty; it must be a JSON object"),
            (
                "{",
                None,
                "it is not JSON: it ends too early at line 1, column 1",
            ),
            (
                "{a",
                None,
                "it is not JSON: it has a mistake at line 1, column 2",
            ),
            (
                "{} {}",
                None,
                "it is not JSON: it has a mistake at line 1, column 4",
            ),
            ("[]", None, "it must be a JSON object"),
            ("7", None, "it must be a JSON object"),
            ("{}", Some("question"), "`question` is missing"),
            (
                r#"{"question": "a"}"#,
                Some("method"),
                "`method` is missing",
            ),
            (
                r#"{"question": "a", "question": "b"}"#,
                Some("question"),
                "`question` is there twice",
            ),
            (
                r#"{"question": 7}"#,
                Some("question"),
                "`question` must be a text",
            ),
            (
                r#"{"question": null}"#,
                Some("question"),
                "`question` must be a text",
            ),
            (
                r#"{"method": "vote, expected `x`"}"#,
                Some("method"),
                "`method` must be `ask` or `think`",
            ),
            (
                r#"{"method": 7}"#,
                Some("method"),
                "`method` must be a text",
            ),
            (
                r#"{"method": []}"#,
                Some("method"),
                "`method` must be a text",
            ),
            (
                &with(r#""members": "ann""#),
                Some("members"),
                "`members` must be a list",
            ),
            (
                &with(r#""members": ["ann", 7]"#),
                Some("members"),
                "`members[1]` must be a text",
            ),
            (
                &with(r#""skip": -1"#),
                Some("skip"),
                "`skip` must be a whole number, 0 or greater",
            ),
            (
                &with(r#""skip": 1.5"#),
                Some("skip"),
                "`skip` must be a whole number, 0 or greater",
            ),
            (
                &with(r#""id": "x""#),
                Some("id"),
                "`id` must be a whole number",
            ),
            (
                &with(r#""share": true"#),
                Some("share"),
                "`share` must be a number",
            ),
            (
                &with(r#""stream": 1"#),
                Some("stream"),
                "`stream` must be true or false",
            ),
            (
                &with(r#""inner": 1"#),
                Some("inner"),
                "`inner` must be an object",
            ),
            (
                &with(r#""inner": {}"#),
                Some("inner"),
                "`inner.name` is missing",
            ),
            (
                &with(r#""input": {}"#),
                Some("input"),
                "`input` must be a text or a list of items",
            ),
            (
                &with(r#""other": 1"#),
                Some("other"),
                "`other` is not known; known are `question`, `method`, `members`, `skip`, `id`, `share`, `stream`, `inner` and `input`",
            ),
        ] {
            let bad = parse::<Asked>(body.as_bytes()).expect_err(body);
            assert_eq!(
                (bad.field.as_deref(), bad.to_string().as_str()),
                (field, words),
                "{body}"
            );
        }
        let bad = parse::<Nothing>(br#"{"x": 1}"#).expect_err("unknown");
        assert_eq!(bad.to_string(), "`x` is not known: no field is");
        assert!(parse::<Nothing>(b" {} ").is_ok());
        let sound = with(r#""members": ["ann"], "skip": 2, "input": [1]"#);
        assert!(parse::<Asked>(sound.as_bytes()).is_ok());
    }
}
