//! Property: any text is read as polls or refused with a line that exists.
#![no_main]

use kd_vote::{read_csv, read_json_lines};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let lines = text.lines().count() + 1;
    if let Err(error) = read_json_lines(text) {
        assert!((1..=lines).contains(&error.line), "{error:?}");
    }
    if let Err(error) = read_csv(text) {
        assert!((1..=lines).contains(&error.line), "{error:?}");
    }
});
