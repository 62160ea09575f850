//! Property: splitting a reply into different pieces does not change the output, and the visible text contains nothing
//! new.
#![no_main]

use kd_core::duet::splitter::Splitter;
use libfuzzer_sys::fuzz_target;

fn split<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, Vec<String>) {
    let mut splitter = Splitter::default();
    let mut spoken: String = pieces.into_iter().map(|piece| splitter.push(piece)).collect();
    let (rest, council) = splitter.finish();
    spoken.push_str(&rest);
    (spoken, council)
}

fuzz_target!(|input: (Vec<u8>, String)| {
    let (cuts, reply) = input;
    let whole = split([reply.as_str()]);
    let mut ends: Vec<usize> = cuts
        .iter()
        .map(|cut| reply.floor_char_boundary(usize::from(*cut).min(reply.len())))
        .chain([0, reply.len()])
        .collect();
    ends.sort_unstable();
    let cut = split(ends.windows(2).map(|w| &reply[w[0]..w[1]]));
    assert_eq!(cut, whole);
    // The visible text is the reply with parts left out, in order.
    let mut rest = reply.chars();
    assert!(whole.0.chars().all(|c| rest.any(|r| r == c)));
});
