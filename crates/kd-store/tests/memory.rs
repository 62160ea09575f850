//! Memory across questions is changed by several processes.
#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use kd_core::ThreadId;
use kd_core::memory::Session;
use kd_store::{Layout, memory};

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::find_or_create(dir.path(), &|_| None)
        .unwrap()
        .layout;
    let add = &|id: String| {
        let session = Session {
            thread: ThreadId(id),
            question: "Which?".into(),
            answer: "This.".into(),
            message: None,
        };
        memory::update(&layout, |memory| memory.remember(session)).unwrap();
    };
    std::thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || (0..5).for_each(|n| add(format!("{writer}-{n}"))));
        }
    });
    assert_eq!(memory::read(&layout).unwrap().sessions.len(), 40);
}
