//! The diff parser. Lines inside a hunk are counted, so that file content cannot end a hunk or begin another file.

use super::name::{quoted, unquoted};
use super::{Diff, Endings, FileDiff, Hunk, Line, LineKind};
use std::fmt;

/// The reason why a text is not a readable diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The line, 1-based.
    pub line: usize,
    /// The reason it is invalid.
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Unreadable {}

/// The beginning of a file in git's diffs.
const GIT: &str = "diff --git ";

/// Maximum parents of a merge: git itself allows a few dozen.
const PARENTS_MAX: usize = 64;

/// Parses a unified diff, including combined diffs of merges. Skips text between the files, as in mails.
///
/// # Errors
/// If a hunk is truncated or has an invalid header.
pub fn read(text: &str) -> Result<Diff, Unreadable> {
    let lines = text.lines();
    let mut reader = Reader {
        lines: lines.collect(),
        is_mail: is_mail(text),
        returns: text.split('\n').map(|line| line.ends_with('\r')).collect(),
        at: 0,
        is_git: text.lines().any(|line| line.starts_with(GIT)),
        diff: Diff::default(),
        current: None,
    };
    reader.run()?;
    Ok(reader.diff)
}

/// Returns whether a text begins as a mail: its own text is between the files.
fn is_mail(text: &str) -> bool {
    const HEADERS: [&str; 3] = ["From ", "From: ", "Subject: "];
    let first = text.lines().find(|line| !line.trim().is_empty());
    let header = |line: &str| {
        let (name, _) = line.split_once(": ")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (!name.is_empty() && name.chars().all(is_name)).then_some(())
    };
    // Other headers may come first.
    let mut head = text.lines().take_while(|line| !line.trim().is_empty());
    first.is_some_and(|line| HEADERS.iter().any(|head| line.starts_with(head)))
        || first.and_then(header).is_some()
            && head.any(|line| HEADERS.iter().any(|head| line.starts_with(head)))
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    /// Whether each line ends with CRLF.
    returns: Vec<bool>,
    is_mail: bool,
    /// Whether a line `diff --git` was read: names of other files are then not in lines of their own.
    is_git: bool,
    at: usize,
    diff: Diff,
    current: Option<Header<'a>>,
}

/// The header of a file in a diff: the lines before its first hunk and between its hunks.
#[derive(Default)]
struct Header<'a> {
    /// The names after `diff --git`, unparsed.
    line: Option<&'a str>,
    /// The path of a combined diff.
    combined: Option<String>,
    old: Option<String>,
    new: Option<String>,
    /// Names of a rename or copy, which have no prefix.
    from: Option<String>,
    to: Option<String>,
    old_mode: Option<u32>,
    new_mode: Option<u32>,
    is_new: bool,
    is_deleted: bool,
    binary: bool,
    /// Whether the header says that the contents differ.
    differs: bool,
    endings: [Endings; 2],
    hunks: Vec<Hunk>,
}

/// Returns whether a line of a header says that the contents differ.
fn differs(line: &str) -> bool {
    /// The ids of the empty file: SHA-1 and SHA-256.
    const EMPTY: [&str; 2] = [
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    ];
    if let Some(share) = line.strip_prefix("similarity index ") {
        return share != "100%";
    }
    let Some(ids) = line.strip_prefix("index ") else {
        return line.starts_with("dissimilarity index ");
    };
    let ids = ids.split(' ').next().unwrap_or(ids);
    let is_id = |id: &str| id.len() > 3 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_empty = |id: &str| {
        id.bytes().all(|byte| byte == b'0') || EMPTY.iter().any(|empty| empty.starts_with(id))
    };
    match ids.split_once("..") {
        Some((old, new)) if is_id(old) && is_id(new) => {
            old != new && !(is_empty(old) && is_empty(new))
        }
        _ => false,
    }
}

/// Returns whether a line is one that git writes outside of hunks: of a header, of a commit, or of a binary patch.
fn is_known(line: &str) -> bool {
    const HEADS: &[&str] = &[
        "index ",
        "old mode ",
        "new mode ",
        "mode ",
        "new file mode ",
        "deleted file mode ",
        "similarity index ",
        "dissimilarity index ",
        "rename ",
        "copy ",
        "Binary files ",
        "GIT binary patch",
        "commit ",
        "tree ",
        "parent ",
        "tag ",
        "Tagger:",
        "Author:",
        "AuthorDate:",
        "Commit:",
        "CommitDate:",
        "Date:",
        "Merge:",
        "Reflog",
        "Notes",
        "gpg: ",
        "Submodule ",
        "---",
        "+++ ",
        "\\ ",
        // Messages of commits, commits of submodules.
        "    ",
        "  > ",
        "  < ",
    ];
    let is_stat =
        || line.starts_with(' ') && [" | ", " changed, "].iter().any(|w| line.contains(w));
    line.trim().is_empty() || HEADS.iter().any(|head| line.starts_with(head)) || is_stat()
}

