//! The change under review: read from git, or from a file named by the user.
//!
//! Input: which change. Output: its diff, the lines around it, and its base. Runs no program of the repository, and
//! uses nothing of the change as a setting.

use crate::args::review::Review;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::review::kept::Place;
use crate::run::infile;
use crate::run::prose_review::{NO_GIT, failed, read, usual_base};
use crate::run::scratch;
use kd_app::Env;
use kd_app::words::count;
use kd_core::diff::{self, Diff, FileDiff, LineKind, shown_name};
use kd_store::git_command::{self, GitCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum bytes of `--pr FILE`.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Git's marker of a binary change.
const BINARY: &str = "GIT binary patch";
/// Enough context to include whole files: more lines than a compared file can have.
const WHOLE: &str = "--unified=20000000";
/// Maximum names to search for, uses shown of each, and bytes of a line.
const NAMES_MAX: usize = 8;
const USES_MAX: usize = 3;
const USE_BYTES_MAX: usize = 200;
/// Maximum lines of a known file.
const LINES_MAX: u32 = 1_000_000;
/// Maximum unknown lines of all files together.
const UNKNOWN_MAX: u32 = 4_000_000;
/// Maximum files in the list included with each part.
const LISTED_MAX: usize = 200;
/// Maximum functions listed per file.
const OUTLINE_MAX: usize = 8;
/// Maximum files named in a notice.
const NAMED_MAX: usize = 5;

/// A change, parsed and sanitized.
pub(super) struct Change {
    /// The base in the user's terms: a branch, a commit, `the index`.
    pub(super) base: String,
    pub(super) head: String,
    /// The commits, if known.
    pub(super) base_commit: Option<String>,
    pub(super) head_commit: Option<String>,
    /// Includes whole functions around each change.
    pub(super) diff: Diff,
    /// Lines after the change, by file: whole files if git has them, else those of the diff.
    pub(super) lines: BTreeMap<String, BTreeMap<u32, String>>,
    /// Uses of changed functions elsewhere.
    pub(super) uses: Vec<String>,
    pub(super) notices: Vec<String>,
    /// Whether the files on disk are not those under review.
    pub(super) elsewhere: bool,
    /// Files whose names are shown otherwise than they are: code hosts do not know them.
    odd: BTreeSet<String>,
    pub(super) git: Option<GitCommand>,
    /// The top of the working tree.
    pub(super) top: Option<PathBuf>,
}

/// The two sides, as arguments of `git diff`.
struct Sides {
    args: Vec<String>,
    base: String,
    head: String,
    base_commit: Option<String>,
    head_commit: Option<String>,
    after: After,
}

/// Where to find the files after the change.
enum After {
    Work,
    Index,
    /// A commit or a tree.
    Tree(String),
}

impl Change {
    pub(super) fn of(args: &Review, env: &Env) -> Result<Self, Error> {
        let folder = env.folder()?;
        let mut change = match &args.pr {
            Some(path) => Self::of_file(path, folder, env)?,
            None => Self::of_git(args, folder)?,
        };
        change.finish();
        if change.diff.files.is_empty() {
            let what = match &args.pr {
                Some(path) => format!("{} has no diff", path.display()),
                None => format!(
                    "nothing differs between {} and {}",
                    change.base, change.head
                ),
            };
            return Err(Error::new("no_change", Exit::Usage, what).next(
                "commit or add what is to be reviewed (untracked files are not included), or name another change: kd help review",
            ));
        }
        Ok(change)
    }

    /// Parses a diff. If it applies to a commit that git has, the whole files are known.
    fn of_file(path: &Path, folder: &Path, env: &Env) -> Result<Self, Error> {
        let named = path.display().to_string();
        let text = infile::read(path, FILE_BYTES_MAX)
            .map_err(|e| Error::usage(format!("the diff {named} cannot be read")).because(e))?;
        let diff = parse(&String::from_utf8_lossy(&text), &named)?;
        let git = GitCommand::new(folder).ok();
        let top = git.as_ref().and_then(|git| git.top().ok());
        let git = git.zip(top.as_deref()).map(|(git, top)| git.at(top));
        if let Some(git) = &git
            && let Some(change) = Self::applied(git, &diff, &text, &named, top.as_deref(), env)?
        {
            return Ok(change);
        }
        let why = if git.is_some() {
            "the diff does not apply to HEAD or to the base branch"
        } else {
            "there is no repository here"
        };
        Ok(Self {
            base: "the lines that it removes".into(),
            head: named,
            base_commit: None,
            head_commit: None,
            lines: lines(&diff),
            diff,
            uses: Vec::new(),
            notices: vec![format!(
                "only the lines of the diff are known ({why}): quotes of other lines cannot be checked"
            )],
            elsewhere: true,
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
    ) -> Result<Option<Self>, Error> {
        // Git would decompress these, whatever size they claim.
        if String::from_utf8_lossy(text).contains(BINARY) {
            return Ok(None);
        }
        let scratch = scratch::folder("kd-review-", env)?;
        let file = scratch.path().join("diff");
        std::fs::write(&file, text)
            .map_err(|e| Error::new("io", Exit::Error, "the diff cannot be copied").because(e))?;
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

    fn of_git(args: &Review, folder: &Path) -> Result<Self, Error> {
        let git = GitCommand::new(folder).map_err(|e| failed(&e).next(NO_GIT))?;
        let top = git.top().map_err(|e| failed(&e).next(NO_GIT))?;
        let git = git.at(&top);
        let sides = Sides::of(args, &git)?;
        Self::of_sides(&git, sides, Some(&top))
    }

    fn of_sides(git: &GitCommand, sides: Sides, top: Option<&Path>) -> Result<Self, Error> {
        let shown = git_diff(git, &sides, &["--unified=5", "--function-context"])?;
        let whole = git_diff(git, &sides, &[WHOLE])?;
        let diff = parse(&shown, "git diff")?;
        let lines = lines(&parse(&whole, "git diff").unwrap_or_else(|_| diff.clone()));
        let uses = uses(git, &sides, &diff);
        let mut notices = Vec::new();
        let on_disk = |id: &String| commit(git, "HEAD").is_ok_and(|head| head == *id);
        let elsewhere = matches!(&sides.after, After::Tree(id) if !on_disk(id));
        if matches!(sides.after, After::Work) {
            notices.extend(unknown(git)?);
        }
        Ok(Self {
            base: sides.base,
            head: sides.head,
            base_commit: sides.base_commit,
            head_commit: sides.head_commit,
            diff,
            lines,
            uses,
            notices,
            elsewhere,
            odd: BTreeSet::new(),
            git: Some(git.clone()),
            top: top.map(Path::to_path_buf),
        })
    }

    /// Sanitizes what members and users will read, and reports what was hidden in it.
    fn finish(&mut self) {
        let hidden = self.diff.clean();
        let names = hidden.iter().filter(|(_, line)| *line == 0);
        self.odd = names.map(|(path, _)| path.clone()).collect();
        let lines = std::mem::take(&mut self.lines);
        // A name with invisible characters must not replace another file's name: that file keeps its lines.
        let (odd, plain): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .partition(|(path, _)| shown_name(path) != *path);
        for (path, lines) in plain.into_iter().chain(odd) {
            let lines = lines.into_iter().map(|(n, line)| (n, one_line(&line)));
            let known = self.lines.entry(shown_name(&path));
            known.or_insert_with(|| lines.collect());
        }
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

    /// Describes the change in one line.
    pub(super) fn title(&self) -> String {
        let (added, removed) = self.diff.counts();
        format!(
            "review of {} to {}: {}, +{added} -{removed}",
            self.base,
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

    /// Returns the files with too many unknown lines: a small diff can name millions of them.
    fn too_long(&self) -> BTreeSet<&str> {
        let mut unknown = 0;
        let too_long = self.lines.iter().filter(|(_, lines)| {
            let last = lines.keys().next_back().copied().unwrap_or_default();
            let gaps = last.saturating_sub(u32::try_from(lines.len()).unwrap_or(u32::MAX));
            if last > LINES_MAX || unknown + gaps > UNKNOWN_MAX {
                return true;
            }
            unknown += gaps;
            false
        });
        too_long.map(|(path, _)| path.as_str()).collect()
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
                next = number + 1;
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

impl Sides {
    fn of(args: &Review, git: &GitCommand) -> Result<Self, Error> {
        if let Some(range) = &args.range {
            let Some((from, to)) = range.split_once("..") else {
                return Err(Error::usage(format!("`{range}` is not a range of commits"))
                    .next("kd review FROM..TO, or `kd review --branch BASE`"));
            };
            let (three, to) = to.strip_prefix('.').map_or((false, to), |to| (true, to));
            let or_head = |name: &str| {
                if name.is_empty() {
                    "HEAD".to_owned()
                } else {
                    name.to_owned()
                }
            };
            let (from, to) = (or_head(from), or_head(to));
            let (mut base, head) = (commit(git, &from)?, commit(git, &to)?);
            if three {
                base = merge_base(git, &base, &head, &from)?;
            }
            return Ok(Self {
                args: vec![base.clone(), head.clone()],
                base: from,
                head: to,
                base_commit: Some(base),
                head_commit: Some(head.clone()),
                after: After::Tree(head),
            });
        }
        if args.staged {
            // Before the first commit, everything is new.
            let head = commit(git, "HEAD").ok();
            let base = match &head {
                Some(head) => head.clone(),
                None => read(git, &["hash-object", "-t", "tree", "/dev/null"])?
                    .trim()
                    .to_owned(),
            };
            return Ok(Self {
                args: vec!["--cached".into(), base],
                base: if head.is_some() { "HEAD" } else { "nothing" }.to_owned(),
                head: "the index".into(),
                base_commit: head,
                head_commit: None,
                after: After::Index,
            });
        }
        let head = commit(git, "HEAD")?;
        let base = match args.branch.as_deref() {
            Some(base) if !base.is_empty() => base.to_owned(),
            _ => usual_base(git)?,
        };
        let since = merge_base(git, &commit(git, &base)?, &head, &base)?;
        let is_clean = read(git, &["status", "--porcelain", "--untracked-files=no"])?.is_empty();
        Ok(Self {
            args: vec![since.clone()],
            base,
            head: if is_clean { "HEAD" } else { "the working tree" }.to_owned(),
            base_commit: Some(since),
            head_commit: is_clean.then_some(head),
            after: After::Work,
        })
    }
}

/// Resolves a name to a commit. The user's name is never taken for an option.
fn commit(git: &GitCommand, name: &str) -> Result<String, Error> {
    let peeled = format!("{name}^{{commit}}");
    let args = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &peeled,
    ];
    let found = git.read(&args).unwrap_or_default();
    match found.trim() {
        "" => Err(Error::usage(format!("`{name}` is not a commit here"))
            .next("name a branch, a tag or a commit: `git log --oneline --all` lists them")),
        id => Ok(id.to_owned()),
    }
}

fn merge_base(git: &GitCommand, base: &str, head: &str, name: &str) -> Result<String, Error> {
    let found = read(git, &["merge-base", base, head])
        .map_err(|e| e.next(format!("{name} and this branch have no commit in common")))?;
    Ok(found.trim().to_owned())
}

fn git_diff(git: &GitCommand, sides: &Sides, how: &[&str]) -> Result<String, Error> {
    let mut args = vec![
        "diff",
        "--find-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--inter-hunk-context=0",
    ];
    args.extend(git_command::DIFF);
    args.extend(how);
    args.extend(sides.args.iter().map(String::as_str));
    args.extend(["--", ".", ":(exclude,top).kd"]);
    read(git, &args)
}

fn parse(text: &str, named: &str) -> Result<Diff, Error> {
    diff::read(text).map_err(|e| {
        Error::usage(format!("{named} is not a readable diff"))
            .because(e)
            .next("make it with `git diff`, `git format-patch --stdout` or `diff -u`")
    })
}

/// Returns whether every line of a diff is where the diff says. Git also applies a diff whose lines have moved since,
/// and code hosts then know the lines by the diff's numbers.
fn agrees(diff: &Diff, lines: &BTreeMap<String, BTreeMap<u32, String>>) -> bool {
    let mut changes: BTreeMap<&str, u32> = BTreeMap::new();
    for file in &diff.files {
        *changes.entry(file.path()).or_default() += 1;
    }
    // A series of commits can change a file more than once; each commit has its own line numbers.
    let once = diff
        .files
        .iter()
        .filter(|file| file.new.is_some() && changes[file.path()] == 1);
    once.filter(|file| !file.path().starts_with(".kd/"))
        .all(|file| {
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

/// Returns the lines of the changed files after the change; of deleted files, the removed lines.
fn lines(diff: &Diff) -> BTreeMap<String, BTreeMap<u32, String>> {
    let owned = |(number, line): (u32, &str)| (number, line.to_owned());
    let files = diff.files.iter().map(|file| {
        let lines = match file.new {
            Some(_) => file.after(),
            None => file.before(),
        };
        let lines = lines.into_iter().map(owned);
        (file.path().to_owned(), lines.collect())
    });
    files.collect()
}

/// Returns the first few distinct names, formatted for a notice.
fn named(all: impl Iterator<Item = String>) -> Option<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut more = "";
    for one in all {
        if shown.contains(&one) {
            continue;
        }
        if shown.len() == NAMED_MAX {
            more = " …";
            break;
        }
        shown.push(one);
    }
    (!shown.is_empty()).then(|| shown.join(", ") + more)
}

fn one_line(text: &str) -> String {
    kd_core::clean::clean_text(text).replace(['\n', '\r'], " ")
}

/// Returns untracked files, which no diff shows.
fn unknown(git: &GitCommand) -> Result<Option<String>, Error> {
    let others = read(
        git,
        &[
            "ls-files",
            "--others",
            "--exclude-standard",
            "--",
            ".",
            ":(exclude,top).kd",
        ],
    )?;
    let shown: Vec<&str> = others.lines().take(NAMED_MAX).collect();
    let more = if others.lines().count() > shown.len() {
        " …"
    } else {
        ""
    };
    Ok((!shown.is_empty()).then(|| {
        format!(
            "not reviewed, because untracked: {}{more}",
            shown.join(", ")
        )
    }))
}

/// Finds uses of the changed functions in other files. Leaves out what cannot be found.
fn uses(git: &GitCommand, sides: &Sides, diff: &Diff) -> Vec<String> {
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
        args.extend(["--", ".", ":(exclude,top).kd"]);
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
fn defined(line: &str) -> Option<String> {
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

/// Returns a file's lines that a comment can refer to: runs of added lines, and of unchanged lines with their old
/// number.
fn place(file: &FileDiff) -> Option<Place> {
    let new = file.new.clone()?;
    let mut rows: Vec<(u32, u32, Option<u32>)> = Vec::new();
    for hunk in &file.hunks {
        let mut old = hunk.old_first;
        for (number, line) in hunk.numbered() {
            let before = (line.kind == LineKind::Context).then_some(old);
            old = old.saturating_add(u32::from(line.kind != LineKind::Added));
            let Some(number) = number else { continue };
            match rows.last_mut() {
                Some((first, last, begin))
                    if last.checked_add(1) == Some(number)
                        && begin.map(|begin| begin + (number - *first)) == before =>
                {
                    *last = number;
                }
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
mod tests {
    use super::*;

    fn change(functions: usize) -> Change {
        let mut text = String::new();
        for file in ["one", "two"] {
            text +=
                &format!("--- a/src/{file}.rs\n+++ b/src/{file}.rs\n@@ -0,0 +1,{functions} @@\n");
            for at in 0..functions {
                text += &format!("+fn {file}_{at}() {{ /* {} */ }}\n", "x".repeat(1000));
            }
        }
        let diff = diff::read(&text).expect("a diff");
        Change {
            base: String::new(),
            head: String::new(),
            base_commit: None,
            head_commit: None,
            lines: lines(&diff),
            diff,
            uses: Vec::new(),
            notices: Vec::new(),
            elsewhere: false,
            odd: BTreeSet::new(),
            git: None,
            top: None,
        }
    }

    #[test]
    fn every_part_of_a_large_change_names_the_functions_of_the_others() {
        let parts = change(80).parts();
        assert!(parts.len() > 1);
        for part in &parts {
            for file in ["one", "two"] {
                let row = format!("src/{file}.rs (+80 -0): {file}_0, {file}_1,");
                assert!(part.contains(&row), "{row}: {}", &part[..400]);
            }
            assert!(part.contains("one_7, …\n"), "{}", &part[..400]);
        }
        let [whole] = change(2).parts().try_into().expect("one part");
        assert!(whole.contains("src/one.rs (+2 -0)\n"));
    }
}
