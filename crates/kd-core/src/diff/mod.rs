//! Unified diffs as data: parses the output of git, `diff -u` and mail for a review.
//!
//! Input: untrusted text. Output: files, hunks and numbered lines, or an [`Unreadable`] that names the line. File names
//! are data: nothing here or elsewhere opens them.

mod colors;
mod name;
mod read;
mod split;

pub use colors::without_colors;
pub(crate) use name::numbered;
pub use name::{NAME_CHARS_MAX, decoded, is_below, shown_name, unquoted};
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
    /// Whether it contains git's encoding of binary files, which says how large they become.
    pub has_literals: bool,
    /// The lines after the first file that are of no known form, such as the output of another diff program: the number
    /// of the first one, and how many there are. Not counted in mails, which contain other text.
    pub unread: Option<(usize, usize)>,
}

/// A change to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// The path before; `None` for a new file.
    pub old: Option<String>,
    /// The path after; `None` for a deleted file.
    pub new: Option<String>,
    /// The mode before, if the diff says it: permissions, and whether it is a link or a submodule.
    pub old_mode: Option<u32>,
    /// The mode after.
    pub new_mode: Option<u32>,
    /// Whether the diff only says that the contents differ.
    pub binary: bool,
    /// Whether the contents differ, as their ids or the similarity of a rename say, although the diff shows no line.
    pub textless: bool,
    /// The line endings before and after, as far as the diff shows them.
    pub endings: [Endings; 2],
    /// The hunks.
    pub hunks: Vec<Hunk>,
}

/// The line endings on one side of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endings {
    /// Whether lines end with LF.
    pub lf: bool,
    /// Whether lines end with CRLF.
    pub crlf: bool,
    /// Whether the last line has no ending.
    pub is_open: bool,
}

impl Endings {
    fn word(self) -> Option<&'static str> {
        match (self.lf, self.crlf) {
            (true, true) => Some("mixed"),
            (true, false) => Some("LF"),
            (false, true) => Some("CRLF"),
            (false, false) => None,
        }
    }
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
        let names = self.shown_names();
        for file in &mut self.files {
            for path in [&mut file.old, &mut file.new].into_iter().flatten() {
                let Some(shown) = names.get(path).filter(|shown| *shown != path) else {
                    continue;
                };
                hidden.push((shown.clone(), 0));
                path.clone_from(shown);
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

    /// Returns each path with the name under which it is shown: different names for different paths. A path that can be
    /// shown as it is keeps its name, whatever the others look like.
    pub fn shown_names(&self) -> BTreeMap<String, String> {
        let paths = || {
            let each = self.files.iter();
            each.flat_map(|file| [file.old.as_deref(), file.new.as_deref()])
                .flatten()
        };
        name::distinct(paths())
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
            let size = match (file.binary, file.textless) {
                (true, _) => "binary".to_owned(),
                (_, true) => "text not shown".to_owned(),
                _ => format!("+{added} -{removed}"),
            };
            let facts: String = file.facts().map(|fact| format!(", {fact}")).collect();
            format!("{} {} ({size}{facts})\n", file.verb(), file.title())
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

    /// Returns whether it is a submodule: a commit of another repository.
    pub fn is_submodule(&self) -> bool {
        const SUBMODULE: u32 = 0o160_000;
        self.new_mode.or(self.old_mode) == Some(SUBMODULE)
    }

    /// Returns the changes that its lines do not show: a changed mode, a link, a submodule, an empty file, other line
    /// endings.
    pub fn facts(&self) -> impl Iterator<Item = String> {
        let mode = match (self.old_mode, self.new_mode) {
            (Some(old), Some(new)) if old != new => Some(format!("mode {old:o} to {new:o}")),
            (None, Some(0o100_755)) => Some("executable".to_owned()),
            _ => None,
        };
        let kind = match self.new_mode.or(self.old_mode) {
            Some(0o120_000) => Some("symbolic link"),
            Some(_) if self.is_submodule() => Some("submodule, only its commit is shown"),
            _ => None,
        };
        let one_side = self.old.is_none() || self.new.is_none();
        let is_empty = one_side && self.hunks.is_empty() && !self.binary && !self.textless;
        let kind = kind.or(is_empty.then_some("empty"));
        let ending = self.ending_facts();
        mode.into_iter()
            .chain(kind.map(str::to_owned))
            .chain(ending)
    }

    /// Returns which line endings the change brings.
    fn ending_facts(&self) -> Vec<String> {
        let [before, after] = self.endings;
        let mut facts = Vec::new();
        if self.new.is_none() {
            return facts;
        }
        match (before.word(), after.word()) {
            (Some(before), Some(after)) if before != after => {
                facts.push(format!("line endings {before} to {after}"));
            }
            (None, Some(after @ ("CRLF" | "mixed"))) => facts.push(format!("line endings {after}")),
            _ => {}
        }
        match (before.is_open, after.is_open) {
            (false, true) if self.old.is_some() => {
                facts.push("no newline at the end now".to_owned())
            }
            (true, false) => facts.push("newline at the end now".to_owned()),
            _ => {}
        }
        facts
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
            (u64::from(hunk.old_first)..).zip(old)
        });
        lines
            .filter_map(|(number, line)| Some((u32::try_from(number).ok()?, line.text.as_str())))
            .collect()
    }
}

impl Hunk {
    /// Iterates over the lines with their numbers after the change; a removed line has none.
    pub fn numbered(&self) -> impl Iterator<Item = (Option<u32>, &Line)> {
        let mut number = Some(self.new_first);
        self.lines.iter().map(move |line| {
            if line.kind == LineKind::Removed {
                return (None, line);
            }
            let at = number;
            // No real file has more lines than the largest number; lines after it have no number.
            number = number.and_then(|number| number.checked_add(1));
            (at, line)
        })
    }
}

/// Cleans a single-line text and keeps it on one line.
pub fn one_line(text: &str) -> String {
    clean_text(text).replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests;
