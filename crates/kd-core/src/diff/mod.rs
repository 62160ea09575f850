//! Unified diffs as data: parses the output of git, `diff -u` and mail for a review.
//!
//! Input: untrusted text. Output: files, hunks and numbered lines, or an [`Unreadable`] that names the line. File names
//! are data: nothing here or elsewhere opens them.

mod read;
mod split;

pub use read::{Unreadable, read};
use split::LINE_BYTES_MAX;
pub use split::{PART_BYTES_MAX, Part, split};

use crate::clean::clean_text;
use std::collections::BTreeMap;

/// A change to several files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The files, in the order of the diff.
    pub files: Vec<FileDiff>,
}

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// The path before; `None` for a new file.
    pub old: Option<String>,
    /// The path after; `None` for a deleted file.
    pub new: Option<String>,
    /// Whether the diff only says that the contents differ.
    pub binary: bool,
    /// The hunks.
    pub hunks: Vec<Hunk>,
}

/// A hunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The number of the first line before the change; in a merge, in the first parent.
    pub old_first: u32,
    /// The number of the first line after.
    pub new_first: u32,
    /// The enclosing function or section that git found.
    pub heading: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whether the change adds or removes it.
    pub kind: LineKind,
    /// The text, without the line ending.
    pub text: String,
}

/// The role of a line in a change: context, added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Unchanged.
    Context,
    /// Added.
    Added,
    /// Removed. In a merge: removed from at least one parent.
    Removed,
}

impl Diff {
    /// Cleans all texts line by line, preserving line numbers. Returns the places that needed cleaning: terminal
    /// escapes, and invisible characters.
    pub fn clean(&mut self) -> Vec<(String, u32)> {
        let mut hidden = Vec::new();
        for file in &mut self.files {
            for path in [&mut file.old, &mut file.new].into_iter().flatten() {
                let cleaned = shown_name(path);
                if cleaned != *path {
                    hidden.push((cleaned.clone(), 0));
                }
                *path = cleaned;
            }
            let path = file.path().to_owned();
            for hunk in &mut file.hunks {
                hunk.heading = one_line(&hunk.heading);
                let mut number = hunk.new_first;
                for line in &mut hunk.lines {
                    let cleaned = one_line(&line.text);
                    if cleaned != line.text {
                        hidden.push((path.clone(), number));
                        line.text = cleaned;
                    }
                    number = number.saturating_add(u32::from(line.kind != LineKind::Removed));
                }
            }
        }
        hidden
    }

    /// Returns the lines of which members see only the beginning: files and line numbers, 0 for removed ones.
    pub fn cut_lines(&self) -> Vec<(&str, u32)> {
        let files = self.files.iter();
        let lines = files.flat_map(|file| {
            let hunks = file.hunks.iter().flat_map(Hunk::numbered);
            hunks.map(|(number, line)| (file.path(), number.unwrap_or(0), line))
        });
        let long = lines.filter(|(_, _, line)| line.text.len() > LINE_BYTES_MAX);
        long.map(|(path, number, _)| (path, number)).collect()
    }

    /// Counts the lines added and removed in total.
    pub fn counts(&self) -> (usize, usize) {
        let each = self.files.iter().map(FileDiff::counts);
        each.fold((0, 0), |(a, r), (added, removed)| (a + added, r + removed))
    }

    /// Returns one line per file: what happened to it, and how many lines were added and removed.
    pub fn summary(&self) -> String {
        let rows = self.files.iter().map(|file| {
            let (added, removed) = file.counts();
            let size = match file.binary {
                true => "binary".to_owned(),
                false => format!("+{added} -{removed}"),
            };
            format!("{} {} ({size})\n", file.verb(), file.title())
        });
        rows.collect()
    }
}

impl FileDiff {
    /// Returns the path after the change; of a deleted file, the path before.
    pub fn path(&self) -> &str {
        let path = self.new.as_ref().or(self.old.as_ref());
        path.map_or("", String::as_str)
    }

    /// Returns the path, with the previous one if the file was renamed.
    pub fn title(&self) -> String {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if old != new => format!("{new} (was {old})"),
            _ => self.path().to_owned(),
        }
    }

    /// Returns the verb for the change of the file.
    pub fn verb(&self) -> &'static str {
        match (&self.old, &self.new) {
            (None, _) => "added",
            (_, None) => "deleted",
            (old, new) if old != new => "renamed",
            _ => "changed",
        }
    }

    /// Counts the lines added and removed.
    pub fn counts(&self) -> (usize, usize) {
        let lines = || self.hunks.iter().flat_map(|hunk| &hunk.lines);
        let of = |kind| lines().filter(|line| line.kind == kind).count();
        (of(LineKind::Added), of(LineKind::Removed))
    }

    /// Returns the lines shown in the diff as they are after the change, by number.
    pub fn after(&self) -> BTreeMap<u32, &str> {
        let numbered = self.hunks.iter().flat_map(Hunk::numbered);
        numbered
            .filter_map(|(number, line)| Some((number?, line.text.as_str())))
            .collect()
    }

    /// Returns the lines shown in the diff as they were before the change, by number; of the first parent in a merge.
    pub fn before(&self) -> BTreeMap<u32, &str> {
        let lines = self.hunks.iter().flat_map(|hunk| {
            let old = hunk
                .lines
                .iter()
                .filter(|line| line.kind != LineKind::Added);
            (hunk.old_first..).zip(old)
        });
        lines
            .map(|(number, line)| (number, line.text.as_str()))
            .collect()
    }

    /// Returns the numbers of the added lines.
    pub fn added(&self) -> Vec<u32> {
        let numbered = self.hunks.iter().flat_map(Hunk::numbered);
        let added = numbered.filter(|(_, line)| line.kind == LineKind::Added);
        added.filter_map(|(number, _)| number).collect()
    }
}

impl Hunk {
    /// Iterates over the lines with their numbers after the change; a removed line has none.
    pub fn numbered(&self) -> impl Iterator<Item = (Option<u32>, &Line)> {
        let mut number = self.new_first;
        self.lines.iter().map(move |line| {
            if line.kind == LineKind::Removed {
                return (None, line);
            }
            let at = number;
            number = number.saturating_add(1);
            (Some(at), line)
        })
    }
}

/// Returns a path as shown to members and users, and as they name it: without indistinguishable blank characters.
pub fn shown_name(path: &str) -> String {
    one_line(path).replace('\t', " ")
}

/// Cleans a single-line text and keeps it on one line.
fn one_line(text: &str) -> String {
    clean_text(text).replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests;
