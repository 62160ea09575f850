//! Reads a change from git: its diff, the whole changed files, and what of it cannot be shown.
//!
//! Attributes say to git which files are text. Those of the change have no effect, and a file that any others call
//! binary is shown nevertheless if it is text: nothing is left out without being named.

use super::git::failed;
use super::kinds::{is_binary, is_source};
use super::names::first_of;
use super::report::LeftOut;
use super::sides::{After, NAMED_MAX, Sides, names};
use crate::error::{ErrorKind, UserError};
use kd_core::diff::{self, Diff, FileDiff, LineKind, decoded, is_below, one_line, shown_name};
use kd_store::git_command::{self, GitCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The folder of `kd`, which is not reviewed.
pub(super) const KD: &str = ".kd";
/// Enough context to include whole files: more lines than a compared file can have.
const WHOLE: &str = "--unified=20000000";
/// Everything but the folder of `kd`.
const EVERYTHING: [&str; 2] = [".", ":(exclude,top).kd"];
/// Maximum bytes of a file that git calls binary and that is shown nevertheless, and of both sides of all of them.
const TEXT_BYTES_MAX: u64 = 4 << 20;
const TEXTS_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of files that are looked at although git calls them binary, and how many at once.
const TEXTS_MAX: usize = 256;
const TEXTS_AT_ONCE: usize = 64;
/// The reason for a file of which a diff does not show the text.
pub(super) const TEXTLESS: &str = "its text is not in the diff";
/// The reason for a file beyond these limits.
const UNREAD: &str = "binary for git, and not looked at: too many such files";
/// A file is text if at most one in this many characters is a control character or invalid UTF-8.
const ODD_SHARE: usize = 5;
/// Maximum names to search for, uses shown of each, and bytes of a line.
const NAMES_MAX: usize = 8;
const USES_MAX: usize = 3;
const USE_BYTES_MAX: usize = 200;

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
    pub(super) fn of(
        git: &GitCommand,
        sides: &Sides,
        top: Option<&Path>,
    ) -> Result<Self, UserError> {
        let everything = EVERYTHING.map(OsString::from);
        let mut reading = Self::within(git, sides, &[], &everything)?.ok_or_else(|| {
            UserError::new(ErrorKind::Git, "the change is larger than 32 MiB")
                .next("review it in steps: kd review FROM..TO with fewer commits")
        })?;
        reading.show_texts(git, sides, top)?;
        reading.leave_out_unshown(true);
        reading.left_out.extend(own_files(git, sides)?);
        Ok(reading)
    }

    /// Takes a diff of which only its own lines are known.
    pub(super) fn of_diff(diff: Diff) -> Self {
        let files = diff.files.into_iter();
        let (own, files): (Vec<FileDiff>, Vec<FileDiff>) =
            files.partition(|file| is_below(file.path(), KD));
        let diff = Diff {
            files,
            ..Diff::default()
        };
        let mut reading = Self {
            lines: lines(&diff),
            diff,
            is_whole: false,
            left_out: own.iter().map(|file| LeftOut::own(file.path())).collect(),
        };
        reading.drop_odd();
        reading.leave_out_unshown(false);
        reading
    }

    /// Reads the change of these paths; `None` if it is too long.
    fn within(
        git: &GitCommand,
        sides: &Sides,
        how: &[&str],
        paths: &[OsString],
    ) -> Result<Option<Self>, UserError> {
        let context = [how, &["--unified=5", "--function-context"]].concat();
        let Some(shown) = git_diff(git, sides, &context, paths)? else {
            return Ok(None);
        };
        let diff = parse(&String::from_utf8_lossy(&shown), "git diff")?;
        let whole = git_diff(git, sides, &[how, &[WHOLE]].concat(), paths)?;
        let whole = whole.and_then(|text| diff::read(&String::from_utf8_lossy(&text)).ok());
        Ok(Some(Self {
            lines: lines(whole.as_ref().unwrap_or(&diff)),
            is_whole: whole.is_some(),
            diff,
            left_out: Vec::new(),
        }))
    }

    /// Reads the files that git calls binary as text, and keeps those that are.
    fn show_texts(
        &mut self,
        git: &GitCommand,
        sides: &Sides,
        top: Option<&Path>,
    ) -> Result<(), UserError> {
        if !self.diff.files.iter().any(|file| file.binary) {
            return Ok(());
        }
        let (read, left_out) = self.worth_reading(&entries(git, sides)?, git, top);
        self.left_out.extend(left_out);
        for some in read.chunks(TEXTS_AT_ONCE) {
            let paths: Vec<OsString> = some.iter().flat_map(|(_, paths)| paths.clone()).collect();
            let Some(texts) = Self::within(git, sides, &["--text"], &paths)? else {
                let unread = some.iter().map(|(path, _)| LeftOut::of(path, UNREAD));
                self.left_out.extend(unread);
                continue;
            };
            for text in texts.diff.files.iter().filter(|file| is_text(file)) {
                self.replace(text, &texts.lines);
            }
            self.is_whole &= texts.is_whole;
        }
        Ok(())
    }

    /// Returns the binary files to look at, with their paths as arguments, and the others with the reason. Files whose
    /// extension is rare in the change come first: a source file is not hidden by many images.
    fn worth_reading(
        &self,
        entries: &BTreeMap<Names, Entry>,
        git: &GitCommand,
        top: Option<&Path>,
    ) -> (Vec<(String, Vec<OsString>)>, Vec<LeftOut>) {
        let mut files: Vec<&FileDiff> = self.diff.files.iter().filter(|file| file.binary).collect();
        let mut kinds: BTreeMap<&OsStr, usize> = BTreeMap::new();
        for file in &files {
            *kinds.entry(kind(file.path())).or_default() += 1;
        }
        files.sort_by_key(|file| (kinds.get(kind(file.path())), file.path()));
        let (mut read, mut left_out) = (Vec::new(), Vec::new());
        let mut room = TEXTS_BYTES_MAX;
        for file in files {
            let Some(entry) = entries.get(&(file.old.clone(), file.new.clone())) else {
                continue;
            };
            let sizes = match read.len() < TEXTS_MAX {
                true => entry.bytes(git, top),
                false => None,
            };
            let size = sizes.map(|sizes| (sizes[0].max(sizes[1]), sizes[0] + sizes[1]));
            match size {
                Some((larger, _)) if larger > TEXT_BYTES_MAX => {
                    let why = format!("larger than {} MiB", TEXT_BYTES_MAX >> 20);
                    left_out.push(LeftOut::of(file.path(), &why));
                }
                Some((_, both)) if both <= room => {
                    room -= both;
                    read.push((file.path().to_owned(), entry.paths()));
                }
                _ => left_out.push(LeftOut::of(file.path(), UNREAD)),
            }
        }
        (read, left_out)
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

    /// Takes files whose lines are not text for binary ones: `git diff --text` shows every file.
    fn drop_odd(&mut self) {
        for file in self.diff.files.iter_mut().filter(|file| !is_text(file)) {
            file.binary = true;
            file.hunks.clear();
            self.lines.remove(file.path());
            self.left_out
                .push(LeftOut::binary(file.path(), is_source(file.path())));
        }
    }

    /// Names what the diff does not show. The contents of binary files were looked at, or only their names tell what
    /// they are: a change can make git call any file binary.
    pub(super) fn leave_out_unshown(&mut self, looked_at: bool) {
        let named = self.left_out.iter().map(|one| one.file.clone());
        let mut named: BTreeSet<String> = named.collect();
        for file in &self.diff.files {
            let path = file.path();
            let left_out = match () {
                () if named.contains(path) => continue,
                () if file.binary && looked_at => LeftOut::binary(path, is_source(path)),
                () if file.binary && is_binary(path) => LeftOut::binary(path, false),
                () if file.is_submodule() => {
                    LeftOut::of(path, "submodule: only its commit is compared")
                }
                () if file.binary || file.textless => LeftOut::of(path, TEXTLESS),
                () => continue,
            };
            named.insert(path.to_owned());
            self.left_out.push(left_out);
        }
    }
}

/// Returns the text of a diff; `None` if it is too long.
fn git_diff(
    git: &GitCommand,
    sides: &Sides,
    how: &[&str],
    paths: &[OsString],
) -> Result<Option<Vec<u8>>, UserError> {
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
    /// Returns the sizes of both sides.
    fn bytes(&self, git: &GitCommand, top: Option<&Path>) -> Option<[u64; 2]> {
        let size = |(mode, id, path): &(String, String, Vec<u8>)| {
            if is_zero(mode) {
                return Some(0);
            }
            if is_zero(id) {
                // The file on disk. A name that git tracks does not lead out of the tree, and nothing is opened.
                let file = top?.join(OsStr::from_bytes(path));
                return Some(file.symlink_metadata().ok()?.len());
            }
            git.read(&["cat-file", "-s", id])
                .ok()?
                .trim()
                .parse::<u64>()
                .ok()
        };
        let [before, after] = &self.sides;
        Some([size(before)?, size(after)?])
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

/// Returns the extension of a path.
fn kind(path: &str) -> &OsStr {
    Path::new(path).extension().unwrap_or_default()
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'0')
}

/// Returns the files of the change, by their names on both sides.
fn entries(git: &GitCommand, sides: &Sides) -> Result<BTreeMap<Names, Entry>, UserError> {
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
fn own_files(git: &GitCommand, sides: &Sides) -> Result<Vec<LeftOut>, UserError> {
    let how = ["--name-only", "-z", "--no-renames"];
    let list = git_diff(git, sides, &how, &[OsString::from(":(top).kd")])?;
    let list = list.unwrap_or_default();
    Ok(names(&list).map(|name| LeftOut::own(&name)).collect())
}

pub(super) fn parse(text: &str, named: &str) -> Result<Diff, UserError> {
    diff::read(text).map_err(|e| {
        UserError::usage(format!("{named} is not a readable diff"))
            .because(e)
            .next("make it with `git diff`, `git format-patch --stdout` or `diff -u`")
    })
}

/// Returns the lines of the changed files after the change; of deleted files, the removed lines. If a series of commits
/// changes a file more than once, the lines of all of them count, the last ones first.
pub(super) fn lines(diff: &Diff) -> Lines {
    let mut lines = Lines::new();
    let mut deleted: BTreeSet<&str> = BTreeSet::new();
    for file in &diff.files {
        let path = file.path();
        // A file that becomes a link is deleted and added: the new one counts.
        let shown = match (&file.new, lines.contains_key(path)) {
            (None, true) => continue,
            (None, false) => {
                deleted.insert(path);
                file.before()
            }
            (Some(_), _) => {
                if deleted.remove(path) {
                    lines.remove(path);
                }
                file.after()
            }
        };
        let shown = shown.into_iter().map(|(n, line)| (n, line.to_owned()));
        let known: &mut BTreeMap<u32, String> = lines.entry(path.to_owned()).or_default();
        known.extend(shown);
    }
    lines
}

/// Returns a notice about untracked files, which no diff shows.
pub(super) fn unknown(git: &GitCommand) -> Result<Option<String>, UserError> {
    let args = ["ls-files", "--others", "--exclude-standard", "-z", "--"];
    let others = git.read_whole(&[&args[..], &EVERYTHING].concat());
    let others = others.map_err(|error| failed(&error))?.unwrap_or_default();
    let others: Vec<String> = names(&others).map(|name| shown_name(&name)).collect();
    let listed = first_of(&others, NAMED_MAX);
    Ok(listed.map(|files| format!("not reviewed, because untracked: {files}")))
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
