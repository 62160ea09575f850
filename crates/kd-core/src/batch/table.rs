//! Reads files of rows with named fields: JSON Lines, and CSV with a header.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Maximum characters of a name in a message.
const NAME_CHARS_MAX: usize = 60;

/// The line on which a row begins, from 1, and its fields.
pub(super) type Row = (usize, Map<String, Value>);

/// A file of rows cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub what: String,
    /// What to do.
    pub hint: String,
}

pub(super) fn fail(line: usize, what: impl Into<String>, hint: impl Into<String>) -> ReadError {
    ReadError {
        line,
        what: what.into(),
        hint: hint.into(),
    }
}

/// Returns the text of a file.
pub(super) fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    let line_at = |at: usize| 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(fail(1, "the file is UTF-16", "save it as UTF-8"));
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(fail(
            line_at(at),
            "there is a NUL byte, so this is no text",
            "give a file of UTF-8 text",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        fail(
            line_at(e.valid_up_to()),
            "this is not UTF-8 text",
            "save the file as UTF-8",
        )
    })?;
    Ok(text.trim_start_matches('\u{feff}'))
}

/// Returns the value on each line that is not blank, with its number. No object on a line has two fields of one name.
pub(super) fn json_lines(text: &str, hint: &str) -> Result<Vec<(usize, Value)>, ReadError> {
    let lines = text.lines().enumerate();
    let value = |(at, line): (usize, &str)| {
        let value = serde_json::from_str(line).map_err(|e: serde_json::Error| {
            let what = format!("this is not JSON from column {} on", e.column());
            fail(at + 1, what, hint)
        })?;
        if let Some(name) = doubled_field(line) {
            let what = format!("two fields are named `{}`", shown(&name));
            return Err(fail(at + 1, what, "keep one of them"));
        }
        Ok((at + 1, value))
    };
    let filled = lines.filter(|(_, line)| !line.trim().is_empty());
    filled.map(value).collect()
}

/// Returns the first field of an object that occurs twice.
fn doubled_field(object: &str) -> Option<String> {
    serde_json::from_str::<Doubled>(object).ok()?.0
}

/// The first field of an object that occurs twice.
struct Doubled(Option<String>);

impl<'de> Deserialize<'de> for Doubled {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Doubled;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Doubled, A::Error> {
                let (mut seen, mut doubled) = (BTreeSet::new(), None);
                while let Some(name) = map.next_key::<String>()? {
                    map.next_value::<serde::de::IgnoredAny>()?;
                    if !seen.insert(name.clone()) && doubled.is_none() {
                        doubled = Some(name);
                    }
                }
                Ok(Doubled(doubled))
            }
        }
        from.deserialize_map(Fields).map_err(D::Error::custom)
    }
}

/// Returns a name for a message.
fn shown(name: &str) -> String {
    crate::clean::clean_line(name, NAME_CHARS_MAX)
}

/// Returns the rows below a header, each with the line on which it begins. No two columns have one name.
pub(super) fn csv(text: &str, hint: &str) -> Result<Vec<Row>, ReadError> {
    let rows = kd_vote::csv::rows(text).map_err(|at| {
        fail(
            at.max(1),
            "a quote that begins here is never closed",
            "double a quote inside a quoted cell: \"say \"\"hi\"\"\"",
        )
    })?;
    let mut rows = rows.into_iter();
    let Some((_, head)) = rows.next() else {
        return Ok(Vec::new());
    };
    let names: Vec<&str> = head.iter().map(|name| name.trim()).collect();
    check_names(&names)?;
    let mut found = Vec::new();
    for (line, row) in rows {
        if row.len() != names.len() {
            let what = format!("{} cells, but the header has {}", row.len(), names.len());
            return Err(fail(line, what, "put a cell with a comma in quotes"));
        }
        let mut fields = Map::new();
        for (name, cell) in names.iter().zip(&row) {
            fields.insert((*name).to_owned(), cell.trim().into());
        }
        found.push((line, fields));
    }
    if found.is_empty() {
        return Err(fail(1, "there is no row below the header", hint));
    }
    Ok(found)
}

/// Checks a header: its columns are separated by commas, and have different names. Columns without a name are free.
fn check_names(names: &[&str]) -> Result<(), ReadError> {
    let separators = [(';', "`;`"), ('\t', "tabs")];
    let other = separators.iter().find(|(c, _)| names.concat().contains(*c));
    if let (1, Some((_, other))) = (names.len(), other) {
        let what = format!("cells are separated by commas, not by {other}");
        return Err(fail(1, what, "save the file as CSV with commas"));
    }
    let mut seen = BTreeSet::new();
    match names
        .iter()
        .find(|name| !name.is_empty() && !seen.insert(**name))
    {
        None => Ok(()),
        Some(name) => {
            let what = format!("two columns are named `{}`", shown(name));
            Err(fail(1, what, "rename or remove one of them"))
        }
    }
}
