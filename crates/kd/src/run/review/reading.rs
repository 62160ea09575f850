//! Reads a change from git: its diff, the whole changed files, and what of it cannot be shown.
//!
//! Attributes say to git which files are text. Those of the change have no effect, and a file that any others call
//! binary is shown nevertheless if it is text: nothing is left out without being named.

use super::sides::{After, Sides, names};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::review::kept::LeftOut;
use crate::run::prose_review::failed;
use kd_core::clean::clean_text;
use kd_core::diff::{self, Diff, FileDiff, LineKind, decoded, shown_name};
use kd_store::git_command::{self, GitCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Enough context to include whole files: more lines than a compared file can have.
const WHOLE: &str = "--unified=20000000";
/// Everything but the folder of `kd`.
const EVERYTHING: [&str; 2] = [".", ":(exclude,top).kd"];
/// Maximum bytes of a file that git calls binary and that is shown nevertheless, and of all of them.
const TEXT_BYTES_MAX: u64 = 4 << 20;
const TEXTS_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of files that are looked at although git calls them binary, and how many at once.
const TEXTS_MAX: usize = 256;
const TEXTS_AT_ONCE: usize = 64;
/// A file is text if at most one of so many characters is a control character or no UTF-8.
const ODD_SHARE: usize = 5;
/// Maximum names to search for, uses shown of each, and bytes of a line.
const NAMES_MAX: usize = 8;
const USES_MAX: usize = 3;
const USE_BYTES_MAX: usize = 200;
/// Maximum untracked files named in a notice.
const NAMED_MAX: usize = 5;

/// Lines by number, by file.
pub(super) type Lines = BTreeMap<String, BTreeMap<u32, String>>;

/// A change as git shows it.
pub(super) struct Reading {
    /// Includes whole functions around each change.
    pub(super) diff: Diff,
    /// Lines after the change: whole files, if `is_whole`.
    pub(super) lines: Lines,
    pub(super) is_whole: bool,
    /// Files that members do not see.
    pub(super) left_out: Vec<LeftOut>,
}

impl Reading {
    pub(super) fn of(git: &GitCommand, sides: &Sides, top: Option<&Path>) -> Result<Self, Error> {
        let everything = EVERYTHING.map(OsString::from);
        let mut reading = Self::within(git, sides, &[], &everything)?;
        reading.show_texts(git, sides, top)?;
        reading.leave_out_unshown();
        reading.left_out.extend(own_files(git, sides)?);
        Ok(reading)
    }

    fn within(
        git: &GitCommand,
        sides: &Sides,
        how: &[&str],
        paths: &[OsString],
    ) -> Result<Self, Error> {
        let context = [how, &["--unified=5", "--function-context"]].concat();
        let shown = git_diff(git, sides, &context, paths)?.ok_or_else(|| {
            Error::new("git", Exit::Error, "the change is larger than 32 MiB")
                .next("review it in steps: kd review FROM..TO with fewer commits")
        })?;
        let diff = parse(&String::from_utf8_lossy(&shown), "git diff")?;
        let whole = git_diff(git, sides, &[how, &[WHOLE]].concat(), paths)?;
        let whole = whole.and_then(|text| diff::read(&String::from_utf8_lossy(&text)).ok());
        Ok(Self {
            lines: lines(whole.as_ref().unwrap_or(&diff)),
            is_whole: whole.is_some(),
            diff,
            left_out: Vec::new(),
        })
    }

    /// Reads the files that git calls binary as text, and keeps those that are.
    fn show_texts(
        &mut self,
        git: &GitCommand,
        sides: &Sides,
        top: Option<&Path>,
    ) -> Result<(), Error> {
        if !self.diff.files.iter().any(|file| file.binary) {
            return Ok(());
        }
        let entries = entries(git, sides)?;
        let mut paths: Vec<Vec<OsString>> = Vec::new();
        let mut room = TEXTS_BYTES_MAX;
        for file in self.diff.files.iter().filter(|file| file.binary) {
            let Some(entry) = entries.get(&(file.old.clone(), file.new.clone())) else {
                continue;
            };
            let size = match paths.len() < TEXTS_MAX {
                true => entry.bytes(git, top),
                false => None,
            };
            match size {
                Some(size) if size <= TEXT_BYTES_MAX.min(room) => {
                    room -= size;
                    paths.push(entry.paths());
                }
                Some(size) if size > TEXT_BYTES_MAX => {
                    let why = format!("larger than {} MiB", TEXT_BYTES_MAX >> 20);
                    self.left_out.push(LeftOut::of(file.path(), &why));
                }
                _ => {}
            }
        }
        for some in paths.chunks(TEXTS_AT_ONCE) {
            let texts = Self::within(git, sides, &["--text"], &some.concat())?;
            for text in texts.diff.files.iter().filter(|file| is_text(file)) {
                self.replace(text, &texts.lines);
            }
            self.is_whole &= texts.is_whole;
        }
        Ok(())
    }

    /// Replaces a file that is binary so far by the same file as text.
    fn replace(&mut self, text: &FileDiff, lines: &Lines) {
        let is_it =
            |file: &&mut FileDiff| file.binary && file.old == text.old && file.new == text.new;
        if let Some(file) = self.diff.files.iter_mut().find(is_it) {
            *file = text.clone();
            if let Some(lines) = lines.get(text.path()) {
                self.lines.insert(text.path().to_owned(), lines.clone());
            }
        }
    }

    /// Names what the diff does not show.
    pub(super) fn leave_out_unshown(&mut self) {
        for file in &self.diff.files {
            let known = self.left_out.iter().any(|one| one.file == file.path());
            let why = match () {
                () if known => continue,
                () if file.binary => "binary",
                () if file.is_submodule() => "submodule: only its commit is compared",
                () => continue,
            };
            self.left_out.push(LeftOut::of(file.path(), why));
        }
    }
}

/// Returns the text of a diff; `None` if it is too long.
fn git_diff(
    git: &GitCommand,
    sides: &Sides,
    how: &[&str],
    paths: &[OsString],
) -> Result<Option<Vec<u8>>, Error> {
    let mut args: Vec<&OsStr> = vec!["diff".as_ref()];
    let always = [
        "--find-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--inter-hunk-context=0",
    ];
    let words = always.iter().chain(&git_command::DIFF).chain(how);
    args.extend(words.map(|word| OsStr::new(*word)));
    args.extend(sides.args.iter().map(OsStr::new));
    args.push("--".as_ref());
    args.extend(paths.iter().map(OsString::as_os_str));
    git.read_whole(&args).map_err(|error| failed(&error))
}

/// The names of a file before and after.
type Names = (Option<String>, Option<String>);

/// A file in git's list of the change.
struct Entry {
    /// The mode, the id and the path on each side; no mode if the file is not there.
    sides: [(String, String, Vec<u8>); 2],
}

impl Entry {
    /// Returns the size of the larger side.
    fn bytes(&self, git: &GitCommand, top: Option<&Path>) -> Option<u64> {
        let sizes = self.sides.iter().map(|(mode, id, path)| {
            if is_zero(mode) {
                return Some(0);
            }
            if is_zero(id) {
                // The file on disk. A name that git tracks does not lead out of the tree, and nothing is opened.
                let file = top?.join(OsStr::from_bytes(path));
                return Some(file.symlink_metadata().ok()?.len());
            }
            git.read(&["cat-file", "-s", id]).ok()?.trim().parse().ok()
        });
        let sizes: Option<Vec<u64>> = sizes.collect();
        sizes?.into_iter().max()
    }

    /// Returns its paths as arguments.
    fn paths(&self) -> Vec<OsString> {
        let paths = self.sides.iter().map(|(_, _, path)| {
            let mut spec = OsString::from(":(top,literal)");
            spec.push(OsStr::from_bytes(path));
            spec
        });
        paths.collect()
    }
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'0')
}

