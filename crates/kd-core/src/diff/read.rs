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
        returns: text.split('\n').map(|line| line.ends_with('\r')).collect(),
        at: 0,
        diff: Diff::default(),
        current: None,
    };
    reader.run()?;
    Ok(reader.diff)
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    /// Whether each line ends with CRLF.
    returns: Vec<bool>,
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
    endings: [Endings; 2],
    hunks: Vec<Hunk>,
}

impl<'a> Reader<'a> {
    fn run(&mut self) -> Result<(), Unreadable> {
        while let Some(line) = self.lines.get(self.at).copied() {
            self.at += 1;
            if let Some(names) = line.strip_prefix("diff --git ") {
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

    /// Handles the lines between `diff --git` and the first hunk.
    fn extended(&mut self, line: &str) {
        let Some(header) = &mut self.current else {
            return;
        };
        if !header.hunks.is_empty() {
            return;
        }
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
        header.binary |=
            is_literal || (line.starts_with("Binary files ") && line.ends_with(" differ"));
        self.diff.has_literals |= is_literal;
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
