//! Parses lines of foreign programs as JSON, and turns their values into single lines of text without control
//! characters.

use kd_core::Delta;
use serde_json::Value;

/// Number of broken lines reported individually; more would flood the user.
const BROKEN_NAMED_MAX: usize = 10;
/// Maximum length of a quoted line, in characters.
const QUOTE_MAX: usize = 160;

/// Parses lines, and reports those it cannot parse.
#[derive(Debug, Default)]
pub(super) struct Lines {
    broken: usize,
    /// The last line that was prose, not JSON: some programs explain there why they stop.
    pub(super) prose: Option<String>,
}

impl Lines {
    /// Returns the JSON object on this line; `None` for an empty line and for a broken one, which adds a notice.
    pub(super) fn object(&mut self, line: &[u8], out: &mut Vec<Delta>) -> Option<Value> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        if let Some(value) = read(line).filter(Value::is_object) {
            return Some(value);
        }
        self.broken += 1;
        let text = if line.starts_with(b"{") || line.starts_with(b"[") {
            format!("the agent printed a broken line of {} bytes", line.len())
        } else {
            let said = one_line(&String::from_utf8_lossy(line), QUOTE_MAX);
            self.prose = Some(said.clone());
            format!("the agent printed a line that is not JSON: {said}")
        };
        if self.broken < BROKEN_NAMED_MAX {
            out.push(notice(text));
        } else if self.broken == BROKEN_NAMED_MAX {
            out.push(notice(format!("{text}; further such lines are skipped")));
        }
        None
    }
}

/// Builds a notice.
pub(super) fn notice(text: impl Into<String>) -> Delta {
    Delta::Notice { text: text.into() }
}

/// Parses the JSON value of a line. Invalid UTF-8 and lone surrogates, which JavaScript programs can print, become
/// replacement characters, so they cost one character and not the whole event.
pub(super) fn read(line: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(line) {
        return Some(value);
    }
    let text = String::from_utf8_lossy(line);
    serde_json::from_str(&text)
        .or_else(|_| serde_json::from_str(&whole_surrogates(&text)))
        .ok()
}

/// Replaces escapes of lone surrogates in a JSON text by `\ufffd`.
fn whole_surrogates(text: &str) -> String {
    let unit = |at: usize| -> Option<u16> {
        let escape = text.get(at..at + 6)?;
        let digits = escape.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut fixed = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if !rest.starts_with('\\') {
            let next = rest.find('\\').map_or(text.len(), |n| at + n);
            fixed.push_str(&text[at..next]);
            at = next;
            continue;
        }
        let length = match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                fixed.push_str("\\ufffd");
                at += 6;
                continue;
            }
            Some(_) => 6,
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        fixed.push_str(&text[at..at + length]);
        at += length;
    }
    fixed
}

/// Returns a string member, or the empty string.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Returns a string member that is not empty.
pub(super) fn some(value: &Value, key: &str) -> Option<String> {
    value[key]
        .as_str()
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
}

/// Returns an integer member, or zero.
pub(super) fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

/// Returns a text as one line of at most `chars_max` characters: control characters and line breaks become spaces,
/// terminal escapes are removed.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    let mut escape = false;
    for c in text.chars() {
        match c {
            '\u{1b}' => escape = true,
            // An escape sequence ends with its first letter (or anything that is not a parameter).
            _ if escape => escape = matches!(c, '[' | ']' | ';' | '?' | '0'..='9'),
            _ if length == chars_max => {
                line.push('…');
                break;
            }
            c if c.is_control() || c.is_whitespace() => {
                if !line.is_empty() && !line.ends_with(' ') {
                    line.push(' ');
                    length += 1;
                }
            }
            c => {
                line.push(c);
                length += 1;
            }
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Describes a tool's input in one line: its most telling member, or all of it.
pub(super) fn detail(input: &Value) -> String {
    const TELLING: [&str; 12] = [
        "command",
        "file_path",
        "filePath",
        "path",
        "pattern",
        "query",
        "url",
        "cmd",
        "prompt",
        "name",
        "tool",
        "description",
    ];
    let telling = TELLING.iter().find_map(|key| match &input[*key] {
        Value::String(said) if !said.is_empty() => Some(said.clone()),
        Value::Array(words) if !words.is_empty() => Some(
            words
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(" "),
        ),
        _ => None,
    });
    let all = || match input {
        Value::Null => String::new(),
        Value::String(said) => said.clone(),
        Value::Object(members) if members.is_empty() => String::new(),
        other => other.to_string(),
    };
    one_line(&telling.unwrap_or_else(all), QUOTE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn half_pairs_cost_a_character_and_not_the_event() {
        let read = |line: &str| read(line.as_bytes()).map(|v| v["t"].as_str().unwrap().to_owned());
        assert_eq!(read(r#"{"t":"a\ud83db"}"#).unwrap(), "a\u{fffd}b");
        assert_eq!(
            read(r#"{"t":"\udc00\ud83d\ude00\\ud83d"}"#).unwrap(),
            "\u{fffd}😀\\ud83d"
        );
        assert_eq!(read(r#"{"t":"\ud83d"#), None);
        assert_eq!(super::read(b"{\"t\":\"\xff\"}").unwrap()["t"], "\u{fffd}");
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(
            one_line(" a\n\tb \u{1b}[31mred\u{1b}[0m\u{7} ", 99),
            "a b red"
        );
        assert_eq!(one_line("abcdef", 3), "abc…");
    }

    #[test]
    fn the_telling_member_is_shown() {
        assert_eq!(
            detail(&json!({"description": "d", "command": "ls -l\nrm"})),
            "ls -l rm"
        );
        assert_eq!(detail(&json!({"command": ["ls", "-l"]})), "ls -l");
        assert_eq!(detail(&json!({})), "");
        assert_eq!(detail(&json!({"x": 1})), r#"{"x":1}"#);
    }

    #[test]
    fn broken_lines_are_named_but_never_without_end() {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        for _ in 0..1000 {
            assert!(lines.object(b"{\"half\":", &mut out).is_none());
        }
        assert_eq!(out.len(), BROKEN_NAMED_MAX);
        assert!(lines.object(b"", &mut out).is_none());
        assert_eq!(out.len(), BROKEN_NAMED_MAX);
        assert_eq!(lines.prose, None);
        lines.object(b"You have hit your usage limit", &mut out);
        assert_eq!(
            lines.prose.as_deref(),
            Some("You have hit your usage limit")
        );
    }
}
