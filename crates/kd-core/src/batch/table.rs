//! Reads files of rows with named fields: JSON Lines, and CSV with a header.

use serde_json::{Map, Value};

/// The line on which a row begins, from 1, and its fields.
pub(super) type Row = (usize, Map<String, Value>);

/// A file of rows cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
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
            "this is no UTF-8 text",
            "save the file as UTF-8",
        )
    })?;
    Ok(text.trim_start_matches('\u{feff}'))
}

/// Returns the value on each line that is not blank, with its number.
pub(super) fn json_lines(text: &str, hint: &str) -> Result<Vec<(usize, Value)>, ReadError> {
    let lines = text.lines().enumerate();
    let value = |(at, line): (usize, &str)| match serde_json::from_str(line) {
        Ok(value) => Ok((at + 1, value)),
        Err(e) => {
            let what = format!("this is not JSON: {}", without_line(&e));
            Err(fail(at + 1, what, hint))
        }
    };
    let filled = lines.filter(|(_, line)| !line.trim().is_empty());
    filled.map(value).collect()
}

/// Returns an error of serde_json without its place: every text is one line.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.split(" at line ").next().unwrap_or_default();
    format!("{words} (column {})", error.column())
}

/// Returns the rows below a header, each with the line on which it begins. Of two columns of one name, the first counts.
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
    let mut found = Vec::new();
    for (line, row) in rows {
        if row.len() != names.len() {
            let what = format!("{} cells, but the header has {}", row.len(), names.len());
            return Err(fail(line, what, "put a cell with a comma in quotes"));
        }
        let mut fields = Map::new();
        for (name, cell) in names.iter().zip(&row) {
            let cell = || Value::String(cell.trim().to_owned());
            fields.entry(*name).or_insert_with(cell);
        }
        found.push((line, fields));
    }
    if found.is_empty() {
        return Err(fail(1, "there is no row below the header", hint));
    }
    Ok(found)
}
