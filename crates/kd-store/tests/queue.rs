//! What the king said survives whoever kept it, and is taken over once.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

mod common;

use common::thread;
use kd_core::{Address, Delivery};
use kd_store::{Queue, Thread};
use std::fs;

fn delivery(id: &str, asked: Option<&[&str]>) -> Delivery {
    let seat = |name: &&str| kd_core::SeatName::new(*name).unwrap();
    Delivery {
        id: id.into(),
        body: format!("words of {id}\nand more"),
        to: Address::All,
        asked: asked.map(|names| names.iter().map(seat).collect()),
    }
}

fn files(thread: &Thread) -> usize {
    let names = fs::read_dir(thread.path()).unwrap();
    names
        .filter(|e| {
            let name = e.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with(".kd-queue-")
        })
        .count()
}

#[test]
fn a_dead_session_leaves_its_words_to_exactly_one_other() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["claude"]);
    let (mut first, left) = Queue::open(&thread).unwrap();
    assert!(left.is_empty());
    assert_eq!(files(&thread), 0, "nothing to keep, no file");
    first.keep(&delivery("a", None)).unwrap();
    first.keep(&delivery("b", None)).unwrap();
    first.keep(&delivery("c", None)).unwrap();
    first.keep(&delivery("a", Some(&["claude"]))).unwrap();
    first.forget("b").unwrap();

    let (living, left) = Queue::open(&thread).unwrap();
    assert!(left.is_empty(), "its owner lives");
    drop(first);
    let (mut second, left) = Queue::open(&thread).unwrap();
    let wanted = [delivery("a", Some(&["claude"])), delivery("c", None)];
    assert_eq!(left, wanted);
    let (_third, none) = Queue::open(&thread).unwrap();
    assert!(none.is_empty(), "taken over once");
    assert_eq!(files(&thread), 1);

    second.forget("a").unwrap();
    second.forget("c").unwrap();
    assert_eq!(files(&thread), 0);
    drop(living);
}

#[test]
fn a_torn_line_and_a_strange_one_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["claude"]);
    let whole = serde_json::json!({"keep": delivery("a", None)});
    let text = format!("{{\"later\": 1}}\n{whole}\n{{\"forget\": \"a");
    fs::write(thread.path().join(".kd-queue-1-0.jsonl"), text).unwrap();
    let (_queue, left) = Queue::open(&thread).unwrap();
    assert_eq!(left, [delivery("a", None)]);
}
