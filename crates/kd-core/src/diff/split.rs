//! Splits a change into parts that fit into a prompt, keeping files of one folder together.

use super::{Diff, FileDiff, Hunk, LineKind};
use std::fmt::Write as _;

/// Maximum bytes of one part: some 30,000 tokens, which current models can read in addition to their instructions.
pub const PART_BYTES_MAX: usize = 96 << 10;
/// Maximum bytes of one line in a part; the rest is replaced by a note.
pub(super) const LINE_BYTES_MAX: usize = 2000;

/// A part of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its files, in order.
    pub files: Vec<String>,
    /// Their hunks, each line with its number after the change.
    pub text: String,
}

/// Splits a change into parts of at most `bytes_max` bytes. A file stays whole if it fits; otherwise it is split
/// between hunks, and a hunk that does not fit is split between lines.
pub fn split(diff: &Diff, bytes_max: usize) -> Vec<Part> {
    let mut files: Vec<&FileDiff> = diff.files.iter().collect();
    // Stable sort: files of a folder keep the order of the diff.
    files.sort_by(|a, b| folder(a.path()).cmp(folder(b.path())));
    let mut parts: Vec<Part> = Vec::new();
    for file in files {
        for text in texts(file, bytes_max) {
            let name = file.path().to_owned();
            match parts.last_mut() {
                Some(part) if part.text.len() + text.len() <= bytes_max => {
                    part.text.push_str(&text);
                    if part.files.last() != Some(&name) {
                        part.files.push(name);
                    }
                }
                _ => parts.push(Part {
                    files: vec![name],
                    text,
                }),
            }
        }
    }
    parts
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Renders a file as one text, or as several if it is longer than a part.
fn texts(file: &FileDiff, bytes_max: usize) -> Vec<String> {
    let facts: String = file.facts().map(|fact| format!(", {fact}")).collect();
    let head = format!("=== {} ({}{facts})\n", file.title(), file.verb());
    if file.binary || file.hunks.is_empty() {
        let why = if file.binary {
            "binary, not shown"
        } else {
            "no lines changed"
        };
        return vec![format!("{head}({why})\n\n")];
    }
    let mut texts = Vec::new();
    let mut text = head.clone();
    for hunk in &file.hunks {
        for block in blocks(hunk, bytes_max.saturating_sub(head.len() + 1)) {
            if text.len() + block.len() + 1 > bytes_max && text.len() > head.len() {
                text.push('\n');
                texts.push(std::mem::replace(&mut text, head.clone()));
            }
            text.push_str(&block);
        }
    }
    text.push('\n');
    texts.push(text);
    texts
}

/// Renders a hunk as one text, or as several split between lines.
fn blocks(hunk: &Hunk, bytes_max: usize) -> Vec<String> {
    let head = |first: u32| match hunk.heading.is_empty() {
        true => format!("@@ from line {first}\n"),
        false => format!("@@ from line {first}, in: {}\n", hunk.heading),
    };
    let mut blocks = Vec::new();
    let mut block = head(hunk.new_first);
    let mut is_empty = true;
    let mut next = hunk.new_first;
    for (number, line) in hunk.numbered() {
        let sign = match line.kind {
            LineKind::Context => ' ',
            LineKind::Added => '+',
            LineKind::Removed => '-',
        };
        let shown = number.map(|n| n.to_string()).unwrap_or_default();
        let mut row = String::new();
        let _ = writeln!(row, "{shown:>5} {sign} {}", cut(&line.text));
        if block.len() + row.len() > bytes_max && !is_empty {
            blocks.push(std::mem::replace(&mut block, head(number.unwrap_or(next))));
        }
        block.push_str(&row);
        is_empty = false;
        next = number.map_or(next, |n| n.saturating_add(1));
    }
    blocks.push(block);
    blocks
}

fn cut(line: &str) -> String {
    if line.len() <= LINE_BYTES_MAX {
        return line.to_owned();
    }
    let mut end = LINE_BYTES_MAX;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} … ({} bytes left out)", &line[..end], line.len() - end)
}
