//! The change under review: read from git, or from a file named by the user.
//!
//! Input: which change. Output: its diff, the lines around it, and its base. Runs no program of the repository, and
//! uses nothing of the change as a setting.

use super::git::usual_base;
use super::names::first_of;
use super::reading::{KD, Lines, Reading, TEXTLESS, defined, parse, unknown, uses};
use super::report::{LeftOut, Place};
use super::request::ChangeRequest;
use super::sides::{After, NAMED_MAX, Sides, at_top, commit};
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::infile;
use crate::scratch;
use crate::words::count;
use kd_core::diff::{self, Diff, FileDiff, LineKind, is_below, one_line, shown_name};
use kd_store::git_command::GitCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A diff with the text of all files, whatever attributes and settings say.
const ALL_TEXT: &str = "pass a unified diff with all text: git diff --text --no-ext-diff --no-textconv FROM TO | kd \
                        review --pr -; kd review FROM..TO reads it from git";

/// Maximum bytes of `--pr FILE`.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Maximum lines of a known file.
const LINES_MAX: u32 = 1_000_000;
/// Maximum unknown lines of all files together.
const UNKNOWN_MAX: u32 = 4_000_000;
/// Maximum files in the list included with each part.
const LISTED_MAX: usize = 200;
/// Maximum functions listed per file.
const OUTLINE_MAX: usize = 8;
/// Maximum files named in a notice about files that members do not see.
const LEFT_OUT_MAX: usize = 20;
/// Unchanged lines around a change in the diff that code hosts show: they accept comments only there.
const CONTEXT: usize = 3;

/// A change, parsed and sanitized.
pub(super) struct Change {
    /// The base in the user's terms: a branch, a commit, `the index`. Empty if a diff applies to none.
    pub(super) base: String,
    pub(super) head: String,
    /// The commits, if known.
    pub(super) base_commit: Option<String>,
    pub(super) head_commit: Option<String>,
    /// Includes whole functions around each change.
    pub(super) diff: Diff,
    /// Lines after the change, by file: complete files if git has them, otherwise only the lines of the diff.
    pub(super) lines: Lines,
    /// Files of the change that members do not see.
    pub(super) left_out: Vec<LeftOut>,
    /// Whether a diff has lines of no known form.
    pub(super) is_unread: bool,
    /// Uses of changed functions elsewhere.
    pub(super) uses: Vec<String>,
    pub(super) notices: Vec<String>,
    /// Whether the files on disk are not those under review.
    pub(super) elsewhere: bool,
    /// The commit with the settings: never the reviewed one.
    pub(super) settings_commit: Option<String>,
    /// Files whose names are shown otherwise than they are: code hosts do not know them.
    odd: BTreeSet<String>,
    pub(super) git: Option<GitCommand>,
    /// The top of the working tree.
    pub(super) top: Option<PathBuf>,
}

/// Names a diff: its path, or `stdin`.
fn named_source(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "stdin".to_owned(),
        _ => path.display().to_string(),
    }
}

impl Change {
    pub(super) fn of(args: &ChangeRequest, env: &Env) -> Result<Self, UserError> {
        let folder = env.folder()?;
        let mut change = match &args.pr {
            Some(path) => Self::of_file(path, folder, env)?,
            None => Self::of_git(args, folder)?,
        };
        change.finish();
        if change.diff.files.is_empty() {
            return Err(change.nothing(args));
        }
        Ok(change)
    }

    /// Returns the error for a change without files.
    fn nothing(&self, args: &ChangeRequest) -> UserError {
        let what = match &args.pr {
            _ if !self.left_out.is_empty() => {
                let files = self.left_out.iter().map(|one| one.file.clone());
                let files = listed(files, NAMED_MAX).unwrap_or_default();
                format!("only files of the folder {KD} differ, which are not reviewed: {files}")
            }
            Some(path) => format!("{} has no diff", named_source(path)),
            None => format!("nothing differs between {} and {}", self.base, self.head),
        };
        let next = match args {
            _ if !self.left_out.is_empty() => {
                "name another change: kd help review lists the ways to name one"
            }
            ChangeRequest { pr: Some(_), .. } => ALL_TEXT,
            ChangeRequest { range: Some(_), .. } => {
                "name two commits that differ: kd review FROM..TO (git log shows commits)"
            }
            ChangeRequest { staged: true, .. } => "stage what is to be reviewed: git add FILE",
            _ => {
                "commit or change tracked files (git add includes new ones), or name another change: kd help review"
            }
        };
        UserError::new(ErrorKind::NoChange, what).next(next)
    }