/// Returns the path of a line that names the commits of a submodule: `sub 1234567..89abcde:`.
fn submodule(rest: &str) -> Option<&str> {
    let is_range = |word: &str| {
        let word = word.trim_end_matches(':');
        let (old, new) = word.split_once("...").or_else(|| word.split_once(".."))?;
        let is_id = |id: &str| id.len() > 3 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_id(old) && is_id(new)).then_some(())
    };
    let spaces = rest.match_indices(' ').map(|(at, _)| at);
    let at = spaces.into_iter().find(|at| {
        let word = rest[at + 1..].split(' ').next().unwrap_or_default();
        is_range(word).is_some()
    })?;
    Some(&rest[..at])
}

impl<'a> Reader<'a> {
    fn run(&mut self) -> Result<(), Unreadable> {
        while let Some(line) = self.lines.get(self.at).copied() {
            self.at += 1;
            if let Some(names) = line.strip_prefix(GIT) {
                self.begin(Header {
                    line: Some(names),
                    ..Header::default()
                });
            } else if let Some(path) = ["diff --cc ", "diff --combined "]
                .iter()
                .find_map(|head| line.strip_prefix(head))
            {
                self.begin(Header {
                    combined: Some(unquoted(path)),
                    ..Header::default()
                });
            } else if line.starts_with("--- ")
                && self
                    .lines
                    .get(self.at)
                    .is_some_and(|l| l.starts_with("+++ "))
            {
                self.names(line);
            } else if line.starts_with("@@") && self.current.is_some() {
                self.hunk(line)?;
            } else {
                self.extended(line);
            }
        }
        self.finish();
        Ok(())
    }

    fn begin(&mut self, header: Header<'a>) {
        self.finish();
        self.current = Some(header);
    }

    /// Handles `---` and `+++`: for the file of the last `diff --git`, or for a new one.
    fn names(&mut self, old: &str) {
        let new = self.lines[self.at];
        self.at += 1;
        let has_names = |header: &Header<'_>| header.old.is_some() || header.new.is_some();
        if self.current.as_ref().is_none_or(has_names) {
            self.begin(Header::default());
        }
        let header = self.current.get_or_insert_default();
        header.old = Some(named(&old[4..]));
        header.new = Some(named(&new[4..]));
    }

    /// Handles the lines between `diff --git` and the first hunk, and the lines of files that have no other.
    fn extended(&mut self, line: &str) {
        if let Some(file) = self.alone(line) {
            self.finish();
            self.diff.files.push(file);
            return;
        }
        let is_known = !self.is_git || self.is_mail || is_known(line);
        let has_files = self.current.is_some() || !self.diff.files.is_empty();
        let Some(header) = self
            .current
            .as_mut()
            .filter(|header| header.hunks.is_empty())
        else {
            if has_files && !is_known {
                self.unread();
            }
            return;
        };
        let after = |prefixes: [&str; 2]| {
            let path = prefixes.iter().find_map(|p| line.strip_prefix(p));
            path.map(unquoted)
        };
        if let Some(path) = after(["rename from ", "copy from "]) {
            header.from = Some(path);
        }
        if let Some(path) = after(["rename to ", "copy to "]) {
            header.to = Some(path);
        }
        let is_literal = line == "GIT binary patch";
        header.modes(line);
        header.differs |= differs(line);
        header.binary |=
            is_literal || (line.starts_with("Binary files ") && line.ends_with(" differ"));
        self.diff.has_literals |= is_literal;
        if !is_known && !header.binary {
            self.unread();
        }
    }

    /// Returns the file that a line names which is not part of another file: a submodule of which git lists commits, and
    /// the files of which `diff -r` only says that they differ or exist.
    fn alone(&self, line: &str) -> Option<FileDiff> {
        if self.is_mail {
            return None;
        }
        if let Some(rest) = line.strip_prefix("Submodule ") {
            const COMMIT: u32 = 0o160_000;
            let path = submodule(rest)?;
            return Some(FileDiff {
                old: Some(path.to_owned()),
                new: Some(path.to_owned()),
                old_mode: Some(COMMIT),
                new_mode: Some(COMMIT),
                textless: true,
                ..FileDiff::default()
            });
        }
        if self.is_git {
            return None;
        }
        let binary = |line: &'a str| line.strip_prefix("Binary files ")?.strip_suffix(" differ");
        let differs = |line: &'a str| line.strip_prefix("Files ")?.strip_suffix(" differ");
        let names = self.lines.get(self.at.checked_sub(1)?)?;
        if let Some((old, new)) = binary(names)
            .or(differs(names))
            .and_then(|n| n.split_once(" and "))
        {
            let (old, new) = without_prefixes(old.to_owned(), new.to_owned());
            return Some(FileDiff {
                old,
                new,
                binary: true,
                ..FileDiff::default()
            });
        }
        let (folder, name) = line.strip_prefix("Only in ")?.split_once(": ")?;
        let path = format!("{folder}/{name}");
        let (old, new) = without_prefixes(path.clone(), path);
        Some(FileDiff {
            old,
            new,
            textless: true,
            ..FileDiff::default()
        })
    }

