//! The text of a message file: front matter and body.
//!
//! Writing is exact: keys in a fixed order, raw values, one blank line, the body, one newline. Parsing is lenient: it
//! understands files of other versions, editors and people as far as possible, and reports the rest as a [`Flaw`].
//!
//! Values are sanitized on writing, because readers know no quoting and some split at any `---`: line breaks and
//! control characters become spaces, a run of three or more hyphens gets a space after every second one, quotes around
//! a whole value are dropped (readers would drop them), and a value that reads as nothing (empty, `null`, `~`) is left
//! out. In an item of `refs`, `,`, `[` and `]` become `_`. So no value can end the header or add a key to it.

use jiff::Timestamp;
use jiff::civil::DateTime;
use kd_core::message::{Address, Draft, Message, Provenance, Status};
use kd_core::text::Text;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

/// The line that opens and closes the front matter.
const FENCE: &str = "---";

/// Keys with a field of their own; no extra key may use them.
const KNOWN: [&str; 12] = [
    "from",
    "to",
    "timestamp",
    "refs",
    "status",
    "backend",
    "model",
    "model_source",
    "effort",
    "effort_source",
    "cli_version",
    "delivery_id",
];

/// A defect of a file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It does not begin with `---`.
    NoHeader,
    /// No line `---` ends the front matter.
    NoHeaderEnd,
    /// It is not UTF-8; the bad bytes were replaced.
    NotUtf8,
    /// There is no timestamp; the file's own time is used.
    NoTimestamp,
    /// The timestamp cannot be parsed; the file's own time is used.
    BadTimestamp(String),
    /// The status is none of the four words; it is kept among the unknown keys.
    BadStatus(String),
    /// A line of the front matter has no key.
    BadLine(String),
}

impl Flaw {
    /// Returns whether a file with this flaw yields no message.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Flaw::NoHeader | Flaw::NoHeaderEnd)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::NoHeader => f.write_str("it does not begin with a line `---`"),
            Flaw::NoHeaderEnd => f.write_str("no line `---` ends its front matter"),
            Flaw::NotUtf8 => f.write_str("it is not UTF-8; bad bytes are shown as �"),
            Flaw::NoTimestamp => {
                f.write_str("it has no timestamp; the file's own time is shown instead")
            }
            Flaw::BadTimestamp(text) => write!(
                f,
                "its timestamp `{text}` cannot be read; the file's own time is shown instead"
            ),
            Flaw::BadStatus(text) => write!(f, "its status `{text}` is not known"),
            Flaw::BadLine(text) => write!(f, "a line of its front matter has no key: `{text}`"),
        }
    }
}

/// A parsed file, before it has a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The sender, if the header names one.
    pub from: Option<String>,
    /// The recipients.
    pub to: Address,
    /// The time when it was finished, if that can be parsed.
    pub at: Option<Timestamp>,
    /// The end of the turn.
    pub status: Option<Status>,
    /// Files it refers to.
    pub refs: Vec<String>,
    /// The way in which it was created.
    pub provenance: Provenance,
    /// Unknown keys.
    pub extra: BTreeMap<String, String>,
    /// The text.
    pub body: Text,
}

impl Parsed {
    /// Builds the message; the file's name and time replace what the header lacks.
    pub fn into_message(self, seq: u32, sender: &str, file_time: Timestamp) -> Message {
        Message {
            seq,
            from: self.from.unwrap_or_else(|| sender.to_owned()),
            to: self.to,
            at: self.at.unwrap_or(file_time),
            status: self.status,
            refs: self.refs,
            provenance: self.provenance,
            extra: self.extra,
            body: self.body,
        }
    }
}

/// Formats the whole text of a message file.
pub fn format(draft: &Draft) -> String {
    let mut out = String::with_capacity(draft.body.len() + 256);
    out.push_str("---\n");
    put(&mut out, "from", &draft.from);
    put(&mut out, "to", &draft.to.to_string());
    put(
        &mut out,
        "timestamp",
        &draft.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    );
    let refs: Vec<String> = draft
        .refs
        .iter()
        .filter_map(|item| safe_item(item))
        .collect();
    if !refs.is_empty() {
        put_raw(&mut out, "refs", &format!("[{}]", refs.join(", ")));
    }
    if let Some(status) = draft.status {
        put(&mut out, "status", status.as_str());
    }
    let p = &draft.provenance;
    for (key, value) in [
        ("backend", &p.backend),
        ("model", &p.model),
        ("model_source", &p.model_source),
        ("effort", &p.effort),
        ("effort_source", &p.effort_source),
        ("cli_version", &p.cli_version),
        ("delivery_id", &p.delivery_id),
    ] {
        if let Some(value) = value {
            put(&mut out, key, value);
        }
    }
    for (key, value) in safe_extra(&draft.extra) {
        put_raw(&mut out, &key, &one_line(value));
    }
    out.push_str("---\n\n");
    push_body(&mut out, &draft.body);
    out.push('\n');
    out
}