    /// Parses a diff. If it applies to a commit that git has, the whole files are known.
    fn of_file(path: &Path, folder: &Path, env: &Env) -> Result<Self, UserError> {
        let named = named_source(path);
        let text = infile::read(path, FILE_BYTES_MAX).map_err(|e| {
            UserError::new(ErrorKind::Io, format!("the diff {named} cannot be read"))
                .because(e)
                .next("name the file of a unified diff, or `-` for stdin")
        })?;
        let plain = diff::without_colors(&text);
        let diff = parse(&String::from_utf8_lossy(&plain), &named)?;
        let told = told(&diff, plain.len() < text.len());
        let git = GitCommand::new(folder).ok();
        let top = git.as_ref().and_then(|git| git.top().ok());
        let git = git.zip(top.as_deref()).map(|(git, top)| git.at(top));
        if let Some(git) = &git
            && let Some(mut change) =
                Self::applied(git, &diff, &plain, &named, top.as_deref(), env)?
        {
            change.notices.extend(told);
            change.is_unread = diff.unread.is_some();
            return Ok(change);
        }
        let why = unapplied(&diff, git.is_some());
        // HEAD may be the reviewed commit.
        let base = git.as_ref().and_then(|git| {
            let base = usual_base(git).ok()?;
            commit(git, &base).ok()
        });
        let is_unread = diff.unread.is_some();
        let reading = Reading::of_diff(diff);
        let mut notices = vec![format!(
            "only the lines of the diff are known ({why}): quotes of other lines cannot be checked"
        )];
        notices.extend(told);
        if reading.left_out.iter().any(|one| one.why == TEXTLESS) {
            notices.push(format!("to review the text of all files, {ALL_TEXT}"));
        }
        Ok(Self {
            base: String::new(),
            head: named,
            base_commit: None,
            head_commit: None,
            lines: reading.lines,
            left_out: reading.left_out,
            diff: reading.diff,
            uses: Vec::new(),
            notices,
            is_unread,
            elsewhere: true,
            settings_commit: base,
            odd: BTreeSet::new(),
            git,
            top,
        })
    }

    /// Returns the change if the diff applies, with the same line numbers, to HEAD or to the commit where its branch
    /// left its base.
    fn applied(
        git: &GitCommand,
        diff: &Diff,
        text: &[u8],
        named: &str,
        top: Option<&Path>,
        env: &Env,
    ) -> Result<Option<Self>, UserError> {
        // Git would decompress them, whatever size they claim, and take a rename without its text for a mere rename.
        if diff.has_literals || diff.files.iter().any(|file| file.textless) {
            return Ok(None);
        }
        let scratch = scratch::folder("kd-review-", env)?;
        let file = scratch.path().join("diff");
        std::fs::write(&file, text)
            .map_err(|e| UserError::new(ErrorKind::Io, "the diff cannot be copied").because(e))?;
        let usual = usual_base(git).ok();
        for base in std::iter::once("HEAD").chain(usual.as_deref()) {
            let Ok(id) = commit(git, base) else { continue };
            let Ok((applied, tree)) = git.applied(&id, &file, scratch.path()) else {
                continue;
            };
            let sides = Sides {
                args: vec![id.clone(), tree.clone()],
                base: base.to_owned(),
                head: named.to_owned(),
                base_commit: Some(id),
                head_commit: None,
                after: After::Tree(tree),
            };
            let change = Self::of_sides(&applied, sides, top)?;
            if agrees(diff, &change.lines) {
                let git = Some(git.clone());
                let elsewhere = true;
                return Ok(Some(Self {
                    git,
                    elsewhere,
                    ..change
                }));
            }
        }
        Ok(None)
    }

    fn of_git(args: &ChangeRequest, folder: &Path) -> Result<Self, UserError> {
        let (git, top) = at_top(folder)?;
        let sides = Sides::of(args, &git)?;
        Self::of_sides(&git, sides, Some(&top))
    }

