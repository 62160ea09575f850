//! Paths in the configuration: `council.timeout`, `agents."gpt-5.1".model`.
//!
//! Input: text written by a user. Output: segments that match object keys, and the same text again.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A path of object keys. The empty path is the whole configuration.
///
/// In text form the segments are joined by dots; a segment with characters other than letters, digits, `_`, `-` and `$`
/// is in double quotes with JSON escapes. A list index is a segment of digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyPath(Vec<String>);

/// The reason why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadKeyPath(String);

impl KeyPath {
    /// Creates a path from segments.
    pub fn new<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> Self {
        Self(segments.into_iter().map(Into::into).collect())
    }

    /// Returns the segments, unquoted.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// Appends a segment.
    pub fn join(&self, segment: impl Into<String>) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment.into());
        Self(segments)
    }

    /// Returns the parent path; `None` for the empty path.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// Returns whether this path is equal to or below another.
    pub fn is_within(&self, above: &Self) -> bool {
        self.0.starts_with(&above.0)
    }

    /// Returns the value at this path, if any.
    pub fn find<'v>(&self, value: &'v serde_json::Value) -> Option<&'v serde_json::Value> {
        self.0.iter().try_fold(value, |value, segment| match value {
            serde_json::Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            other => other.get(segment),
        })
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
            if !segment.is_empty() && segment.chars().all(plain) {
                f.write_str(segment)?;
            } else {
                f.write_str(&super::shown::quoted(segment))?;
            }
        }
        Ok(())
    }
}

impl FromStr for KeyPath {
    type Err = BadKeyPath;

    fn from_str(text: &str) -> Result<Self, BadKeyPath> {
        let mut segments = Vec::new();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Ok(Self::default());
        }
        loop {
            if rest.starts_with('"') {
                let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                let Some(Ok(segment)) = stream.next() else {
                    return Err(BadKeyPath(format!(
                        "the quotes in `{}` do not close",
                        text.escape_debug()
                    )));
                };
                rest = &rest[stream.byte_offset()..];
                segments.push(segment);
            } else {
                let end = rest.find(['.', '"']).unwrap_or(rest.len());
                segments.push(rest[..end].to_owned());
                rest = &rest[end..];
                if end == 0 {
                    return Err(BadKeyPath(format!(
                        "`{}` has an empty part; write it like council.timeout",
                        text.escape_debug()
                    )));
                }
            }
            match rest.strip_prefix('.') {
                Some(more) => rest = more,
                None if rest.is_empty() => return Ok(Self(segments)),
                None => {
                    return Err(BadKeyPath(format!(
                        "a dot is missing in `{}`",
                        text.escape_debug()
                    )));
                }
            }
        }
    }
}

impl TryFrom<String> for KeyPath {
    type Error = BadKeyPath;
    fn try_from(text: String) -> Result<Self, BadKeyPath> {
        text.parse()
    }
}

impl From<KeyPath> for String {
    fn from(path: KeyPath) -> String {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_being_written_down() {
        for segments in [
            vec![],
            vec!["council", "timeout"],
            vec!["agents", "gpt-5.1", "model"],
            vec!["providers", "x", "prices", "org/model:free \"q\"", "input"],
            vec!["", "\u{1b}[2J", "模型"],
        ] {
            let path = KeyPath::new(segments.clone());
            assert_eq!(path.to_string().parse(), Ok(path), "{segments:?}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for bad in ["a..b", ".a", "a.", "a.\"b", "\"a\"b", "a\"b\""] {
            assert!(bad.parse::<KeyPath>().is_err(), "{bad}");
        }
    }
}
