//! Lines that a build service does not interpret as a command.
//!
//! Runners of code hosts read what a job prints: a line that begins with `::error::`, after any spaces, or contains
//! `##[error]` or `##vso[…]` is a command. What members say must not become one.

use std::borrow::Cow;

/// Commands of the form `::NAME …::`.
const COMMANDS: &[&str] = &[
    "add-mask",
    "add-matcher",
    "add-path",
    "debug",
    "echo",
    "endgroup",
    "error",
    "group",
    "internal-set-repo-path",
    "notice",
    "remove-matcher",
    "save-state",
    "set-env",
    "set-output",
    "stop-commands",
    "warning",
];
/// Marks that count anywhere in a line.
const MARKS: &[&str] = &["##[", "##vso["];

/// Returns a line without commands: with a space in each mark. Other lines, code with `::` included, stay as they are.
pub fn inert(line: &str) -> Cow<'_, str> {
    match is_command(line) {
        true => Cow::Owned(without_marks(&line.replacen("::", ": :", 1)).into_owned()),
        false => without_marks(line),
    }
}

fn without_marks(line: &str) -> Cow<'_, str> {
    if !has_mark(line) {
        return Cow::Borrowed(line);
    }
    let spaced = |line: String, mark: &&str| line.replace(mark, &mark.replacen("##", "# #", 1));
    Cow::Owned(MARKS.iter().fold(line.to_owned(), spaced))
}

/// A stream of text without commands, in pieces of any size.
///
/// A piece is returned as soon as it cannot become a command; the rest of a line is held until then.
#[derive(Debug, Default)]
pub struct Guard {
    held: Vec<u8>,
    /// Whether the beginning of the current line has been returned.
    is_begun: bool,
}

impl Guard {
    /// Takes a piece and returns the text that can be written now: all lines that end in it, without commands.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in piece.split_inclusive(|b| matches!(b, b'\n' | b'\r')) {
            self.held.extend_from_slice(part);
            if part.ends_with(b"\n") || part.ends_with(b"\r") {
                self.release(self.held.len(), &mut out);
                self.is_begun = false;
            }
        }
        out
    }

    /// Returns the beginning of an unfinished line, if it cannot become a command.
    pub fn flush(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let whole = self
            .held
            .utf8_chunks()
            .next()
            .map_or(0, |c| c.valid().len());
        let line = String::from_utf8_lossy(&self.held[..whole]);
        let start = line.trim_start();
        if self.is_begun || !(start.is_empty() || start.starts_with(':')) {
            let is_open = |at: &usize| MARKS.iter().any(|mark| mark.starts_with(&line[*at..]));
            let hashes = line.match_indices('#').map(|(at, _)| at);
            let until = hashes.filter(|at| is_open(at)).min().unwrap_or(whole);
            self.release(until, &mut out);
        }
        out
    }

    /// Returns all that is held, at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.release(self.held.len(), &mut out);
        out
    }

    fn release(&mut self, until: usize, out: &mut Vec<u8>) {
        if until == 0 {
            return;
        }
        let rest = self.held.split_off(until);
        let line = std::mem::replace(&mut self.held, rest);
        let line = String::from_utf8_lossy(&line);
        let line = match self.is_begun {
            true => without_marks(&line),
            false => inert(&line),
        };
        out.extend_from_slice(line.as_bytes());
        self.is_begun = true;
    }
}

/// Returns JSON that contains no marks: their second `#` is escaped.
pub fn inert_json(json: String) -> String {
    match has_mark(&json) {
        true => MARKS.iter().fold(json, |json, mark| {
            json.replace(mark, &mark.replacen("##", "#\\u0023", 1))
        }),
        false => json,
    }
}

fn has_mark(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark))
}

/// Returns whether a line begins with a command.
fn is_command(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("::") else {
        return false;
    };
    let name = rest.split([' ', ':']).next().unwrap_or_default();
    rest.contains("::") && COMMANDS.iter().any(|one| one.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_lose_their_marks_and_nothing_else_changes() {
        for (line, safe) in [
            ("::error::x", ": :error::x"),
            (
                "  \t::Error file=a.rs,line=1::x",
                "  \t: :Error file=a.rs,line=1::x",
            ),
            (
                "\u{a0}::stop-commands::token",
                "\u{a0}: :stop-commands::token",
            ),
            ("a ##[error]b ##[group]", "a # #[error]b # #[group]"),
            (
                "##vso[task.setvariable variable=x]y",
                "# #vso[task.setvariable variable=x]y",
            ),
            ("::error::##[error]", ": :error::# #[error]"),
        ] {
            assert_eq!(inert(line), safe);
            assert_eq!(inert(safe), safe, "twice is once");
        }
        for line in [
            "",
            "::std::mem::swap(a, b);",
            "std::error::Error",
            "::error",
            "use ::error_stack::Report;",
            "#[derive(Debug)]",
            "## Title [x]",
            "see ::error::x",
        ] {
            assert_eq!(inert(line), line);
        }
    }

    #[test]
    fn a_stream_cut_anywhere_holds_no_command_and_loses_nothing() {
        let text = "one\n::error::x\n  ::add-mask::é\rtwo ##[group]a\n#\n##\n##v##vso[x]y # ##\n::std::mem\n\n\u{a0}::debug::z";
        let whole: String = text
            .split_inclusive(['\n', '\r'])
            .map(|line| inert(line).into_owned())
            .collect();
        assert_ne!(whole, text);
        for size in 1..=text.len() {
            for flushes in [false, true] {
                let mut guard = Guard::default();
                let mut out = Vec::new();
                for piece in text.as_bytes().chunks(size) {
                    out.extend(guard.push(piece));
                    if flushes {
                        out.extend(guard.flush());
                    }
                }
                out.extend(guard.finish());
                assert_eq!(
                    String::from_utf8(out).unwrap(),
                    whole,
                    "in pieces of {size}"
                );
            }
        }
    }

    #[test]
    fn a_flush_returns_what_cannot_become_a_command() {
        let mut guard = Guard::default();
        for (piece, shown) in [
            ("The ans", "The ans"),
            ("wer ", "wer "),
            ("# is #", "# is "),
            ("4", "#4"),
        ] {
            assert!(guard.push(piece.as_bytes()).is_empty());
            assert_eq!(guard.flush(), shown.as_bytes());
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a": ["##[error]x", "###[", "##vso[a]", "##"]});
        let json = inert_json(value.to_string());
        assert!(!json.contains("##[") && !json.contains("##vso["), "{json}");
        let back: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back, value);
    }
}
