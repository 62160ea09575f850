//! A thread as one document.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::{draft, thread};
use kd_core::message::{Address, Draft, Provenance, Status};
use kd_store::export::{json, markdown};

#[test]
fn a_thread_becomes_one_markdown_document() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["claude", "codex"]);
    thread
        .append(&Draft {
            to: Address::parse("claude, codex"),
            ..draft("king", "A or B?")
        })
        .unwrap();
    thread
        .append(&Draft {
            to: Address::King,
            status: Some(Status::Interrupted),
            provenance: Provenance {
                model: Some("m[1]\u{7}".into()),
                ..Provenance::default()
            },
            ..draft("claude", "```rust\nfn a() {")
        })
        .unwrap();
    let all = thread.messages().unwrap().messages;
    assert_eq!(
        markdown(thread.meta(), &all),
        format!(
            "# A or B?\n\n- thread: {}\n- opened: {}\n- members: king, claude, codex\n- messages: 2\n\n---\n\n## 1 · king → claude, codex\n\n*2026-11-21 07:57:55 UTC*\n\nA or B?\n\n---\n\n## 2 · claude · interrupted\n\n*2026-11-21 07:57:55 UTC · m\\[1\\]*\n\n```rust\nfn a() {{\n```\n",
            thread.id(),
            thread.meta().created_at.as_deref().unwrap(),
        )
    );
}

#[test]
fn the_json_form_holds_everything_and_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    thread.append(&draft("a", "x\ny")).unwrap();
    let all = thread.messages().unwrap().messages;
    let value = json(thread.meta(), &all);
    assert_eq!(value["v"], 1);
    assert_eq!(value["thread"]["id"], thread.id().0);
    let back: Vec<kd_core::Message> = serde_json::from_value(value["messages"].clone()).unwrap();
    assert_eq!(back, all);
}
