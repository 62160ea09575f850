//! Property: any bytes are parsed as a message or refused, and a parsed message survives writing and reading unchanged.
#![no_main]

use kd_core::Timestamp;
use kd_core::message::Draft;
use kd_store::frontmatter::{Flaw, format, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (parsed, flaws) = parse(data);
    assert_eq!(parsed.is_none(), flaws.iter().any(Flaw::is_fatal));
    let Some(parsed) = parsed else { return };
    let m = parsed.into_message(1, "sender", Timestamp::UNIX_EPOCH);
    let draft = Draft {
        turn: None,
        from: m.from,
        to: m.to,
        at: m.at,
        status: m.status,
        refs: m.refs,
        provenance: m.provenance,
        extra: m.extra,
        body: m.body.to_string(),
    };
    let text = format(&draft);
    let (again, flaws) = parse(text.as_bytes());
    assert!(flaws.is_empty(), "{flaws:?} in {text:?}");
    let again = again.expect("what we write we read");
    assert_eq!(again.status, draft.status);
    // Readers that split at any `---` see the same header.
    let second = text.match_indices("---").nth(1).map(|(at, _)| at);
    assert_eq!(second.map(|at| &text[at..at + 5]), Some("---\n\n"));
});