    fn of_sides(git: &GitCommand, sides: Sides, top: Option<&Path>) -> Result<Self, UserError> {
        let git = &git.with_attributes_of(&sides.before(git)?);
        let reading = Reading::of(git, &sides, top)?;
        let uses = uses(git, &sides, &reading.diff);
        let mut notices = Vec::new();
        let on_disk = |id: &String| commit(git, "HEAD").is_ok_and(|head| head == *id);
        let elsewhere = matches!(&sides.after, After::Tree(id) if !on_disk(id));
        if matches!(sides.after, After::Work) {
            notices.extend(unknown(git)?);
        }
        if !reading.is_whole {
            notices.push(
                "only the lines of the diff are known (the files are too large): quotes of other lines cannot be checked"
                    .to_owned(),
            );
        }
        Ok(Self {
            base: sides.base,
            head: sides.head,
            settings_commit: sides.base_commit.clone(),
            base_commit: sides.base_commit,
            head_commit: sides.head_commit,
            diff: reading.diff,
            lines: reading.lines,
            left_out: reading.left_out,
            uses,
            notices,
            is_unread: false,
            elsewhere,
            odd: BTreeSet::new(),
            git: Some(git.clone()),
            top: top.map(Path::to_path_buf),
        })
    }

    /// Sanitizes the text that members and users will read, and reports the characters that were hidden in it.
    fn finish(&mut self) {
        let names = self.diff.shown_names();
        let shown = |path: &str| names.get(path).cloned().unwrap_or_else(|| shown_name(path));
        let hidden = self.diff.clean();
        let odd = names.iter().filter(|(path, shown)| path != shown);
        self.odd = odd.map(|(_, shown)| shown.clone()).collect();
        let lines = std::mem::take(&mut self.lines);
        for (path, lines) in lines {
            let lines = lines.into_iter().map(|(n, line)| (n, one_line(&line)));
            self.lines.insert(shown(&path), lines.collect());
        }
        for one in &mut self.left_out {
            one.file = shown(&one.file);
        }
        self.tell_unshown();
        let cut = self.diff.cut_lines();
        let cut = cut.iter().map(|(path, line)| match line {
            0 => format!("{path}, removed"),
            line => format!("{path}:{line}"),
        });
        if let Some(places) = named(cut) {
            self.notices.push(format!(
                "members see the first 2,000 bytes of these lines only: {places}"
            ));
        }
        let too_long = named(self.too_long().into_iter().map(str::to_owned));
        if let Some(files) = too_long {
            self.notices.push(format!(
                "findings in these files cannot be checked, and are dropped: {files}"
            ));
        }
        let places = hidden.iter().map(|(path, line)| match line {
            0 => format!("the name of {path}"),
            line => format!("{path}:{line}"),
        });
        if let Some(places) = named(places) {
            self.notices.push(format!(
                "removed escapes and invisible characters: {places}"
            ));
        }
    }

    /// Reports the files that members do not see, by reason, and changes that lines do not show.
    fn tell_unshown(&mut self) {
        let mut reasons: Vec<&str> = Vec::new();
        for one in &self.left_out {
            if !reasons.contains(&one.why.as_str()) {
                reasons.push(&one.why);
            }
        }
        let of_reason = |why: &str| {
            let files = self.left_out.iter().filter(|one| one.why == why);
            let files = listed(files.map(|one| one.file.clone()), LEFT_OUT_MAX)?;
            Some(format!("not reviewed ({why}): {files}"))
        };
        let facts = self.diff.files.iter().filter_map(|file| {
            let mut facts: Vec<String> = file.facts().collect();
            match (&file.old, &file.new) {
                (Some(old), Some(new)) if old != new => facts.insert(0, format!("was {old}")),
                _ => {}
            }
            let kept = !facts.is_empty() && !file.is_submodule();
            kept.then(|| format!("{} ({})", file.path(), facts.join(", ")))
        });
        let facts = listed(facts, LEFT_OUT_MAX).map(|all| format!("not only lines change: {all}"));
        let told: Vec<String> = reasons
            .into_iter()
            .filter_map(of_reason)
            .chain(facts)
            .collect();
        self.notices.extend(told);
    }

    /// Names the commit with the settings.
    pub(super) fn settings_name(&self) -> &str {
        match self.base.as_str() {
            "" => "the base branch",
            base => base,
        }
    }