/// Parses a message file. Non-fatal flaws are returned with the result.
pub fn parse(bytes: &[u8]) -> (Option<Parsed>, Vec<Flaw>) {
    let mut flaws = Vec::new();
    let text = String::from_utf8_lossy(bytes);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        flaws.push(Flaw::NotUtf8);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let Some((header, rest)) = split(text, &mut flaws) else {
        return (None, flaws);
    };
    let mut fields = fields(header, &mut flaws);
    let mut take = |key: &str| fields.remove(key).and_then(Field::into_scalar);

    let from = take("from");
    let to = Address::parse(take("to").as_deref().unwrap_or_default());
    let provenance = Provenance {
        backend: take("backend"),
        model: take("model"),
        model_source: take("model_source"),
        effort: take("effort"),
        effort_source: take("effort_source"),
        cli_version: take("cli_version"),
        delivery_id: take("delivery_id"),
    };
    let at = match take("timestamp") {
        None => {
            flaws.push(Flaw::NoTimestamp);
            None
        }
        Some(text) => {
            let at = timestamp(&text);
            if at.is_none() {
                flaws.push(Flaw::BadTimestamp(text));
            }
            at
        }
    };
    let status_word = take("status");
    let status = status_word.as_deref().and_then(Status::from_word);
    let refs = fields
        .remove("refs")
        .map(Field::into_list)
        .unwrap_or_default();
    let mut extra: BTreeMap<String, String> = fields
        .into_iter()
        .map(|(key, field)| (key, field.into_raw()))
        .collect();
    if let (None, Some(word)) = (status, status_word) {
        extra.insert("status".into(), word.clone());
        flaws.push(Flaw::BadStatus(word));
    }
    let parsed = Parsed {
        from,
        to,
        at,
        status,
        refs,
        provenance,
        extra,
        body: body(rest),
    };
    (Some(parsed), flaws)
}

/// Returns whether a text, or its beginning, contains a complete front matter.
pub(crate) fn has_header(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    header(&text).is_some()
}

/// Returns the text between the fences.
pub(crate) fn header(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    split(text, &mut Vec::new()).map(|(header, _)| header)
}

/// Parses a timestamp: RFC 3339 with any zone and fraction; without a zone it is UTC.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    text.parse::<Timestamp>().ok().or_else(|| {
        let civil = text.parse::<DateTime>().ok()?;
        civil
            .to_zoned(jiff::tz::TimeZone::UTC)
            .ok()
            .map(|z| z.timestamp())
    })
}

/// Splits a text into the lines between the fences and the rest.
fn split<'t>(text: &'t str, flaws: &mut Vec<Flaw>) -> Option<(&'t str, &'t str)> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first.trim_end() != FENCE {
        flaws.push(Flaw::NoHeader);
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    flaws.push(Flaw::NoHeaderEnd);
    None
}

/// A key's value in the header.
#[derive(Debug, Default)]
struct Field {
    /// The text after the colon.
    value: String,
    /// The `- item` lines below it.
    items: Vec<String>,
}

impl Field {
    fn into_scalar(self) -> Option<String> {
        match unquote(&self.value) {
            "" | "null" | "~" => None,
            text => Some(text.to_owned()),
        }
    }

    fn into_list(self) -> Vec<String> {
        if self.value.is_empty() {
            return self.items;
        }
        let inner = self
            .value
            .strip_prefix('[')
            .and_then(|v| v.strip_suffix(']'))
            .unwrap_or(&self.value);
        inner
            .split(',')
            .map(|item| unquote(item).to_owned())
            .filter(|item| !item.is_empty())
            .collect()
    }

    fn into_raw(self) -> String {
        if self.items.is_empty() {
            self.value
        } else {
            format!("[{}]", self.items.join(", "))
        }
    }
}

