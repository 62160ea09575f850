//! JSON files in the format shared with kingdom-cli: two spaces, sorted keys, ASCII only, a final newline. Written
//! through a temporary file and a rename, so that readers never see a partial one.

use crate::beneath::{self, Folder};
use crate::bounds::{Bound, STATE};
use crate::error::Error;
use kd_core::formats::{self, Format};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Reads a JSON file of at most one MiB; `None` if it does not exist.
///
/// # Errors
/// Those of [`read_bounded`].
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    read_bounded(path, STATE)
}

/// Reads a JSON file; `None` if it does not exist.
///
/// # Errors
/// If the file exceeds the bound, cannot be read, or is not JSON of the expected shape.
pub fn read_bounded<T: DeserializeOwned>(path: &Path, bound: Bound) -> Result<Option<T>, Error> {
    match beneath::read(path, bound)? {
        Some(bytes) => parse(&bytes, || path.to_path_buf()).map(Some),
        None => Ok(None),
    }
}

/// Like [`read_bounded`], in an open folder.
pub(crate) fn read_in<T: DeserializeOwned>(
    folder: &Folder,
    name: &str,
    bound: Bound,
) -> Result<Option<T>, Error> {
    match folder.read(name, bound)? {
        Some(bytes) => parse(&bytes, || folder.path().join(name)).map(Some),
        None => Ok(None),
    }
}

/// Writes a JSON file atomically: readers see either the old text or the new one.
///
/// # Errors
/// If the folder does not exist, or the file cannot be written. The old text stays then.
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let (folder, name) = Folder::of_file(path)?;
    folder.replace(name, text_of(value, path)?.as_bytes())
}

/// Like [`write()`], in an open folder. Writes nothing that would be too large to be read again: a file that came with
/// the folder can grow when it is reformatted.
pub(crate) fn write_in<T: Serialize>(
    folder: &Folder,
    name: &str,
    value: &T,
    bound: Bound,
) -> Result<(), Error> {
    let path = folder.path().join(name);
    let text = text_of(value, &path)?;
    let bytes = text.len() as u64;
    match bytes > bound.bytes {
        true => Err(Error::TooLarge { path, bytes, bound }),
        false => folder.replace(name, text.as_bytes()),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8], path: impl Fn() -> PathBuf) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|source| Error::Json {
        path: path(),
        source,
    })
}

/// Rejects the bytes of a JSON file that states a newer version in a field. Bytes that are not a JSON object state
/// none.
pub(crate) fn check_version(
    bytes: &[u8],
    format: &'static Format,
    field: &str,
    path: impl FnOnce() -> PathBuf,
) -> Result<(), Error> {
    format
        .check(formats::stated(bytes, field))
        .map_err(|newer| Error::Newer {
            path: path(),
            newer,
        })
}

fn text_of<T: Serialize>(value: &T, path: &Path) -> Result<String, Error> {
    let value = serde_json::to_value(value).map_err(|source| Error::Json {
        path: path.to_path_buf(),
        source,
    })?;
    Ok(to_text(&value))
}

/// Formats a value: two spaces, sorted keys, everything outside ASCII escaped, a final newline.
pub fn to_text(value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, value, 0);
    out.push('\n');
    out
}

fn put(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(map) if map.is_empty() => out.push_str("{}"),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                start_line(out, i, depth + 1);
                put(out, item, depth + 1);
            }
            end_block(out, ']', depth);
        }
        Value::Object(map) => {
            // Sorted here and not by the map: its order depends on a feature that any crate of a build may enable.
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, item)) in keys.into_iter().enumerate() {
                start_line(out, i, depth + 1);
                put_string(out, key);
                out.push_str(": ");
                put(out, item, depth + 1);
            }
            end_block(out, '}', depth);
        }
        Value::String(text) => put_string(out, text),
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

fn start_line(out: &mut String, index: usize, depth: usize) {
    if index > 0 {
        out.push(',');
    }
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn end_block(out: &mut String, close: char, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
    out.push(close);
}

fn put_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    #[test]
    fn text_is_sorted_indented_and_ascii() {
        let value =
            json!({"b": [], "a": {"z": 1, "é😀": "x\u{7f}\n\u{1}\"\\"}, "c": [1, {}], "d": null});
        assert_eq!(
            to_text(&value),
            "{\n  \"a\": {\n    \"z\": 1,\n    \"\\u00e9\\ud83d\\ude00\": \"x\\u007f\\n\\u0001\\\"\\\\\"\n  },\n  \"b\": [],\n  \"c\": [\n    1,\n    {}\n  ],\n  \"d\": null\n}\n"
        );
        assert_eq!(
            serde_json::from_str::<Value>(&to_text(&value)).unwrap(),
            value
        );
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        fs::create_dir(&path).unwrap();
        let error = write(&path, &json!({})).unwrap_err();
        assert_eq!(error.path(), Some(path.as_path()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_file_is_none_and_a_broken_one_says_where() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        assert!(read::<Value>(&path).unwrap().is_none());
        fs::write(&path, "{\"a\": }").unwrap();
        let text = read::<Value>(&path).unwrap_err().to_string();
        assert!(text.contains("line 1 column 7"), "{text}");
    }
}
