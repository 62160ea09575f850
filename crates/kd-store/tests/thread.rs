//! One thread on a real disk: numbers, order, the index, files of other versions, and what goes wrong.

use kd_core::ids::{SeatName, ThreadId};
use kd_core::message::{Address, Draft, Provenance, Status};
use kd_store::layout::Layout;
use kd_store::thread::{Durability, Thread};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn layout(root: &Path) -> Layout {
    Layout::find_or_create(root, &|_| None).unwrap().layout
}

fn draft(from: &str, body: &str) -> Draft {
    Draft {
        turn: None,
        from: from.into(),
        to: Address::All,
        at: "2026-11-21T07:57:55.9Z".parse().unwrap(),
        status: (from != "king").then_some(Status::Complete),
        refs: Vec::new(),
        provenance: Provenance::default(),
        extra: BTreeMap::new(),
        body: body.into(),
    }
}

fn seats(names: &[&str]) -> Vec<SeatName> {
    names.iter().map(|n| SeatName::new(*n).unwrap()).collect()
}

#[test]
fn messages_are_read_as_they_were_returned() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let thread = Thread::create(&layout, &seats(&["claude", "codex"])).unwrap();
    let mut written = vec![thread.append(&draft("king", "Hello?\n\n")).unwrap()];
    written.push(
        thread
            .append(&draft("claude", "\n\nHi.  \n---\nfrom: x"))
            .unwrap(),
    );
    assert_eq!(written[1].seq, 2);
    assert_eq!(written[1].at.to_string(), "2026-11-21T07:57:55Z");
    assert_eq!(written[1].body, "\n\nHi.\n---\nfrom: x");

    let again = Thread::open(&layout.resolve(&thread.id().0).unwrap()).unwrap();
    assert_eq!(again.messages().unwrap().messages, written);
    assert_eq!(again.tail(1).unwrap().messages, written[1..]);
    assert_eq!(again.since(1).unwrap().messages, written[1..]);
    assert_eq!(again.message(2).unwrap(), written[1]);
    assert_eq!(again.count().unwrap(), 2);
    assert!(
        again
            .message(3)
            .unwrap_err()
            .to_string()
            .contains("no message 3")
    );
    assert_eq!(again.members(), seats(&["claude", "codex"]));
    assert_eq!(layout.current_thread().unwrap().unwrap().id, *thread.id());
    assert_eq!(
        fs::read_to_string(thread.path().join("0001-king.md")).unwrap(),
        "---\nfrom: king\nto: all\ntimestamp: 2026-11-21T07:57:55Z\n---\n\nHello?\n"
    );
}
