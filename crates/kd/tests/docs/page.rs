//! Reads the command lines of a page, with the output shown below them.

use std::path::{Path, PathBuf};

/// A command line and its documented output.
#[derive(Debug, PartialEq)]
pub(crate) struct Shown {
    /// The heading above it.
    pub(crate) section: String,
    /// Number of its first line, from 1.
    pub(crate) at: usize,
    /// The command, over all its lines.
    pub(crate) line: String,
    /// The lines of the page, from 0, that show its output.
    pub(crate) below: std::ops::Range<usize>,
    /// The lines of its output.
    pub(crate) output: Vec<String>,
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Returns the names of all pages, relative to the root.
pub(crate) fn pages() -> Vec<String> {
    let mut found = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for folder in ["docs", "docs/adr"] {
        for file in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                found.push(format!("{folder}/{name}"));
            }
        }
    }
    for folder in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        let page = format!("crates/{name}/README.md");
        if root().join(&page).exists() {
            found.push(page);
        }
    }
    found.sort();
    found
}

/// Reads a page.
pub(crate) fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap()
}

/// Tells whether the next line belongs to this command.
fn goes_on(command: &str) -> bool {
    let opened = ["for ", "while "]
        .iter()
        .any(|word| command.starts_with(word) || command.contains(&format!("| {word}")));
    let closed = command
        .lines()
        .last()
        .is_some_and(|line| line.trim() == "done");
    command.ends_with('\\') || opened && !closed
}

/// Returns the command lines of a page: lines behind `$ ` in `console` blocks, with the lines below as their output,
/// and all lines of `sh` blocks.
pub(crate) fn shown(text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let (mut block, mut more, mut section) = (None, false, "");
    for (at, line) in text.lines().enumerate() {
        if block.is_none() && line.starts_with("##") {
            section = line.trim_start_matches('#').trim();
        }
        if let Some(language) = line.strip_prefix("```") {
            block = match block {
                None => Some(language.to_owned()),
                Some(_) => None,
            };
            more = false;
            continue;
        }
        let command = match block.as_deref() {
            Some("console") => line.strip_prefix("$ "),
            Some("sh" | "bash") => Some(line),
            _ => continue,
        };
        if let Some(last) = found.last_mut().filter(|_| more) {
            last.line.push_str(&format!("\n{line}"));
            last.below = at + 1..at + 1;
            more = goes_on(&last.line);
            continue;
        }
        match (command, found.last_mut()) {
            (Some(command), _) => {
                if command.is_empty() || command.starts_with('#') {
                    continue;
                }
                more = goes_on(command);
                found.push(Shown {
                    section: section.to_owned(),
                    at: at + 1,
                    line: command.to_owned(),
                    below: at + 1..at + 1,
                    output: Vec::new(),
                });
            }
            (None, Some(last)) if last.below.end == at => {
                last.below.end = at + 1;
                last.output.push(line.to_owned());
            }
            // Text before the first command of a block.
            (None, _) => {}
        }
    }
    for last in &mut found {
        // A blank line before the next command is not output.
        while last
            .output
            .last()
            .is_some_and(|line| line.trim().is_empty())
        {
            last.output.pop();
            last.below.end -= 1;
        }
    }
    found
}

/// Returns the programs that a command line starts.
pub(crate) fn programs(line: &str) -> Vec<String> {
    let (mut found, mut word, mut quote) = (Vec::new(), String::new(), None);
    // Whether the next word is a program.
    let mut start = true;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            // A command within a command.
            (None | Some('"'), '$') if chars.peek() == Some(&'(') => {
                let inner: String = chars.by_ref().skip(1).take_while(|c| *c != ')').collect();
                found.extend(programs(&inner));
                word.push('$');
            }
            (None, '#') if word.is_empty() => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, '\\') => drop(chars.next()),
            (None, ' ' | '\n' | '|' | ';' | '&') => {
                let of = std::mem::take(&mut word);
                let keyword = matches!(of.as_str(), "do" | "done" | "while");
                let assigned = of.split_once('=').is_some_and(|(name, _)| {
                    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                });
                if start && !of.is_empty() && !keyword && !assigned {
                    found.push(of);
                    start = false;
                }
                start |= c != ' ';
            }
            _ => word.push(c),
        }
    }
    if start && !word.is_empty() && word != "done" {
        found.push(word);
    }
    found
}

/// Returns the command lines in other blocks, where nothing runs them.
pub(crate) fn misplaced(text: &str) -> Vec<(usize, &str)> {
    let (mut block, mut found) = (None, Vec::new());
    for (at, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = match block {
                None => Some(language),
                Some(_) => None,
            };
        } else if !matches!(block, None | Some("console" | "sh" | "bash")) {
            let words = line.strip_prefix("$ ").unwrap_or(line);
            let mut words = words.split(' ');
            let is_kd = words.next() == Some("kd");
            // `kd chat · council-…` is the first line of a screen.
            if is_kd && words.nth(1) != Some("·") {
                found.push((at + 1, line));
            }
        }
    }
    found
}

#[test]
fn command_lines_are_read_with_their_output() {
    let text = "```console\n$ kd a \\\n    b\nout\n\nmore\n\n$ kd c\n```\n\n```sh\nkd d  # why\n\nkd e |\\\n  f\n```\n";
    let found = shown(text);
    let lines: Vec<&str> = found.iter().map(|shown| &*shown.line).collect();
    assert_eq!(
        lines,
        ["kd a \\\n    b", "kd c", "kd d  # why", "kd e |\\\n  f"]
    );
    assert_eq!(found[0].output, ["out", "", "more"]);
    assert_eq!((found[0].at, found[0].below.clone()), (2, 3..6));
    assert!(found[1..].iter().all(|shown| shown.output.is_empty()));
    let text = "```console\n$ for f in a; do\n    kd $f\n  done\nout\n```\n```\nkd chat · x\nkd: y\n$ kd last\n```\n";
    let found = shown(text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].output, ["out"]);
    assert_eq!(misplaced(text), [(10, "$ kd last")]);
}

#[test]
fn programs_of_a_command_line_are_found() {
    for (line, expected) in [
        ("kd ask \"a | b\" | jq -r '.a | .b'", vec!["kd", "jq"]),
        ("A=1 B=\"x y\" cargo build && cd x", vec!["cargo", "cd"]),
        ("kd a   # b; c", vec!["kd"]),
        ("K=$(kd model path) cargo test", vec!["kd", "cargo"]),
        ("kd reply \"$(cat f)\" --x", vec!["kd", "cat"]),
        (
            "for f in a b; do\n  kd $f | \\\n    head\ndone",
            vec!["for", "kd", "head"],
        ),
        ("kd x < in > out || ask", vec!["kd", "ask"]),
    ] {
        assert_eq!(programs(line), expected, "{line}");
    }
}
