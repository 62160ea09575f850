//! Every command named in the forum's errors, help and documentation exists.

use super::house;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Files that name commands to users.
const SOURCES: &[&str] = &[
    "crates/kd/src/run/forum.rs",
    "crates/kd/src/run/forum",
    "crates/kd/src/args/forum.rs",
    "crates/kd/src/args/forum",
    "crates/kd-sql/src/forum",
    "docs/forum.md",
    "docs/mcp.md",
];

#[test]
fn every_command_that_is_named_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut commands = BTreeSet::new();
    for source in SOURCES {
        collect(&root.join(source), &mut commands);
    }
    let home = house(&json!({}), &[]);
    let wrong: Vec<String> = commands
        .iter()
        .filter_map(|words| {
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            words.push("--help");
            let out = home.kd(&words).output().unwrap();
            let err = String::from_utf8_lossy(&out.stderr);
            (!out.status.success()).then(|| format!("kd {}: {err}", words.join(" ")))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands.len() > 40, "the sources have moved: {commands:?}");
}

fn collect(path: &Path, commands: &mut BTreeSet<Vec<String>>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), commands);
        }
        return;
    }
    let Ok(text) = std::fs::read_to_string(path) else {
        return;
    };
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
    {
        commands.extend(named(line));
    }
}

/// Returns the commands in a line: in backticks, after a prompt, as an example line, or as a whole string.
fn named(line: &str) -> Vec<Vec<String>> {
    let line = line.replace("\\\"", "\"");
    let mut found: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
    found.extend(line.strip_prefix("$ "));
    found.extend(line.starts_with("kd ").then_some(line.as_str()));
    let quoted = line.split_once(".next(\"").map(|(_, rest)| rest);
    found.extend(
        quoted
            .and_then(|rest| rest.rsplit_once("\")"))
            .map(|(hint, _)| hint),
    );
    found.iter().filter_map(|text| words(text)).collect()
}

/// Returns the words after `kd`, up to shell syntax, a comment or the rest of a sentence. A number replaces `N`.
fn words(text: &str) -> Option<Vec<String>> {
    let (_, rest) = text
        .split_once("kd ")
        .filter(|(before, _)| before.split_whitespace().all(|word| word.contains('=')))?;
    let rest = rest.split("   ").next().unwrap_or_default();
    let rest = rest.trim_end_matches([')', ']']);
    let mut words = Vec::new();
    for (number, part) in rest.split('"').enumerate() {
        if number % 2 == 1 {
            words.extend(Some(part.to_owned()).filter(|part| !part.is_empty()));
            continue;
        }
        for word in part.split_whitespace() {
            if ["|", ">", "<", "#", "…", "-", "and"].contains(&word) || word.starts_with('#') {
                return some(words);
            }
            let bare = word.trim_end_matches([',', ';', '.', ':', '"']);
            words.push(match bare {
                "N" | "NUMBER" => "1".to_owned(),
                _ if bare.starts_with('{') => "1".to_owned(),
                _ => bare.replace(['[', ']'], ""),
            });
            if bare != word {
                return some(words);
            }
        }
    }
    some(words)
}

/// Requires that a command begins with a command name.
fn some(words: Vec<String>) -> Option<Vec<String>> {
    let is_name = |word: &String| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    words.first().is_some_and(is_name).then_some(words)
}
