//! Checks the examples: every configuration in `examples/` is valid, and the fire drill ends partially.

#![allow(clippy::unwrap_used)] // tests may panic

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs `kd` in a hermetic home with an example as its configuration.
fn kd(example: &Path, args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let own = home.path().join(".config/kd");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::copy(example, own.join("config.json")).unwrap();
    Command::new(env!("CARGO_BIN_EXE_kd"))
        .args(args)
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap()
}

#[test]
fn every_example_passes_the_check() {
    let mut seen = 0;
    for file in std::fs::read_dir(examples()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|e| e == "json") {
            for args in [
                &["config", "check"][..],
                &["config", "check", path.to_str().unwrap()],
            ] {
                let out = kd(&path, args);
                assert!(
                    out.status.success(),
                    "{}: {}",
                    path.display(),
                    String::from_utf8_lossy(&out.stderr)
                );
            }
            seen += 1;
        }
    }
    assert!(seen >= 3, "the examples have moved");
}

#[test]
fn a_file_that_is_not_there_is_no_file_without_mistakes() {
    let out = kd(
        &examples().join("fire-drill.json"),
        &["config", "check", "no/such.json"],
    );
    assert_eq!(out.status.code(), Some(1));
}

#[test]
fn the_fire_drill_ends_partially() {
    let out = kd(
        &examples().join("fire-drill.json"),
        &["ask", "--json", "Is anybody here?"],
    );
    assert_eq!(out.status.code(), Some(5));
    let council: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(council["outcome"], "partial");
    assert_eq!(council["answers"][0]["text"], "Is anybody here?");
}
