//! Lines for people: on a terminal they are broken between their words, never inside one, and go on with an indent.

use kd_tui::text::wrap::width;
use std::io::{self, Write};

/// Minimum columns, even on a narrow terminal.
const ROOM_MIN: usize = 20;
/// Ends every style.
const RESET: &str = "\x1b[0m";

/// A stream whose lines fit the terminal.
pub(crate) struct Lines<W: Write> {
    to: W,
    /// The columns of the terminal; `None` leaves lines as they are.
    columns: Option<usize>,
    /// The beginning of a line.
    begun: Vec<u8>,
}

impl<W: Write> Lines<W> {
    /// Creates a stream; without columns it changes nothing.
    pub(super) fn new(to: W, columns: Option<usize>) -> Self {
        Self {
            to,
            columns: columns.map(|columns| columns.max(ROOM_MIN)),
            begun: Vec::new(),
        }
    }

    /// Writes the lines that are complete.
    fn pass_on(&mut self, columns: usize) -> io::Result<()> {
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(());
        };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        let mut out = String::new();
        for line in String::from_utf8_lossy(&whole).lines() {
            for part in broken(line, columns) {
                out += &part;
                out.push('\n');
            }
        }
        self.to.write_all(out.as_bytes())
    }
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let Some(columns) = self.columns else {
            return self.to.write(text);
        };
        self.begun.extend_from_slice(text);
        self.pass_on(columns)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&std::mem::take(&mut self.begun))?;
        self.to.flush()
    }
}

impl<W: Write> Drop for Lines<W> {
    fn drop(&mut self) {
        // Who wants to know whether it was written has flushed it.
        let _ = self.flush();
    }
}

/// A word of a line, with its styles, and the spaces before it.
struct Word<'a> {
    gap: usize,
    text: &'a str,
}

/// Breaks a line between its words. Code in backticks stays together where it fits, and a word longer than the line stays
/// whole, so that it can be copied.
pub(crate) fn broken(line: &str, columns: usize) -> Vec<String> {
    if width(&bare(line)) <= columns {
        return vec![line.to_owned()];
    }
    let words = words(line, columns);
    let indent = words.first().map_or(0, |word| word.gap);
    let is_row = words.iter().skip(1).any(|word| word.gap > 1);
    let hang = indent + if is_row { 4 } else { 2 };
    let (mut lines, mut now, mut used, mut is_new) = (Vec::new(), String::new(), 0, true);
    // The styles that the next line goes on with.
    let mut styles: Vec<&str> = Vec::new();
    for word in words {
        let columns_of_word = width(&bare(word.text));
        let gap = match (lines.is_empty(), is_new) {
            (true, true) => indent,
            (false, true) => hang,
            (_, false) => word.gap,
        };
        if !is_new && used + gap + columns_of_word > columns {
            if !styles.is_empty() {
                now += RESET;
            }
            lines.push(std::mem::take(&mut now));
            now = format!("{:hang$}{}", "", styles.concat());
            used = hang;
        } else {
            now += &" ".repeat(gap);
            used += gap;
        }
        now += word.text;
        used += columns_of_word;
        is_new = false;
        for style in escapes(word.text) {
            match style {
                RESET | "\x1b[m" => styles.clear(),
                style => styles.push(style),
            }
        }
    }
    lines.push(now);
    lines
}

/// Splits a line at its spaces, but not inside code that fits into the columns.
fn words(line: &str, columns: usize) -> Vec<Word<'_>> {
    let (mut words, mut start, mut gap, mut code) = (Vec::new(), None, 0, None);
    for (at, c) in line.char_indices() {
        match (c, code) {
            (_, Some(end)) if at < end => {}
            (' ', _) => {
                code = None;
                if let Some(start) = start.take() {
                    words.push(Word {
                        gap: std::mem::take(&mut gap),
                        text: &line[start..at],
                    });
                }
                gap += 1;
            }
            (c, _) => {
                start.get_or_insert(at);
                // After its end, the closing backtick opens nothing.
                let closes = code.take().is_some();
                if c == '`' && !closes {
                    let end = line[at + 1..].find('`').map(|end| at + 1 + end);
                    code = end.filter(|end| width(&line[at..=*end]) <= columns);
                }
            }
        }
    }
    if let Some(start) = start {
        words.push(Word {
            gap,
            text: &line[start..],
        });
    }
    words
}

/// Returns the escape sequences of a text.
fn escapes(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices('\x1b').map(|(at, _)| &text[at..]);
    starts.filter_map(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        Some(&rest[..=end])
    })
}

/// Returns the text without escape sequences.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                chars.by_ref().find(|c| c.is_ascii_alphabetic());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_styles() {
        let told = |line: &str, columns| broken(line, columns).join("|");
        assert_eq!(told("one two three", 13), "one two three");
        assert_eq!(told("  one two three", 9), "  one two|    three");
        assert_eq!(told("a  bb  ccc dd", 9), "a  bb|    ccc|    dd");
        assert_eq!(
            told("see `kd a b` or c", 14),
            "see `kd a b`|  or c",
            "code stays together"
        );
        assert_eq!(told("/a/very/long/path x", 6), "/a/very/long/path|  x");
        assert_eq!(
            told("\x1b[2mone two\x1b[0m three", 8),
            "\x1b[2mone two\x1b[0m|  three"
        );
        assert_eq!(
            told("\x1b[2mone two three\x1b[0m", 8),
            "\x1b[2mone two\x1b[0m|  \x1b[2mthree\x1b[0m"
        );
        assert_eq!(told("家家 家家 家家", 9), "家家 家家|  家家");
    }

    #[test]
    fn a_line_is_broken_once_it_is_complete() {
        let mut to = Vec::new();
        let mut lines = Lines::new(&mut to, Some(20));
        for piece in ["one two three ", "four five six\n", "seven"] {
            lines.write_all(piece.as_bytes()).unwrap();
        }
        drop(lines);
        let text = String::from_utf8(to).unwrap();
        assert_eq!(text, "one two three four\n  five six\nseven");
        let mut to = Vec::new();
        let long = "one two three four five six\n";
        Lines::new(&mut to, None)
            .write_all(long.as_bytes())
            .unwrap();
        assert_eq!(to, long.as_bytes());
    }
}
