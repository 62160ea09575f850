//! Names of files: as git writes them, and as members and users see them.
//!
//! Git tracks any bytes but NUL as a name. Input: such a name. Output: text for one line of a prompt or a report, which
//! stays different for different names.

use super::one_line;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum characters of a shown name. A longer one is shown without its middle.
pub const NAME_CHARS_MAX: usize = 400;
/// Room for the number of a name that looks like another one.
const NUMBER_CHARS_MAX: usize = 12;
/// Stands for the first of 256 bytes that are not UTF-8. Names that contain these characters are escaped too.
const BYTES: u32 = 0x10_ff00;

/// Returns a path as text. Bytes that are not UTF-8 become characters that [`shown_name`] writes as `\xff`.
pub fn decoded(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    let escape = |out: &mut String, bytes: &[u8]| {
        let chars = bytes.iter().map(|byte| BYTES + u32::from(*byte));
        out.extend(chars.filter_map(char::from_u32));
    };
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte_of(c) {
                Some(_) => escape(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => out.push(c),
            }
        }
        escape(&mut out, chunk.invalid());
    }
    out
}

fn byte_of(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).checked_sub(BYTES)?).ok()
}

/// Returns whether a path names a file, or an entry of the folder with that name.
pub fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns a path as shown to members and users, and as they name it: on one line, without escapes and
/// indistinguishable blank characters, and not longer than [`NAME_CHARS_MAX`].
pub fn shown_name(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    for c in path.chars() {
        match byte_of(c) {
            Some(byte) => name.push_str(&format!("\\x{byte:02x}")),
            None => name.push(c),
        }
    }
    shortened(one_line(&name).replace('\t', " "), NAME_CHARS_MAX)
}

/// Removes the middle of a long name.
fn shortened(name: String, chars_max: usize) -> String {
    let chars = name.chars().count();
    if chars <= chars_max {
        return name;
    }
    let tail = (chars_max - 1) / 2;
    let head = name.chars().take(chars_max - 1 - tail);
    let tail = name.chars().skip(chars - tail);
    head.chain(std::iter::once('…')).chain(tail).collect()
}

/// Returns each path with its shown name. One that looks like another gets a number.
pub(super) fn distinct<'a>(
    paths: impl Iterator<Item = &'a str> + Clone,
) -> BTreeMap<String, String> {
    let own = paths.clone().filter(|path| shown_name(path) == *path);
    let mut names: BTreeMap<String, String> =
        own.map(|path| (path.to_owned(), path.to_owned())).collect();
    let mut taken: BTreeSet<String> = names.keys().cloned().collect();
    // The last number given to each shown name: thousands may look alike.
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    for path in paths {
        if names.contains_key(path) {
            continue;
        }
        let mut shown = shown_name(path);
        if shown.is_empty() {
            shown.push('?');
        }
        let mut name = shown.clone();
        let number = numbers.entry(shown.clone()).or_insert(1);
        while !taken.insert(name.clone()) {
            *number += 1;
            name = numbered(&shown, *number);
        }
        names.insert(path.to_owned(), name);
    }
    names
}

/// Returns the name of the second, third … file that is shown in the same way.
pub(crate) fn numbered(shown: &str, number: u64) -> String {
    let name = shortened(shown.to_owned(), NAME_CHARS_MAX - NUMBER_CHARS_MAX);
    format!("{name} ({number})")
}

/// Unquotes a path as git writes it: quoted and escaped if it has unusual characters.
pub fn unquoted(text: &str) -> String {
    quoted(text).map_or_else(|| text.to_owned(), |(path, _)| path)
}

/// Parses a quoted path; returns it and the text after it.
pub(super) fn quoted(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let bytes = inside.as_bytes();
    let mut path = Vec::new();
    let mut at = 0;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => {
                let escaped = *bytes.get(at)?;
                at += 1;
                path.push(match escaped {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'0'..=b'3' => {
                        let digits = std::str::from_utf8(bytes.get(at - 1..at + 2)?).ok()?;
                        at += 2;
                        u8::from_str_radix(digits, 8).ok()?
                    }
                    other => other,
                });
            }
            other => path.push(other),
        }
    }
    Some((decoded(&path), inside.get(at..)?))
}
