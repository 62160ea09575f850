//! Reads the working folder for members at a service: lists, reads and searches its files.
//!
//! Input: a call, which is data of a model. Output: text for the model, below a line that says that it is data. Only regular
//! files below the folder are read, by paths without links. Nobody gets `.kd`, `.git`, what `.gitignore` names, files whose
//! names say that they hold secrets (all `.env` files among them), and files with a key of a service. What looks like a
//! secret in other files is masked, before anything is searched: in the text as it is sent, so that no character that is not
//! shown hides it.

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
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// Maximum bytes of what a pattern keeps while it searches.
const PATTERN_CACHE_BYTES_MAX: usize = 1 << 20;
/// Maximum characters of a line that are searched.
const SEARCHED_CHARS_MAX: usize = 4_000;
/// Bytes that are searched between two looks at the time.
const SEARCHED_AT_ONCE: usize = 16 << 10;
/// Maximum bytes of a file of rules, such as `.gitignore`.
const RULES_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a result that are left for its last line.
const END_BYTES: usize = 200;
/// Said where a search ends early.
const NOT_ALL: &str = "not all files were searched; name a folder";
const NARROWER: &str = "there are more lines; search for something narrower";
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
    #[error(
        "{0} is not read: .gitignore, or another file of rules of git on the way, is no regular file"
    )]
    Rules(String),
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
            FolderCall::List { path } => list(&Place::new(root, path)?, &self.secrets, bounds),
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
                    .dfa_size_limit(PATTERN_CACHE_BYTES_MAX)
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
        place.check()?;
        let text = self.text(place, FILE_BYTES_MAX, bounds)?;
        let count = text.lines().count();
        if start > count.max(1) {
            return Err(Unread::Lines(place.shown.clone(), count));
        }
        let last = end.unwrap_or(count).min(count);
        let mut out = Output::new(&self.secrets, bounds);
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
        let mut out = Output::new(&self.secrets, bounds);
        let (mut found, mut files) = (0, 0);
        let mut is_cut = false;
        let ended = || bounds.is_over();
        let mut end = None;
        for entry in place.walk() {
            if ended() || files >= ENTRIES_MAX {
                end = Some(NOT_ALL);
                break;
            }
            files += 1;
            // The walk reached it, so no second walk is needed.
            let Some(file) = place.file(&entry) else {
                continue;
            };
            let Ok(text) = self.text(&file, SEARCHED_BYTES_MAX, bounds) else {
                continue;
            };
            let mut is_full = false;
            let searched = lines_with(&text, pattern, &ended, &mut |number, line| {
                found += 1;
                let line = cut(line.trim_end(), FOUND_CHARS_MAX);
                is_full =
                    found > FOUND_MAX || !out.line(&format!("{}:{number}: {line}", file.shown));
                !is_full
            });
            is_cut |= searched.is_cut;
            if !searched.is_whole {
                end = Some(if is_full { NARROWER } else { NOT_ALL });
                break;
            }
        }
        Ok(match (found, end) {
            (_, Some(end)) => out.end(&format!("({end})")),
            (0, None) if is_cut => out.end(&format!("(no line has it; {})", long_lines())),
            (0, None) => out.end("(no line has it)"),
            (_, None) if is_cut => out.end(&format!("({})", long_lines())),
            (_, None) => out.text,
        })
    }

    /// Returns the text of a file that a walk reached, clean and with secrets masked.
    fn text(&self, place: &Place, max: u64, bounds: &Bounds<'_>) -> Result<String, Unread> {
        let shown = || place.shown.clone();
        let path = place.root.join(&place.below);
        let failed = |error| Unread::Io(shown(), error);
        let file = open(&path).map_err(failed)?;
        let (bytes, len) = bytes(&file, max).map_err(failed)?;
        if len > max {
            return Err(Unread::Long(shown(), size(len), size(max)));
        }
        let text = match kind(&bytes, false) {
            Kind::Text => String::from_utf8(bytes).ok(),
            _ => None,
        };
        let raw = text.ok_or_else(|| Unread::Binary(shown()))?;
        // Codes and invisible characters are taken out first: behind one, a secret looks like a part of a longer word.
        let mut text = clean_text(&raw).into_owned();
        if (bounds.holds_key)(&raw) || (bounds.holds_key)(&text) {
            return Err(Unread::Key(shown()));
        }
        self.secrets.mask_keeping_lines(&mut text);
        Ok(text)
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
        let is_folder = place.target().symlink_metadata().is_ok_and(|m| m.is_dir());
        if is_closed(&place.below, is_folder) {
            return Err(Unread::Closed(place.shown));
        }
        // A walk reads the rules of all folders above.
        match place.root.ancestors().all(has_plain_rules) {
            true => Ok(place),
            false => Err(Unread::Rules(place.shown)),
        }
    }

    fn at(root: PathBuf, below: PathBuf) -> Self {
        let shown = clean_line(&below.to_string_lossy(), LINE_CHARS_MAX);
        Self { root, below, shown }
    }

    fn target(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    /// Returns an error if it is no file, or one that no walk reaches.
    fn check(&self) -> Result<(), Unread> {
        match self.target().symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Unread::Missing(self.shown.clone()))
            }
            Ok(found) if found.is_dir() => Err(Unread::Folder(self.shown.clone())),
            _ if !self.is_open() => Err(Unread::LeftOut(self.shown.clone())),
            _ => Ok(()),
        }
    }

    /// Lists what is at the place or below it, in order, without what nobody gets. Rules of git count from the root of the
    /// checkout on, as in git; outside of one, from the working folder on.
    fn walk(&self) -> impl Iterator<Item = DirEntry> {
        #[cfg(test)]
        tests::WALKS.with(|walks| walks.set(walks.get() + 1));
        let (root, target) = (self.root.clone(), self.target());
        let is_on_the_way =
            move |path: &Path| target.starts_with(path) || path.starts_with(&target);
        let is_checkout = self.root.ancestors().any(is_root_of_a_checkout);
        WalkBuilder::new(&self.root)
            .hidden(false)
            // Other files of rules come from the project too, and would open what `.gitignore` names.
            .ignore(false)
            .require_git(is_checkout)
            .parents(is_checkout)
            // The user's own settings say nothing about the folder.
            .git_global(false)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(move |entry| {
                let below = entry.path().strip_prefix(&root).unwrap_or(entry.path());
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                is_on_the_way(entry.path())
                    && !is_closed(below, is_folder)
                    && (!is_folder || has_plain_rules(entry.path()))
            })
            .build()
            .flatten()
    }

    /// Returns whether a walk reaches the place itself.
    fn is_open(&self) -> bool {
        let target = self.target();
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
fn list(place: &Place, secrets: &Secrets, bounds: &Bounds<'_>) -> Result<String, Unread> {
    if place.target().symlink_metadata().is_err() {
        return Err(Unread::Missing(place.shown.clone()));
    }
    if !place.below.as_os_str().is_empty() && !place.is_open() {
        return Err(Unread::LeftOut(place.shown.clone()));
    }
    let mut out = Output::new(secrets, bounds);
    let (mut found, mut seen) = (0, 0);
    for entry in place.walk() {
        seen += 1;
        if bounds.is_over() || seen > ENTRIES_MAX {
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

/// Returns whether nobody gets what is at this path, or below it.
fn is_closed(below: &Path, is_folder: bool) -> bool {
    let names = below.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
        _ => None,
    });
    let mut folders: Vec<String> = names.collect();
    let is_closed = |name: &String| CLOSED.contains(&name.as_str()) || name.starts_with(".env");
    // What a folder of keys holds says nothing by its name.
    if folders.iter().any(is_closed) || is_sensitive(&below.join("x")) {
        return true;
    }
    if !is_folder {
        folders.pop();
        if is_sensitive(below) {
            return true;
        }
    }
    // A folder called `secrets` has secrets in its files of data, and source in others.
    let ending = below.extension().filter(|_| !is_folder);
    let ending = ending.map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()));
    folders.iter().any(|folder| {
        is_sensitive(Path::new(folder))
            && (folder.contains('.')
                || (!is_folder && is_sensitive(Path::new(&format!("{folder}{ending}")))))
    })
}