    /// Describes the change in one line.
    pub(super) fn title(&self) -> String {
        let (added, removed) = self.diff.counts();
        let base = match self.base.as_str() {
            "" => String::new(),
            base => format!("{base} to "),
        };
        format!(
            "review of {base}{}: {}, +{added} -{removed}",
            self.head,
            count(self.diff.files.len() as u64, "file")
        )
    }

    /// Formats the change for members: each part with the list of all files, and uses of changed functions elsewhere.
    /// With several parts, the list also names each file's functions, so that a member sees what the other parts
    /// change.
    pub(super) fn parts(&self) -> Vec<String> {
        let parts = diff::split(&self.diff, diff::PART_BYTES_MAX);
        let summary = match parts.len() {
            0 | 1 => self.diff.summary(),
            _ => self.outline(),
        };
        let all = summary.lines().count();
        let mut list: String = summary.split_inclusive('\n').take(LISTED_MAX).collect();
        if all > LISTED_MAX {
            list += &format!("… and {} more\n", all - LISTED_MAX);
        }
        let own = self.left_out.iter().filter(|one| is_below(&one.file, KD));
        let own = listed(own.map(|one| one.file.clone()), LISTED_MAX);
        if let Some(own) = own {
            list += &format!("Not shown to you: {own}\n");
        }
        let mut uses = self.uses.join("\n");
        if !uses.is_empty() {
            uses = format!("Uses of changed functions in other files:\n{uses}\n\n");
        }
        let n = parts.len();
        let text = |(at, part): (usize, diff::Part)| {
            let which = if n == 1 {
                String::new()
            } else {
                format!(", part {} of {n}", at + 1)
            };
            format!(
                "All files of the change:\n{list}\n{uses}The change{which}. Each line has its number after the change; + is new, - is gone.\n\n{}",
                part.text
            )
        };
        parts.into_iter().enumerate().map(text).collect()
    }

    /// Lists all files, with the functions that the diff shows of each.
    fn outline(&self) -> String {
        let summary = self.diff.summary();
        let rows = summary.lines().zip(&self.diff.files).map(|(row, file)| {
            let lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
            let mut names: Vec<String> = Vec::new();
            for name in lines.filter_map(|line| defined(&line.text)) {
                if !names.contains(&name) {
                    names.push(name);
                }
                if names.len() > OUTLINE_MAX {
                    break;
                }
            }
            let more = if names.len() > OUTLINE_MAX {
                ", …"
            } else {
                ""
            };
            names.truncate(OUTLINE_MAX);
            match names.is_empty() {
                true => format!("{row}\n"),
                false => format!("{row}: {}{more}\n", names.join(", ")),
            }
        });
        rows.collect()
    }

    /// Returns the files with too many unknown lines: a small diff can name millions of them. Files with fewer unknown
    /// lines come first, so that others do not take their room.
    fn too_long(&self) -> BTreeSet<&str> {
        let mut files: Vec<(u32, u32, &str)> = Vec::new();
        for (path, lines) in &self.lines {
            let last = lines.keys().next_back().copied().unwrap_or_default();
            let known = u32::try_from(lines.len()).unwrap_or(u32::MAX);
            files.push((last.saturating_sub(known), last, path));
        }
        files.sort_unstable();
        let mut unknown = 0;
        let too_long = files.into_iter().filter(|(gaps, last, _)| {
            if *last > LINES_MAX || unknown + gaps > UNKNOWN_MAX {
                return true;
            }
            unknown += gaps;
            false
        });
        too_long.map(|(_, _, path)| path).collect()
    }

    /// Returns the files after the change. Unknown lines are empty; files that would be too large are left out.
    pub(super) fn files(&self) -> BTreeMap<String, String> {
        let too_long = self.too_long();
        let known = self.lines.iter();
        let known = known.filter(|(path, _)| !too_long.contains(path.as_str()));
        let text = |lines: &BTreeMap<u32, String>| {
            let mut text = String::new();
            let mut next = 1;
            for (number, line) in lines {
                for _ in next..*number {
                    text.push('\n');
                }
                text.push_str(line);
                text.push('\n');
                next = number.saturating_add(1);
            }
            text
        };
        known
            .map(|(path, lines)| (path.clone(), text(lines)))
            .collect()
    }