    /// Counts a line of no known form.
    fn unread(&mut self) {
        let (_, count) = self.diff.unread.get_or_insert((self.at, 0));
        *count += 1;
    }

    fn hunk(&mut self, head: &str) -> Result<(), Unreadable> {
        let begin = self.at;
        let fail = |line: usize, why: &str| Unreadable {
            line,
            why: why.to_owned(),
        };
        let Some((mut old_left, (new_first, mut new_left), old_first, heading)) = ranges(head)
        else {
            return Err(fail(begin, "this is not the head of a hunk"));
        };
        let mut hunk = Hunk {
            old_first,
            new_first,
            heading: heading.trim().to_owned(),
            lines: Vec::new(),
        };
        while new_left > 0 || old_left.iter().any(|left| *left > 0) {
            let Some(line) = self.lines.get(self.at).copied() else {
                return Err(fail(begin, "the hunk that begins here has no end"));
            };
            self.at += 1;
            if line.starts_with('\\') {
                self.end(hunk.lines.last(), |side| side.is_open = true);
                continue;
            }
            let columns = old_left.len();
            // Mail programs strip the space of an empty line.
            let (marks, text) = match line.is_empty() {
                true => (" ", ""),
                false => match line.is_char_boundary(columns) && line.len() >= columns {
                    true => line.split_at(columns),
                    false => return Err(fail(self.at, "a hunk ends too early")),
                },
            };
            if !marks.bytes().all(|mark| matches!(mark, b' ' | b'+' | b'-')) {
                return Err(fail(self.at, "a hunk ends too early"));
            }
            let removed = marks.contains('-');
            let kind = match (removed, marks.contains('+')) {
                (true, _) => LineKind::Removed,
                (_, true) => LineKind::Added,
                _ => LineKind::Context,
            };
            let stays = if removed { b'-' } else { b' ' };
            for (at, left) in old_left.iter_mut().enumerate() {
                let mark = marks.as_bytes().get(at).copied().unwrap_or(b' ');
                if mark == stays {
                    *left = left
                        .checked_sub(1)
                        .ok_or_else(|| fail(self.at, "a hunk has more lines than its head says"))?;
                }
            }
            if !removed {
                new_left = new_left
                    .checked_sub(1)
                    .ok_or_else(|| fail(self.at, "a hunk has more lines than its head says"))?;
            }
            hunk.lines.push(Line {
                kind,
                text: text.to_owned(),
            });
            // Mail programs send every line with CRLF.
            let has_return = self.returns[self.at - 1] && !self.returns[begin - 1];
            self.end(hunk.lines.last(), |side| match has_return {
                true => side.crlf = true,
                false => side.lf = true,
            });
        }
        if (self.lines.get(self.at)).is_some_and(|line| line.starts_with('\\')) {
            self.end(hunk.lines.last(), |side| side.is_open = true);
        }
        if let Some(header) = &mut self.current {
            header.hunks.push(hunk);
        }
        Ok(())
    }

    /// Notes the ending of a line for the sides that have the line.
    fn end(&mut self, line: Option<&Line>, note: impl Fn(&mut Endings)) {
        if let (Some(header), Some(line)) = (&mut self.current, line) {
            let sides = match line.kind {
                LineKind::Context => &mut header.endings[..],
                LineKind::Removed => &mut header.endings[..1],
                LineKind::Added => &mut header.endings[1..],
            };
            sides.iter_mut().for_each(note);
        }
    }

    fn finish(&mut self) {
        if let Some(header) = self.current.take()
            && let Some(file) = header.file()
        {
            self.diff.files.push(file);
        }
    }
}

