//! Starts the examples, which `cargo test` without a selection builds, and compares what they print.

#![allow(clippy::unwrap_used)] // tests may panic

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a built example: beside the folder of this test's program.
fn built(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile = own.parent().and_then(Path::parent).unwrap();
    let path = profile.join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is not built: run `cargo build --workspace --examples`, or `cargo test` without a selection",
        path.display()
    );
    path
}

/// Runs an example in an empty home, and returns what it prints.
fn printed(name: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let out = Command::new(built(name))
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_council_answers_a_program() {
    let printed = printed("ask");
    let mut lines: Vec<&str> = printed.lines().collect();
    let conclusion = lines.pop();
    // Members answer at the same time, each with the question; the chair repeats the answer that it is shown first.
    lines.sort_unstable();
    assert_eq!(lines, ["ada: Tabs or spaces?", "grace: Tabs or spaces?"]);
    let of = |name: &str| format!("chair: {name}: Tabs or spaces?");
    assert!(
        conclusion.is_some_and(|line| line == of("ada") || line == of("grace")),
        "{printed}"
    );
}

#[test]
fn a_program_answers_for_a_member() {
    assert_eq!(
        printed("custom_backend"),
        "wordy: I was asked in 5 words.\n"
    );
}