/// Returns whether a folder is the root of a checkout, as the walk sees it.
fn is_root_of_a_checkout(folder: &Path) -> bool {
    folder.join(".git").metadata().is_ok() || folder.join(".jj").exists()
}

/// Returns whether the files of rules in a folder are regular files of usual length, or missing. A pipe in place of one would
/// block the walk for ever.
fn has_plain_rules(folder: &Path) -> bool {
    let is_plain = |path: &Path| match path.metadata() {
        Ok(meta) => meta.is_file() && meta.len() <= RULES_BYTES_MAX,
        Err(_) => true,
    };
    let first_line = |path: &Path| {
        let text = std::fs::read_to_string(path).ok()?;
        text.lines().next().map(str::to_owned)
    };
    let git = folder.join(".git");
    if !is_plain(&folder.join(".gitignore")) || !is_plain(&git.join("info/exclude")) {
        return false;
    }
    // In a worktree of git, it is a file that names folders elsewhere.
    match git.metadata() {
        Ok(meta) if meta.is_dir() => return true,
        Ok(_) if !is_plain(&git) => return false,
        Ok(_) => {}
        Err(_) => return true,
    }
    let Some(line) = first_line(&git) else {
        return true;
    };
    let own = line.strip_prefix("gitdir: ").map_or("", str::trim);
    [PathBuf::from(own), folder.join(own)].iter().all(|own| {
        let common = own.join("commondir");
        is_plain(&common)
            && first_line(&common).is_none_or(|common| {
                is_plain(&own.join(&common).join("info/exclude"))
                    && is_plain(&Path::new(&common).join("info/exclude"))
            })
    })
}