impl Header<'_> {
    /// Handles the lines that say a mode.
    fn modes(&mut self, line: &str) {
        let after = |prefix: &str| {
            let mode = line.strip_prefix(prefix)?;
            u32::from_str_radix(mode, 8)
                .ok()
                .filter(|mode| *mode < 1 << 16)
        };
        if let Some(mode) = after("old mode ") {
            self.old_mode = Some(mode);
        }
        if let Some(mode) = after("new mode ") {
            self.new_mode = Some(mode);
        }
        if line.starts_with("new file mode ") {
            self.is_new = true;
            self.new_mode = after("new file mode ");
        }
        if line.starts_with("deleted file mode ") {
            self.is_deleted = true;
            self.old_mode = after("deleted file mode ");
        }
        // If the mode is the same on both sides, it is after the ids.
        if let Some(ids) = line.strip_prefix("index ")
            && let Some((_, mode)) = ids.rsplit_once(' ')
            && let Ok(mode) = u32::from_str_radix(mode, 8)
        {
            (self.old_mode, self.new_mode) = (Some(mode), Some(mode));
        }
    }

    fn file(self) -> Option<FileDiff> {
        let (old, new) = match (self.old, self.new, self.combined, self.line) {
            (Some(old), Some(new), _, _) => {
                let (old, new) = without_prefixes(old, new);
                (self.from.or(old), self.to.or(new))
            }
            (_, _, Some(path), _) => (Some(path.clone()), Some(path)),
            // The line alone cannot separate names of unequal length.
            (_, _, _, Some(_)) if self.from.is_some() && self.to.is_some() => (self.from, self.to),
            (_, _, _, Some(line)) => {
                let (old, new) = of_line(line)?;
                (self.from.or(Some(old)), self.to.or(Some(new)))
            }
            _ => return None,
        };
        let old = old.filter(|_| !self.is_new);
        let new = new.filter(|_| !self.is_deleted);
        (old.is_some() || new.is_some()).then_some(FileDiff {
            old,
            new,
            old_mode: self.old_mode,
            new_mode: self.new_mode,
            binary: self.binary,
            textless: self.differs && !self.binary && self.hunks.is_empty(),
            endings: self.endings,
            hunks: self.hunks,
        })
    }
}

/// The line counts left in each parent, the range after, the first line before, and the text after the last `@@`.
type Ranges<'a> = (Vec<u32>, (u32, u32), u32, &'a str);

/// Parses a hunk header: `@@ -1,2 +3,4 @@ heading`, with one more `@` for each further parent.
fn ranges(head: &str) -> Option<Ranges<'_>> {
    let signs = head.bytes().take_while(|byte| *byte == b'@').count();
    let parents = signs
        .checked_sub(1)
        .filter(|n| (1..=PARENTS_MAX).contains(n))?;
    let (signs, rest) = head.split_at(signs);
    let (ranges, heading) = rest.strip_prefix(' ')?.split_once(&format!(" {signs}"))?;
    let mut words = ranges.split(' ');
    let mut old = Vec::with_capacity(parents);
    for _ in 0..parents {
        old.push(range(words.next()?.strip_prefix('-')?)?);
    }
    let new = range(words.next()?.strip_prefix('+')?)?;
    let old_first = old.first()?.0;
    let left = old.into_iter().map(|(_, count)| count).collect();
    words
        .next()
        .is_none()
        .then_some((left, new, old_first, heading))
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (first, count) = text.split_once(',').unwrap_or((text, "1"));
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| digits)
    };
    Some((number(first)?, number(count)?))
}

/// Parses the name after `---` or `+++`: quoted, or up to the tab before a date.
fn named(text: &str) -> String {
    match text.starts_with('"') {
        true => unquoted(text),
        false => text.split('\t').next().unwrap_or(text).to_owned(),
    }
}

/// Parses both names of `diff --git`, if no other line gives them.
fn of_line(line: &str) -> Option<(String, String)> {
    let (old, new) = match quoted(line) {
        Some((old, rest)) => (old, unquoted(rest.strip_prefix(' ')?)),
        None => match line.find(" \"") {
            Some(at) => (line[..at].to_owned(), unquoted(&line[at + 1..])),
            // Without quotes, both names are equal except for their prefix, or a rename line gives them.
            None => {
                let middle = line.len() / 2;
                let (old, new) = (line.get(..middle)?, line.get(middle..)?.strip_prefix(' ')?);
                (old.to_owned(), new.to_owned())
            }
        },
    };
    let (old, new) = without_prefixes(old, new);
    Some((old?, new?))
}

/// Strips git's prefixes: `a/` and `b/`, or the prefixes of `diff.mnemonicPrefix`. Equal names have none.
fn without_prefixes(old: String, new: String) -> (Option<String>, Option<String>) {
    const NOTHING: &str = "/dev/null";
    let strip = |path: &str| {
        let (prefix, rest) = path.split_once('/')?;
        let known = matches!(prefix, "a" | "b" | "c" | "i" | "o" | "w");
        (known && !rest.is_empty()).then(|| rest.to_owned())
    };
    let keep = |path: String| (path != NOTHING).then_some(path);
    if old == new {
        return (keep(old), keep(new));
    }
    match (old.as_str(), new.as_str()) {
        (NOTHING, _) => (None, Some(strip(&new).unwrap_or(new))),
        (_, NOTHING) => (Some(strip(&old).unwrap_or(old)), None),
        _ => match (strip(&old), strip(&new)) {
            (Some(old), Some(new)) => (Some(old), Some(new)),
            _ => (Some(old), Some(new)),
        },
    }
}
