//! Property: what is cleaned of terminal escapes has none, cleaning changes nothing a second time, and secrets are
//! masked in pieces as they are in the whole.
#![no_main]

use kd_core::clean::{Cleaner, clean_text};
use kd_core::secrets::{Masker, Secrets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let clean = clean_text(text).into_owned();
    assert!(!clean.contains('\u{1b}'));
    assert_eq!(clean_text(&clean), clean);
    let mut cleaner = Cleaner::default();
    let pieces: String = text
        .chars()
        .map(|c| cleaner.clean(c.encode_utf8(&mut [0; 4])).into_owned())
        .collect();
    assert!(!pieces.contains('\u{1b}'));

    let secrets = Secrets::default();
    let mut masker = Masker::default();
    let mut masked = String::new();
    for c in text.chars() {
        masked += &masker.push(&secrets, c.encode_utf8(&mut [0; 4]));
    }
    masked += &masker.end(&secrets);
    assert_eq!(masked, secrets.mask(text).0);
});
