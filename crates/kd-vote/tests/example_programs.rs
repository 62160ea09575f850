//! Starts the examples, which `cargo test` without a selection builds, and compares what they print.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test, which starts programs"
)]

use std::path::Path;
use std::process::Command;

/// Runs a built example, beside the folder of this test's program, and returns what it prints.
fn printed(name: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let profile = own.parent().and_then(Path::parent).unwrap();
    let path = profile.join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is not built: run `cargo build --workspace --examples`, or `cargo test` without a selection",
        path.display()
    );
    let out = Command::new(path).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_rule_of_a_program_counts() {
    let printed = printed("own_rule");
    // Coffee and water have two approvals each.
    assert!(
        printed.ends_with("tie broken by lot: drawn with seed 0\nwinner: coffee\n"),
        "{printed}"
    );
}

#[test]
fn all_rules_count_the_example() {
    let printed = printed("compare_rules");
    let winner = |rule: &str| {
        let line = printed
            .lines()
            .find(|line| line.split_whitespace().next() == Some(rule));
        line.and_then(|line| line.split_once(' '))
            .map(|(_, winner)| winner.trim().to_owned())
    };
    // The capital of Tennessee, as in every text on voting rules.
    for (rule, city) in [
        ("plurality", "Memphis"),
        ("irv", "Knoxville"),
        ("borda", "Nashville"),
        ("condorcet", "Nashville"),
        ("schulze", "Nashville"),
    ] {
        assert_eq!(winner(rule).as_deref(), Some(city), "{rule}:\n{printed}");
    }
}