/// Returns the files of the change, by their names on both sides.
fn entries(git: &GitCommand, sides: &Sides) -> Result<BTreeMap<Names, Entry>, Error> {
    let list = git_diff(
        git,
        sides,
        &["--raw", "-z", "--no-abbrev"],
        &EVERYTHING.map(OsString::from),
    )?;
    let list = list.unwrap_or_default();
    let mut fields = list.split(|byte| *byte == 0);
    let mut entries = BTreeMap::new();
    while let Some(head) = fields.next() {
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old_id, new_id, status] = words[..] else {
            continue;
        };
        let Some(old) = fields.next() else { break };
        let new = match status.starts_with(['R', 'C']) {
            true => fields.next().unwrap_or(old),
            false => old,
        };
        let entry = || Entry {
            sides: [
                (old_mode.to_owned(), old_id.to_owned(), old.to_vec()),
                (new_mode.to_owned(), new_id.to_owned(), new.to_vec()),
            ],
        };
        let is_there = |mode: &str, path: &[u8]| (!is_zero(mode)).then(|| decoded(path));
        let (old_name, new_name) = (is_there(old_mode, old), is_there(new_mode, new));
        // A file that becomes a link is shown as deleted and added.
        if status.starts_with('T') {
            entries.insert((old_name, None), entry());
            entries.insert((None, new_name), entry());
        } else {
            entries.insert((old_name, new_name), entry());
        }
    }
    Ok(entries)
}

