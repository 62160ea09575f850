//! Checks the documentation: command lines shown with output are run in an empty home at 80 columns and must print the
//! same.

#![allow(clippy::unwrap_used)] // tests may panic

use std::path::{Path, PathBuf};
use std::process::Command;

/// Commands whose output depends only on their files, by the beginning of their command line.
const RUN: [&str; 2] = ["kd eval", "kd vote"];
/// Command lines that cannot be run as shown, and why.
const SKIPPED: [(&str, &str); 3] = [
    ("--members …", "the members are left out"),
    (
        "mmlu_pro_29models",
        "takes half a minute without optimization",
    ),
    ("--replay answers.csv", "the file is the reader's"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A command line and its documented output.
#[derive(Debug)]
struct Shown {
    place: String,
    line: String,
    output: String,
}

/// Returns the command lines in a page's `console` blocks, with their output.
fn shown(page: &str, text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let (mut inside, mut more) = (false, false);
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = !inside && line == "```console";
            more = false;
        } else if inside {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push(Shown {
                    place: format!("{page}:{}", at + 1),
                    line: command.to_owned(),
                    output: String::new(),
                }),
                (None, Some(last)) if more => last.line.push_str(&format!("\n{line}")),
                (None, Some(last)) => last.output.push_str(&format!("{line}\n")),
                (None, None) => {}
            }
            more = line.ends_with('\\');
        }
    }
    found
}

/// Removes from an output what differs from run to run.
fn normal(text: &str) -> String {
    let lines = text.trim_end().lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn command_lines_print_what_stands_below_them() {
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    std::fs::create_dir(&work).unwrap();
    // A page names the repository's files by path from the root, or by name only.
    let data = "crates/kd-core/tests/data/replay";
    std::fs::create_dir_all(work.join(data)).unwrap();
    for file in std::fs::read_dir(root().join(data)).unwrap() {
        let file = file.unwrap();
        for folder in [work.clone(), work.join(data)] {
            std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
    let mut pages = vec![root().join("README.md")];
    pages.extend(
        std::fs::read_dir(root().join("docs"))
            .unwrap()
            .map(|f| f.unwrap().path()),
    );
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    let (mut ran, mut wrong) = (0, Vec::new());
    for page in pages {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        for shown in shown(&name, &std::fs::read_to_string(&page).unwrap()) {
            // A file shown exists for the commands that follow.
            if let Some(file) = shown.line.strip_prefix("cat ") {
                std::fs::write(work.join(file.trim()), &shown.output).unwrap();
            }
            let runs = RUN.iter().any(|words| shown.line.starts_with(words));
            let skipped = SKIPPED.iter().any(|(part, _)| shown.line.contains(part));
            if !runs || skipped || shown.output.trim().is_empty() {
                continue;
            }
            let program = Path::new(env!("CARGO_BIN_EXE_kd")).parent().unwrap();
            let said = Command::new("sh")
                .args(["-c", &shown.line])
                .current_dir(&work)
                .env_clear()
                .env("HOME", home.path())
                .env("LANG", "C.UTF-8")
                .env("COLUMNS", "80")
                .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
                .output()
                .unwrap();
            let out = String::from_utf8(said.stdout).unwrap();
            ran += 1;
            if normal(&out) != normal(&shown.output) {
                let err = String::from_utf8_lossy(&said.stderr);
                wrong.push(format!(
                    "{}: $ {}\n--- printed there\n{}\n--- printed by the command\n{}\n{err}",
                    shown.place,
                    shown.line,
                    normal(&shown.output),
                    normal(&out)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(ran >= 4, "only {ran} command lines were run");
}

#[test]
fn command_lines_are_read_with_their_output() {
    let text = "```console\n$ kd a \\\n    b\nout\n\nmore\n$ kd c\n```\n```sh\n$ kd d\n```\n";
    let found = shown("x.md", text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].line, "kd a \\\n    b");
    assert_eq!(
        (found[0].output.as_str(), found[1].output.as_str()),
        ("out\n\nmore\n", "")
    );
}
