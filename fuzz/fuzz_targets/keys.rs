//! Property: what a terminal sends is decoded alike wherever it is cut.
#![no_main]

use kd_tui::keys::Decoder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut whole = Decoder::default();
    let mut all = whole.feed(data);
    all.extend(whole.flush());
    let mut cut = Decoder::default();
    let mut each: Vec<_> = data.iter().flat_map(|b| cut.feed(&[*b])).collect();
    each.extend(cut.flush());
    assert_eq!(all, each);
});
