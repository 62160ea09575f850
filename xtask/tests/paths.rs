//! The pages that describe the code name files and folders that exist.
#![allow(clippy::unwrap_used)] // a test that cannot go on may say so

use std::fs;
use std::path::Path;

/// Pages whose paths are checked. Paths begin at the root or with the name of a crate.
const PAGES: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];

/// Returns the texts between backticks that look like paths, with `{a,b}` expanded.
fn paths(page: &str) -> Vec<String> {
    page.split('`')
        .skip(1)
        .step_by(2)
        .filter(|text| text.contains('/') && !text.contains(char::is_whitespace))
        .filter(|text| !text.contains(['<', '*', '$', '~', '(', '\n']) && !text.contains("NAME"))
        .flat_map(expanded)
        .collect()
}

fn expanded(text: &str) -> Vec<String> {
    let Some((head, rest)) = text.split_once('{') else {
        return vec![text.to_owned()];
    };
    let Some((names, tail)) = rest.split_once('}') else {
        return vec![text.to_owned()];
    };
    names
        .split(',')
        .map(|name| format!("{head}{}{tail}", name.trim()))
        .collect()
}

/// Returns whether a path begins like one of this repository.
fn is_ours(root: &Path, path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    !first.is_empty() && (root.join(first).is_dir() || root.join("crates").join(first).is_dir())
}

#[test]
fn pages_name_files_that_exist() {
    let root = xtask::root();
    let (mut seen, mut missing) = (0, Vec::new());
    for page in PAGES {
        let text = fs::read_to_string(root.join(page)).unwrap();
        for path in paths(&text).into_iter().filter(|path| is_ours(&root, path)) {
            seen += 1;
            if !root.join(&path).exists() && !root.join("crates").join(&path).exists() {
                missing.push(format!("{page}: {path}"));
            }
        }
    }
    assert!(seen > 100, "only {seen} paths were found");
    assert!(missing.is_empty(), "no such file:\n{}", missing.join("\n"));
}

#[test]
fn braces_are_expanded() {
    assert_eq!(
        paths("see `kd/src/{a,b}.rs`"),
        ["kd/src/a.rs", "kd/src/b.rs"]
    );
    assert!(paths("`git diff | kd`, `a*/b`, `one`").is_empty());
}