/// Returns whether the lines shown of a file are text.
fn is_text(file: &FileDiff) -> bool {
    let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
    let is_odd = |c: &char| *c == '\u{fffd}' || c.is_control() && *c != '\t';
    let (mut all, mut odd) = (0_usize, 0_usize);
    for line in lines {
        all += line.text.chars().count();
        odd += line.text.chars().filter(is_odd).count();
    }
    odd.saturating_mul(ODD_SHARE) <= all
}

/// Returns the changed files in the folder of `kd`.
fn own_files(git: &GitCommand, sides: &Sides) -> Result<Vec<LeftOut>, Error> {
    let how = ["--name-only", "-z", "--no-renames"];
    let list = git_diff(git, sides, &how, &[OsString::from(":(top).kd")])?;
    let list = list.unwrap_or_default();
    Ok(names(&list).map(|name| LeftOut::own(&name)).collect())
}

pub(super) fn parse(text: &str, named: &str) -> Result<Diff, Error> {
    diff::read(text).map_err(|e| {
        Error::usage(format!("{named} is not a readable diff"))
            .because(e)
            .next("make it with `git diff`, `git format-patch --stdout` or `diff -u`")
    })
}

/// Returns the lines of the changed files after the change; of deleted files, the removed lines.
pub(super) fn lines(diff: &Diff) -> Lines {
    let mut lines = Lines::new();
    for file in &diff.files {
        let shown = match file.new {
            Some(_) => file.after(),
            None => file.before(),
        };
        // A file that becomes a link is deleted and added: the new one counts.
        if file.new.is_none() && lines.contains_key(file.path()) {
            continue;
        }
        let shown = shown.into_iter().map(|(n, line)| (n, line.to_owned()));
        lines.insert(file.path().to_owned(), shown.collect());
    }
    lines
}

pub(super) fn one_line(text: &str) -> String {
    clean_text(text).replace(['\n', '\r'], " ")
}

/// Returns a notice about untracked files, which no diff shows.
pub(super) fn unknown(git: &GitCommand) -> Result<Option<String>, Error> {
    let args = ["ls-files", "--others", "--exclude-standard", "-z", "--"];
    let others = git.read_whole(&[&args[..], &EVERYTHING].concat());
    let others = others.map_err(|error| failed(&error))?.unwrap_or_default();
    let others: Vec<String> = names(&others).map(|name| shown_name(&name)).collect();
    let shown = others.iter().take(NAMED_MAX).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    let more = match others.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Ok((!shown.is_empty()).then(|| {
        format!(
            "not reviewed, because untracked: {}{more}",
            shown.join(", ")
        )
    }))
}

/// Finds uses of the changed functions in other files. Leaves out what cannot be found.
pub(super) fn uses(git: &GitCommand, sides: &Sides, diff: &Diff) -> Vec<String> {
    let changed: BTreeSet<&str> = diff.files.iter().map(FileDiff::path).collect();
    let headings = diff
        .files
        .iter()
        .flat_map(|file| &file.hunks)
        .flat_map(|hunk| {
            let changed = hunk
                .lines
                .iter()
                .filter(|line| line.kind != LineKind::Context);
            std::iter::once(hunk.heading.as_str()).chain(changed.map(|line| line.text.as_str()))
        });
    let mut names: Vec<String> = Vec::new();
    for name in headings.filter_map(defined) {
        if names.len() < NAMES_MAX && !names.contains(&name) {
            names.push(name);
        }
    }
    let mut uses = Vec::new();
    for name in names {
        let mut args = vec![
            "grep",
            "--no-color",
            "--no-textconv",
            "-n",
            "-I",
            "-w",
            "-F",
            "--max-count=2",
            "-e",
            &name,
        ];
        match &sides.after {
            After::Tree(id) => args.push(id),
            After::Index => args.insert(1, "--cached"),
            After::Work => {}
        }
        args.push("--");
        args.extend(EVERYTHING);
        let found = git.read(&args).unwrap_or_default();
        let elsewhere = found.lines().filter_map(|line| {
            let line = match &sides.after {
                After::Tree(id) => line.strip_prefix(&format!("{id}:")).unwrap_or(line),
                After::Index | After::Work => line,
            };
            let (path, _) = line.split_once(':')?;
            let line: String = one_line(line).chars().take(USE_BYTES_MAX).collect();
            (!changed.contains(path)).then_some(line)
        });
        uses.extend(elsewhere.take(USES_MAX));
    }
    uses
}

/// Returns the function that a line seems to define.
pub(super) fn defined(line: &str) -> Option<String> {
    const WORDS: &[&str] = &[
        "fn", "func", "def", "function", "sub", "fun", "proc", "defun",
    ];
    let mut words = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty());
    words.find(|word| WORDS.contains(word))?;
    // Short and common names are used everywhere.
    words
        .next()
        .filter(|name| name.len() > 3 && *name != "main")
        .map(str::to_owned)
}
