//! Formats names and values for messages: quoted, shortened, and never a secret.

use serde_json::Value;

/// Formats a text for a terminal: quoted, shortened, and without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || is_invisible(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns whether a character reverses or hides the text around it.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Returns whether a text looks like a key rather than a word.
pub(crate) fn looks_secret(text: &str) -> bool {
    const STARTS: &[&str] = &[
        "sk-", "sk_", "gsk_", "xai-", "hf_", "ghp_", "aiza", "pk-", "key-",
    ];
    let lower = text.to_ascii_lowercase();
    let digits = text.chars().filter(char::is_ascii_digit).count();
    STARTS.iter().any(|start| lower.starts_with(start))
        || (text.len() >= 24 && digits >= 4 && text.chars().any(|c| c.is_ascii_lowercase()))
}

/// Formats a text for a message: quoted, shortened, and hidden if it may be a secret.
pub(crate) fn shown(text: &str) -> String {
    if looks_secret(text) {
        return "a text that may be a secret (not shown)".into();
    }
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    quoted(&short)
}

/// Describes a value for "must be …, not …". Texts are included only if they cannot be long or secret.
pub(super) fn got(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.is_empty() => "an empty text".into(),
        Value::String(text) if text.len() <= 40 => shown(text),
        Value::String(_) => "a text".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}
