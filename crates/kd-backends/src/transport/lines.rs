//! Lines out of bytes. Comes in: bytes in any pieces. Goes out: lines, ended by the byte `\n` and nothing else (JSON
//! strings hold U+2028 and other line ends of Unicode), without their end.

/// Longest line, in bytes: a whole answer can stand on one line, and 200 KB of it have been seen.
pub const LINE_MAX: usize = 32 * 1024 * 1024;

/// What was found up to a line end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line, perhaps empty.
    Whole(&'a [u8]),
    /// A line that was longer than the limit, and its length in bytes. Its text is gone.
    TooLong(u64),
}

/// Cuts lines; holds one unfinished line.
#[derive(Debug)]
pub struct Lines {
    held: Vec<u8>,
    /// Bytes of a line that is already longer than the limit.
    skipped: u64,
    max: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self::with_max(LINE_MAX)
    }
}

impl Lines {
    /// Lines of at most so many bytes.
    pub fn with_max(max: usize) -> Self {
        Self {
            held: Vec::new(),
            skipped: 0,
            max,
        }
    }

    /// Takes bytes and hands out every line that they end.
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

    /// The stream ended: the line that no line end closed, if there is one that is not too long.
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
        // One huge line should not keep its memory for the rest of the turn.
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
