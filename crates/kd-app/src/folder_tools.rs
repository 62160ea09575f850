//! Reads the working folder for members at a service: lists, reads and searches its files.
//!
//! Input: a call, which is data of a model. Output: text for the model, below a line that says that it is data. Only regular
//! files below the folder are read, by paths without links. Nobody gets `.kd`, `.git`, what `.gitignore` names, files whose
//! names say that they hold secrets (all `.env` files among them), and files with a key of a service. What looks like a
//! secret in other files is masked, before anything is searched.

use crate::opened::{Kind, bytes, kind, open};
use crate::sensitive::is_sensitive;
use ignore::{DirEntry, WalkBuilder};
use kd_backends::FolderReader;
use kd_backends::folder::{Bounds, Ran};
use kd_core::clean::{clean_line, clean_text};
use kd_core::prompt::folder::{DATA_LINE, FolderCall};
use kd_core::secrets::Secrets;
use kd_core::size::size;
use regex::{Regex, RegexBuilder};
use std::fmt::Write;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

/// Maximum bytes of a file that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Maximum bytes of a file that is searched.
const SEARCHED_BYTES_MAX: u64 = 1 << 20;
/// Maximum entries that are looked at.
const ENTRIES_MAX: usize = 50_000;
/// Maximum characters of a line.
const LINE_CHARS_MAX: usize = 2_000;
/// Maximum characters of a line that a search found.
const FOUND_CHARS_MAX: usize = 300;
/// Maximum lines that a search finds.
const FOUND_MAX: usize = 200;
/// Maximum bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Bytes of a result that are left for its last line.
const END_BYTES: usize = 200;
/// Folders that hold no files of the user.
const CLOSED: &[&str] = &[".kd", ".git"];
/// Parts of names of variables that hold secrets.
const SECRET_VARIABLES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// Reads the working folder.
#[derive(Debug)]
pub(crate) struct FolderTools {
    secrets: Secrets,
}

/// The reason why a file is not read, for the model.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("{0} does not exist")]
    Missing(String),
    #[error(
        "{0} is not for members: its name says that it holds secrets, or it is a file of kd or git"
    )]
    Closed(String),
    #[error("{0} is left out by .gitignore, or a link is on the way to it")]
    LeftOut(String),
    #[error("{0} holds a key of a service: it is for nobody")]
    Key(String),
    #[error("{0} is a binary file")]
    Binary(String),
    #[error("{0} has {1}: at most {2} are read")]
    Long(String, String, String),
    #[error("{0} has only {1} lines")]
    Lines(String, usize),
    #[error("{0} is a folder: list it")]
    Folder(String),
    #[error("the pattern is no regular expression that can be searched: {0}")]
    Pattern(String),
    #[error("{0} cannot be read: {1}")]
    Io(String, io::Error),
}