/// Whether all of a text was searched.
struct Searched {
    /// Whether the search reached its end.
    is_whole: bool,
    /// Whether lines were searched only in part.
    is_cut: bool,
}

/// Finds the lines of a text, with their numbers. Ends early if `found` returns false, or `ended` true.
fn lines_with(
    text: &str,
    pattern: &Regex,
    ended: &dyn Fn() -> bool,
    found: &mut dyn FnMut(usize, &str) -> bool,
) -> Searched {
    let (mut is_cut, mut bytes) = (false, 0);
    for (number, line) in (1..).zip(text.lines()) {
        if bytes >= SEARCHED_AT_ONCE {
            bytes = 0;
            if ended() {
                return Searched {
                    is_whole: false,
                    is_cut,
                };
            }
        }
        let begin = match line.char_indices().nth(SEARCHED_CHARS_MAX) {
            Some((end, _)) => &line[..end],
            None => line,
        };
        is_cut |= begin.len() < line.len();
        bytes += begin.len() + 1;
        if pattern.is_match(begin) && !found(number, line) {
            return Searched {
                is_whole: false,
                is_cut,
            };
        }
    }
    Searched {
        is_whole: true,
        is_cut,
    }
}

fn long_lines() -> String {
    format!("of long lines only the first {SEARCHED_CHARS_MAX} characters were searched")
}

/// Returns the beginning of a line.
fn cut(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// A result of limited length.
struct Output<'s> {
    secrets: &'s Secrets,
    text: String,
    max: usize,
}

impl<'s> Output<'s> {
    fn new(secrets: &'s Secrets, bounds: &Bounds<'_>) -> Self {
        Self {
            secrets,
            text: DATA_LINE.to_owned(),
            max: bounds.bytes,
        }
    }

    /// Adds a line; returns false if there is no room for it.
    fn line(&mut self, line: &str) -> bool {
        // The text of a file is masked already; its name may be a secret too.
        let (line, _) = self.secrets.mask(line);
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
