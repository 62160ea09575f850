//! JSON for programs and people.

use serde::Serialize;
use std::io;

/// Serializes JSON so that it is safe on a terminal: escapes control, bidi and invisible characters.
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