impl FolderTools {
    /// Creates it; `variables` are those of the environment, whose secrets are masked.
    pub(crate) fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_secret = |name: &str| {
            let name = name.to_uppercase();
            SECRET_VARIABLES.iter().any(|part| name.contains(part))
        };
        let values = variables.into_iter().filter(|(name, _)| is_secret(name));
        Self {
            secrets: Secrets::new(values.map(|(_, value)| value)),
        }
    }

    fn make(&self, root: &Path, call: &FolderCall, bounds: &Bounds<'_>) -> Result<String, Unread> {
        match call {
            FolderCall::List { path } => list(&Place::new(root, path)?, bounds),
            FolderCall::Read { path, start, end } => {
                self.read(&Place::new(root, path)?, (*start, *end), bounds)
            }
            FolderCall::Search {
                pattern,
                is_regex,
                ignores_case,
                path,
            } => {
                let pattern = match is_regex {
                    true => pattern.clone(),
                    false => regex::escape(pattern),
                };
                let pattern = RegexBuilder::new(&pattern)
                    .case_insensitive(*ignores_case)
                    .size_limit(PATTERN_BYTES_MAX)
                    .build()
                    .map_err(|error| Unread::Pattern(clean_line(&error.to_string(), 200)))?;
                self.search(&Place::new(root, path)?, &pattern, bounds)
            }
        }
    }

    fn read(
        &self,
        place: &Place,
        (start, end): (usize, Option<usize>),
        bounds: &Bounds<'_>,
    ) -> Result<String, Unread> {
        let text = self.text(place, FILE_BYTES_MAX, bounds)?;
        let count = text.lines().count();
        if start > count.max(1) {
            return Err(Unread::Lines(place.shown.clone(), count));
        }
        let last = end.unwrap_or(count).min(count);
        let mut out = Output::new(bounds);
        out.line(&format!(
            "{}, lines {start} to {last} of {count}:",
            place.shown
        ));
        for (number, line) in (1..).zip(text.lines()).take(last).skip(start - 1) {
            let line = cut(line, LINE_CHARS_MAX);
            if !out.line(&format!("{number}\t{line}")) {
                let end = format!("(cut here; go on with start_line {number})");
                return Ok(out.end(&end));
            }
        }
        Ok(out.text)
    }

    fn search(
        &self,
        place: &Place,
        pattern: &Regex,
        bounds: &Bounds<'_>,
    ) -> Result<String, Unread> {
        let mut out = Output::new(bounds);
        let (mut found, mut files) = (0, 0);
        let mut end = None;
        'files: for entry in place.walk() {
            if Instant::now() >= bounds.until || files >= ENTRIES_MAX {
                end = Some("not all files were searched; name a folder".to_owned());
                break;
            }
            files += 1;
            let Some(file) = place.file(&entry) else {
                continue;
            };
            let Ok(text) = self.text(&file, SEARCHED_BYTES_MAX, bounds) else {
                continue;
            };
            for (number, line) in (1..).zip(text.lines()) {
                if !pattern.is_match(line) {
                    continue;
                }
                found += 1;
                let line = cut(line.trim_end(), FOUND_CHARS_MAX);
                if found > FOUND_MAX || !out.line(&format!("{}:{number}: {line}", file.shown)) {
                    end = Some("there are more lines; search for something narrower".to_owned());
                    break 'files;
                }
            }
        }
        Ok(match (found, end) {
            (_, Some(end)) => out.end(&format!("({end})")),
            (0, None) => out.end("(no line has it)"),
            (_, None) => out.text,
        })
    }

    /// Returns the text of a file, clean and with secrets masked.
    fn text(&self, place: &Place, max: u64, bounds: &Bounds<'_>) -> Result<String, Unread> {
        let shown = || place.shown.clone();
        let path = place.root.join(&place.below);
        let failed = |error| Unread::Io(shown(), error);
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Unread::Missing(shown()));
            }
            Ok(found) if found.is_dir() => return Err(Unread::Folder(shown())),
            _ => {}
        }
        if !place.is_open() {
            return Err(Unread::LeftOut(shown()));
        }
        let file = open(&path).map_err(failed)?;
        let (bytes, len) = bytes(&file, max).map_err(failed)?;
        if len > max {
            return Err(Unread::Long(shown(), size(len), size(max)));
        }
        let text = match kind(&bytes, false) {
            Kind::Text => String::from_utf8(bytes).ok(),
            _ => None,
        };
        let mut text = text.ok_or_else(|| Unread::Binary(shown()))?;
        if (bounds.holds_key)(&text) {
            return Err(Unread::Key(shown()));
        }
        self.secrets.mask_keeping_lines(&mut text);
        Ok(clean_text(&text).into_owned())
    }
}

impl FolderReader for FolderTools {
    fn run(&self, folder: &Path, call: &FolderCall, bounds: &Bounds<'_>) -> Ran {
        match self.make(folder, call, bounds) {
            Ok(text) => Ran {
                text,
                failed: false,
            },
            Err(why) => Ran::failed(why.to_string()),
        }
    }
}

/// A file or folder below the working folder.
struct Place {
    /// The working folder, without links.
    root: PathBuf,
    /// Its path below it; empty for the folder itself.
    below: PathBuf,
    /// The same for the model and for users.
    shown: String,
}

