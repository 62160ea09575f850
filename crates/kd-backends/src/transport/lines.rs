//! Splits bytes into lines at `\n` and nothing else (JSON strings contain U+2028 and other Unicode line ends).

/// Maximum line length in bytes: an answer can be a single line, and lines of 200 KB occur.
pub const LINE_MAX: usize = 32 * 1024 * 1024;

/// A line found in the input, without its line ending.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line, possibly empty.
    Whole(&'a [u8]),
    /// The length in bytes of a line over the limit. Its text is discarded.
    TooLong(u64),
}

/// Splits lines; holds one incomplete line.
#[derive(Debug)]
pub struct Lines {
    held: Vec<u8>,
    /// Bytes of the current line, if it is over the limit already.
    skipped: u64,
    max: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self::with_max(LINE_MAX)
    }
}

impl Lines {
    /// Creates a splitter for lines of at most `max` bytes.
    pub fn with_max(max: usize) -> Self {
        Self {
            held: Vec::new(),
            skipped: 0,
            max,
        }
    }

    /// Takes bytes and emits every line that they complete.
    pub fn push(&mut self, bytes: &[u8], mut line: impl FnMut(Line<'_>)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (head, tail) = (&rest[..end], &rest[end + 1..]);
            if self.held.is_empty() && self.skipped == 0 && head.len() <= self.max {
                line(Line::Whole(head));
            } else {
                self.hold(head);
                if self.skipped > 0 {
                    line(Line::TooLong(self.skipped));
                } else {
                    line(Line::Whole(&self.held));
                }
                self.clear();
            }
            rest = tail;
        }
        self.hold(rest);
    }

    /// Handles the end of the stream: returns an unterminated last line, unless it is too long.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        let held = std::mem::take(&mut self.held);
        let skipped = std::mem::take(&mut self.skipped);
        (skipped == 0 && !held.is_empty()).then_some(held)
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.skipped > 0 {
            self.skipped += bytes.len() as u64;
        } else if self.held.len() + bytes.len() > self.max {
            self.skipped = (self.held.len() + bytes.len()) as u64;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn clear(&mut self) {
        self.skipped = 0;
        self.held.clear();
        // A huge line should not keep its memory for the rest of the turn.
        self.held.shrink_to(64 * 1024);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(max: usize, pieces: &[&[u8]]) -> (Vec<String>, Option<Vec<u8>>) {
        let mut lines = Lines::with_max(max);
        let mut out = Vec::new();
        for piece in pieces {
            lines.push(piece, |line| {
                out.push(match line {
                    Line::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                    Line::TooLong(length) => format!("too long: {length}"),
                });
            });
        }
        (out, lines.finish())
    }

    #[test]
    fn cuts_do_not_matter_and_only_the_byte_ends_a_line() {
        let text = "a\r\nb\u{2028}c\n\nd".as_bytes();
        let whole = all(64, &[text]);
        assert_eq!(whole.0, ["a\r", "b\u{2028}c", ""]);
        assert_eq!(whole.1.as_deref(), Some(&b"d"[..]));
        for cut in 0..=text.len() {
            assert_eq!(
                all(64, &[&text[..cut], &text[cut..]]),
                whole,
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_line_that_is_too_long_costs_itself_only() {
        for cut in 0..12 {
            let text = b"ok\n12345678\nok\n";
            let (lines, rest) = all(7, &[&text[..cut], &text[cut..]]);
            assert_eq!(lines, ["ok", "too long: 8", "ok"], "cut at {cut}");
            assert_eq!(rest, None);
        }
        assert_eq!(all(7, &[b"1234", b"5678", b"9"]), (vec![], None));
    }
}
