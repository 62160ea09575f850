//! JSON for programs and people.

use kd_core::build_log::inert_json;
use serde::Serialize;
use std::io;

/// Serializes JSON so that it is safe on a terminal and in the log of a build: escapes control, bidi and invisible
/// characters, and marks of commands.
///
/// # Errors
/// If the value cannot be written as JSON.
pub fn text(value: &impl Serialize, pretty: bool) -> io::Result<String> {
    let json = if pretty {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    }
    .map_err(io::Error::other)?;
    let raw =
        |c: char| c != '\n' && (kd_core::display::is_unsafe(c) || kd_core::clean::is_invisible(c));
    let json = inert_json(json);
    if !json.contains(raw) {
        return Ok(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    let mut units = [0; 2];
    for c in json.chars() {
        if raw(c) {
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    Ok(safe)
}