    /// Returns the lines of the diff, as code hosts need them for comments.
    pub(super) fn places(&self) -> Vec<Place> {
        let places = self.diff.files.iter().filter_map(place);
        let known = |name: &String| !self.odd.contains(name);
        places
            .filter(|place| known(&place.file) && known(&place.old))
            .collect()
    }
}

/// Returns why only the lines of a diff are known.
fn unapplied(diff: &Diff, is_repository: bool) -> &'static str {
    match is_repository {
        false => "there is no repository here",
        true if diff.has_literals => "it changes binary files",
        true if diff.files.iter().any(|file| file.binary || file.textless) => {
            "it does not show the text of all files"
        }
        true => "the diff does not apply to HEAD or to the base branch",
    }
}

/// Returns notices about a diff: removed colors, and lines that are not read.
fn told(diff: &Diff, had_colors: bool) -> Vec<String> {
    let mut told = Vec::new();
    if had_colors {
        told.push(
            "removed the colors of the diff, and with them all color sequences in its lines (git diff --no-color has none)"
                .to_owned(),
        );
    }
    if let Some((first, lines)) = diff.unread {
        let lines = count(lines as u64, "line");
        told.push(format!(
            "{lines} of the diff were not read, from line {first} on: they may be the output of another diff program, and hide a file; {ALL_TEXT}"
        ));
    }
    told
}

/// Returns whether every line of a diff is where the diff says. Git also applies a diff whose lines have moved since,
/// and code hosts then know the lines by the diff's numbers.
fn agrees(diff: &Diff, lines: &Lines) -> bool {
    let mut changes: BTreeMap<&str, u32> = BTreeMap::new();
    for file in &diff.files {
        *changes.entry(file.path()).or_default() += 1;
    }
    // A series of commits can change a file more than once; each commit has its own line numbers.
    let once = diff
        .files
        .iter()
        .filter(|file| file.new.is_some() && changes[file.path()] == 1);
    once.filter(|file| !is_below(file.path(), KD)).all(|file| {
        let known = lines.get(file.path());
        let same = |(number, line): &(u32, &str)| {
            known.is_some_and(|known| known.get(number).is_some_and(|l| l == line))
        };
        file.after()
            .iter()
            .map(|(n, l)| (*n, *l))
            .all(|line| same(&line))
    })
}

/// Returns the first few distinct names, formatted for a notice.
fn named(all: impl Iterator<Item = String>) -> Option<String> {
    listed(all, NAMED_MAX)
}

/// Returns the first distinct names and the number of the others, formatted for a notice.
fn listed(all: impl Iterator<Item = String>, max: usize) -> Option<String> {
    let mut seen = BTreeSet::new();
    let all: Vec<String> = all.filter(|one| seen.insert(one.clone())).collect();
    first_of(&all, max)
}

/// Returns a file's lines that a comment can refer to: runs of added lines, and of unchanged lines with their old
/// number. Code hosts show, and accept, only few unchanged lines around each change.
fn place(file: &FileDiff) -> Option<Place> {
    let new = file.new.clone()?;
    let mut rows: Vec<(u32, u32, Option<u32>)> = Vec::new();
    for hunk in &file.hunks {
        let changed: Vec<bool> = (hunk.lines.iter())
            .map(|line| line.kind != LineKind::Context)
            .collect();
        let is_near = |at: usize| {
            let near = at.saturating_sub(CONTEXT)..changed.len().min(at + CONTEXT + 1);
            changed[near].contains(&true)
        };
        let mut old = hunk.old_first;
        for (at, (number, line)) in hunk.numbered().enumerate() {
            let before = (line.kind == LineKind::Context).then_some(old);
            old = old.saturating_add(u32::from(line.kind != LineKind::Added));
            let Some(number) = number.filter(|_| is_near(at)) else {
                continue;
            };
            let follows = |first: u32, last: u32, begin: Option<u32>| {
                let begin = begin.map(|begin| begin.saturating_add(number.saturating_sub(first)));
                last.checked_add(1) == Some(number) && begin == before
            };
            match rows.last_mut() {
                Some((first, last, begin)) if follows(*first, *last, *begin) => *last = number,
                _ => rows.push((number, number, before)),
            }
        }
    }
    Some(Place {
        old: file.old.clone().unwrap_or_else(|| new.clone()),
        file: new,
        rows,
    })
}

#[cfg(test)]
mod tests;
