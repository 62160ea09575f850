//! Reads a configuration file: JSON with comments and trailing commas, nothing looser.
//!
//! Input: a path. Output: its value, and the line of every key and list element; or a [`Problem`] with the line of the
//! error.

use crate::beneath::{self, Kind};
use crate::bounds::CONFIG;
use crate::error::Error;
use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use kd_core::config::{KeyPath, Layer, Origin, Problem};
use kd_core::formats::{Newer, SETTINGS_FILE};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// A parsed file.
#[derive(Debug)]
pub(super) struct Parsed {
    /// Its content; `{}` for an empty file.
    pub(super) value: Value,
    /// Lines, from 1.
    pub(super) lines: BTreeMap<KeyPath, u32>,
    /// Duplicate keys.
    pub(super) problems: Vec<Problem>,
}

/// The parser's options.
pub(super) fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
    }
}

/// Reads a file without its byte order mark; `None` if it does not exist.
pub(super) fn read_text(layer: Layer, file: &Path) -> Result<Option<String>, Problem> {
    let fault = |what: String| Problem::new(KeyPath::default(), what).at(origin(layer, file, None));
    let bytes = match beneath::read(file, CONFIG) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        // A path through a file (`x/config.json` where `x` is not a folder) does not exist.
        Err(Error::WrongKind { kind, .. }) if kind == Kind::File.words() => return Ok(None),
        Err(error) => return Err(fault(refusal(&error))),
    };
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(fault("is saved as UTF-16; save it as UTF-8".into()));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(
            text.strip_prefix('\u{feff}')
                .map(str::to_owned)
                .unwrap_or(text),
        )),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = Lines::of_bytes(good).count();
            Err(Problem::new(
                KeyPath::default(),
                "is not UTF-8 here; save the file as UTF-8",
            )
            .at(origin(layer, file, Some(line))))
        }
    }
}

/// Describes why a file cannot be read, without its name.
fn refusal(error: &Error) -> String {
    match error {
        Error::Link { .. } => {
            "is a link; kd does not follow links below `.kd`; put the file itself there".into()
        }
        Error::WrongKind { kind, .. } if *kind == Kind::Folder.words() => {
            "is a folder where the configuration file should be; move it away".into()
        }
        Error::WrongKind { .. } => "is not a regular file; put the configuration into one".into(),
        Error::TooLarge { bytes, bound, .. } => format!(
            "has {bytes} bytes; a configuration has at most {}",
            bound.bytes
        ),
        Error::Io { source, .. } => format!("cannot be read: {source}; check its permissions"),
        other => format!("cannot be read: {other}"),
    }
}

/// Parses a text.
pub(super) fn parse(layer: Layer, file: &Path, text: &str) -> Result<Parsed, Problem> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options())
        .map_err(|error| parse_problem(layer, file, text, &error))?;
    let mut reading = Reading {
        layer,
        file,
        starts: Lines::of_bytes(text.as_bytes()),
        out: Parsed {
            value: Value::Object(Map::new()),
            lines: BTreeMap::new(),
            problems: Vec::new(),
        },
    };
    if let Some(root) = &parsed.value {
        reading.out.value = reading.value(&KeyPath::default(), root)?;
    }
    // Checked before everything else, because a later version may have other keys.
    let path = KeyPath::new(["version"]);
    let stated = reading.out.value.get("version").and_then(Value::as_u64);
    if let Err(newer) = SETTINGS_FILE.check(stated) {
        let line = reading.out.lines.get(&path).copied();
        let what = format!("is {newer}; {}", Newer::HINT);
        return Err(Problem::new(path, what).at(origin(layer, file, line)));
    }
    Ok(reading.out)
}

/// Returns an error if the text is in a newer version of the format.
pub(super) fn check_version(layer: Layer, file: &Path, text: &str) -> Result<(), Problem> {
    match parse(layer, file, text) {
        Err(problem) if problem.path == KeyPath::new(["version"]) => Err(problem),
        _ => Ok(()),
    }
}

/// Builds the origin of a position in a file.
pub(super) fn origin(layer: Layer, file: &Path, line: Option<u32>) -> Origin {
    Origin {
        layer,
        source: file.display().to_string(),
        line,
    }
}

/// Describes a parse error for the user.
pub(super) fn parse_problem(layer: Layer, file: &Path, text: &str, error: &ParseError) -> Problem {
    let at_end = text
        .get(error.range().start..)
        .is_none_or(|rest| rest.trim().is_empty());
    let what = match error.kind() {
        ParseErrorKind::UnterminatedArray
        | ParseErrorKind::UnterminatedObject
        | ParseErrorKind::UnterminatedCommentBlock => {
            "unexpected end of file: something opened in this line is not closed".to_owned()
        }
        _ if at_end => "unexpected end of file".to_owned(),
        kind => format!(
            "is not valid JSON here (column {}): {}; only comments and trailing commas are allowed as well",
            error.column_display(),
            lower_first(&kind.to_string())
        ),
    };
    let line = u32::try_from(error.line_display()).unwrap_or(u32::MAX);
    Problem::new(KeyPath::default(), what).at(origin(layer, file, Some(line)))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}

struct Reading<'a> {
    layer: Layer,
    file: &'a Path,
    starts: Lines,
    out: Parsed,
}

impl Reading<'_> {
    fn value(&mut self, path: &KeyPath, value: &ast::Value<'_>) -> Result<Value, Problem> {
        let line = self.starts.line(value.range().start);
        self.out.lines.entry(path.clone()).or_insert(line);
        Ok(match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::BooleanLit(truth) => Value::Bool(truth.value),
            ast::Value::StringLit(text) => Value::String(text.value.to_string()),
            ast::Value::NumberLit(number) => {
                number.value.parse().map(Value::Number).map_err(|_| {
                    let shown: String = number.value.chars().take(40).collect();
                    self.fault(
                        path,
                        line,
                        format!("is not a number that JSON knows: {shown}"),
                    )
                })?
            }
            ast::Value::Array(list) => {
                let mut items = Vec::with_capacity(list.elements.len());
                for (at, item) in list.elements.iter().enumerate() {
                    items.push(self.value(&path.join(at.to_string()), item)?);
                }
                Value::Array(items)
            }
            ast::Value::Object(object) => {
                let mut fields = Map::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    let below = path.join(name);
                    let line = self.starts.line(property.range().start);
                    if fields.contains_key(name) {
                        let first = self.out.lines.get(&below).copied().unwrap_or(line);
                        let problem = self.fault(
                            &below,
                            line,
                            format!("is set twice; the first is in line {first}"),
                        );
                        self.out.problems.push(problem);
                        continue;
                    }
                    self.out.lines.insert(below.clone(), line);
                    let value = self.value(&below, &property.value)?;
                    fields.insert(name.to_owned(), value);
                }
                Value::Object(fields)
            }
        })
    }

    fn fault(&self, path: &KeyPath, line: u32, what: String) -> Problem {
        Problem::new(path.clone(), what).at(origin(self.layer, self.file, Some(line)))
    }
}

/// The offsets at which lines start.
struct Lines(Vec<usize>);

impl Lines {
    fn of_bytes(bytes: &[u8]) -> Self {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Self(
            std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
        )
    }

    fn line(&self, offset: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }

    fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}
