//! Property: a text that members could mistake for a history is parsed or refused without a panic.
#![no_main]

use kd_core::prompt::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = parse(text, ["ada", "bob"]);
});
