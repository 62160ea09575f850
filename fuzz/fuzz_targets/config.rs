//! Property: any value of any setting is read or refused, and what is read passes its own check.
#![no_main]

use kd_core::config::{KeyPath, check, parse_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (String, String)| {
    let (path, text) = input;
    if let Ok(value) = serde_json::from_str(&text) {
        let _ = check(&value);
    }
    if let Ok(path) = path.parse::<KeyPath>() {
        let _ = parse_text(&path, &text);
    }
});
