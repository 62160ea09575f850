//! Property: a stream of server-sent events has the same events wherever it is split.
#![no_main]

use kd_backends::transport::sse::{Event, Splitter};
use libfuzzer_sys::fuzz_target;

fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
    let mut splitter = Splitter::default();
    let mut events = Vec::new();
    for piece in pieces {
        let mut each = |e: Event<'_>| events.push((e.name.to_owned(), e.data.to_owned()));
        splitter.push(piece, &mut each).expect("short enough");
    }
    events
}

fuzz_target!(|data: &[u8]| {
    let whole = events([data]);
    assert_eq!(events(data.chunks(1)), whole);
    let (head, tail) = data.split_at(data.len() / 2);
    assert_eq!(events([head, tail]), whole);
});