fn fields(header: &str, flaws: &mut Vec<Flaw>) -> BTreeMap<String, Field> {
    let mut fields: BTreeMap<String, Field> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in header.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let open = last
            .as_ref()
            .and_then(|key| fields.get_mut(key))
            .filter(|f| f.value.is_empty());
        if let (Some(field), Some(item)) = (open, list_item(trimmed)) {
            field.items.push(unquote(item).to_owned());
            continue;
        }
        match trimmed.split_once(':') {
            Some((key, value)) if !key.trim().is_empty() => {
                let key = key.trim().to_owned();
                let field = Field {
                    value: value.trim().to_owned(),
                    items: Vec::new(),
                };
                fields.insert(key.clone(), field);
                last = Some(key);
            }
            _ => flaws.push(Flaw::BadLine(trimmed.chars().take(80).collect())),
        }
    }
    fields
}

fn list_item(trimmed: &str) -> Option<&str> {
    trimmed.strip_prefix("- ").map(str::trim)
}

fn unquote(text: &str) -> &str {
    let text = text.trim();
    for quote in ['"', '\''] {
        if text.len() >= 2
            && let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote))
        {
            return inner;
        }
    }
    text
}

/// Returns the body as readers see it: without the one blank line after the header and without trailing newlines.
fn body(rest: &str) -> Text {
    let rest = match rest.contains("\r\n") {
        true => Cow::Owned(rest.replace("\r\n", "\n")),
        false => Cow::Borrowed(rest),
    };
    let text = rest.strip_prefix('\n').unwrap_or(&rest);
    text.trim_end_matches('\n').into()
}

fn put(out: &mut String, key: &str, value: &str) {
    let line = one_line(value);
    let value = bare(&line);
    if !matches!(value, "" | "null" | "~") {
        put_raw(out, key, value);
    }
}

fn put_raw(out: &mut String, key: &str, value: &str) {
    let space = if value.is_empty() { "" } else { " " };
    let _ = writeln!(out, "{key}:{space}{value}");
}

/// Strips all quotes around a value.
fn bare(mut value: &str) -> &str {
    loop {
        let inner = unquote(value);
        if inner.len() == value.len() {
            return value;
        }
        value = inner;
    }
}

/// Returns a value on one line, without `---`, trimmed.
fn one_line(value: &str) -> String {
    let mut line = String::with_capacity(value.len());
    let mut hyphens = 0;
    for c in value.chars() {
        let c = if is_break(c) || c.is_control() {
            ' '
        } else {
            c
        };
        if c == '-' {
            if hyphens == 2 {
                line.push(' ');
                hyphens = 0;
            }
            hyphens += 1;
        } else {
            hyphens = 0;
        }
        line.push(c);
    }
    line.trim().to_owned()
}

/// Sanitizes an item of an inline list, which is split at every comma.
fn safe_item(item: &str) -> Option<String> {
    let item: String = one_line(item)
        .chars()
        .map(|c| if matches!(c, ',' | '[' | ']') { '_' } else { c })
        .collect();
    let item = bare(&item);
    (!item.is_empty()).then(|| item.to_owned())
}

/// Sanitizes additional keys for a header, in order. Two that become equal stay separate.
fn safe_extra(extra: &BTreeMap<String, String>) -> BTreeMap<String, &str> {
    let mut safe = BTreeMap::new();
    for (key, value) in extra {
        let mut key = safe_key(key);
        while safe.contains_key(&key) {
            key.push('_');
        }
        safe.insert(key, value.as_str());
    }
    safe
}

/// Sanitizes a key, so that it cannot be read as another line, a known key or a list item.
fn safe_key(key: &str) -> String {
    let key: String = key
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') {
                c
            } else {
                '_'
            }
        })
        .collect();
    if key.is_empty() || KNOWN.contains(&key.as_str()) {
        format!("x_{key}")
    } else {
        key
    }
}

/// Appends the body in the agreed format: lines split at every Unicode line break, their ends trimmed, joined by `\n`,
/// blank lines kept at the start and dropped at the end.
fn push_body(out: &mut String, body: &str) {
    let start = out.len();
    let mut rest = body;
    while let Some(at) = rest.find(is_break) {
        out.push_str(trim_line(&rest[..at]));
        out.push('\n');
        let two = rest[at..].starts_with("\r\n");
        let width = rest[at..].chars().next().map_or(0, char::len_utf8);
        rest = &rest[at + if two { 2 } else { width }..];
    }
    out.push_str(trim_line(rest));
    let kept = out[start..].trim_end_matches('\n').len();
    out.truncate(start + kept);
}

fn trim_line(line: &str) -> &str {
    line.trim_end_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// Returns whether a character ends a line in Unicode, and for kingdom-cli.
fn is_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}
