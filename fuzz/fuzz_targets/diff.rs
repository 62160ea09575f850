//! Property: any text is read as a unified diff or refused, and no hunk has more lines than the text.
#![no_main]

use kd_core::diff::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(mut diff) = read(text) {
        let lines: usize = diff.files.iter().flat_map(|f| &f.hunks).map(|h| h.lines.len()).sum();
        assert!(lines <= text.lines().count());
        diff.clean();
    }
});