impl Place {
    fn new(root: &Path, path: &str) -> Result<Self, Unread> {
        let root = root
            .canonicalize()
            .map_err(|error| Unread::Io("the folder".to_owned(), error))?;
        let place = Self::at(root, PathBuf::from(path));
        match is_closed(&place.below) {
            true => Err(Unread::Closed(place.shown)),
            false => Ok(place),
        }
    }

    fn at(root: PathBuf, below: PathBuf) -> Self {
        let shown = clean_line(&below.to_string_lossy(), LINE_CHARS_MAX);
        Self { root, below, shown }
    }

    /// Lists what is at the place or below it, in order, without what nobody gets. Rules of `.gitignore` count from the
    /// working folder on.
    fn walk(&self) -> impl Iterator<Item = DirEntry> {
        let (root, target) = (self.root.clone(), self.root.join(&self.below));
        let is_on_the_way =
            move |path: &Path| target.starts_with(path) || path.starts_with(&target);
        WalkBuilder::new(&self.root)
            .hidden(false)
            .require_git(false)
            // The user's own settings say nothing about the folder.
            .git_global(false)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(move |entry| {
                let below = entry.path().strip_prefix(&root).unwrap_or(entry.path());
                is_on_the_way(entry.path()) && !is_closed(below)
            })
            .build()
            .flatten()
    }

    /// Returns whether a walk reaches the place itself.
    fn is_open(&self) -> bool {
        let target = self.root.join(&self.below);
        let mut on_the_way = self.walk().take(self.below.components().count() + 1);
        on_the_way.any(|entry| entry.path() == target)
    }

    /// Returns the regular file of an entry at the place or below it.
    fn file(&self, entry: &DirEntry) -> Option<Self> {
        let below = entry.path().strip_prefix(&self.root).ok()?;
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        (is_file && below.starts_with(&self.below))
            .then(|| Self::at(self.root.clone(), below.to_owned()))
    }
}

/// Lists the files below a place, with their sizes.
fn list(place: &Place, bounds: &Bounds<'_>) -> Result<String, Unread> {
    let target = place.root.join(&place.below);
    if target.symlink_metadata().is_err() {
        return Err(Unread::Missing(place.shown.clone()));
    }
    if !place.below.as_os_str().is_empty() && !place.is_open() {
        return Err(Unread::LeftOut(place.shown.clone()));
    }
    let mut out = Output::new(bounds);
    let (mut found, mut seen) = (0, 0);
    for entry in place.walk() {
        seen += 1;
        if Instant::now() >= bounds.until || seen > ENTRIES_MAX {
            return Ok(out.end("(there are more files; list a folder)"));
        }
        let Some(file) = place.file(&entry) else {
            continue;
        };
        found += 1;
        let bytes = entry.metadata().map_or(0, |meta| meta.len());
        if !out.line(&format!("{} ({})", file.shown, size(bytes))) {
            return Ok(out.end("(there are more files; list a folder)"));
        }
    }
    Ok(match found {
        0 => out.end("(no files)"),
        _ => out.text,
    })
}

/// Returns whether nobody gets a file at this path, or anything below it.
fn is_closed(below: &Path) -> bool {
    let is_closed = |name: &str| {
        let name = name.to_lowercase();
        CLOSED.contains(&name.as_str()) || name.starts_with(".env")
    };
    let mut parts = below.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    // What a folder of keys holds says nothing by its name.
    parts.any(|name| is_closed(&name)) || is_sensitive(below) || is_sensitive(&below.join("x"))
}

/// Returns the beginning of a line.
fn cut(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A result of limited length.
struct Output {
    text: String,
    max: usize,
}

impl Output {
    fn new(bounds: &Bounds<'_>) -> Self {
        Self {
            text: DATA_LINE.to_owned(),
            max: bounds.bytes,
        }
    }

    /// Adds a line; returns false if there is no room for it.
    fn line(&mut self, line: &str) -> bool {
        if self.text.len() + 1 + line.len() + END_BYTES > self.max {
            return false;
        }
        let _ = write!(self.text, "\n{line}");
        true
    }

    /// Adds the last line.
    fn end(mut self, line: &str) -> String {
        let _ = write!(self.text, "\n{line}");
        self.text
    }
}

#[cfg(test)]
mod tests;
