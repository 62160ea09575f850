//! Paints a region of lines below the printed output, and repaints it in place. Takes the lines of the next frame, or
//! text to print above them; returns the bytes to write.
//!
//! Between two frames the cursor stays at the first column of the region's first line. A resize may rewrap the lines
//! below, but never moves that position, so the next frame starts there and clears everything below: no rows are
//! counted, and the scrollback is never touched. Each frame is one synchronized update and writes only changed lines.

use crate::paint::{BEGIN, END};
use std::fmt::Write as _;
use std::time::Duration;

/// Time between frames for output of members. Thirty per second are smooth; more would only cost time.
pub const FRAME: Duration = Duration::from_millis(33);

const CLEAR_LINE_END: &str = "\u{1b}[K";
/// After the text of a line: clears its rest and everything below.
const CLEAR_REST: &str = "\u{1b}[J";
/// Clears this line from the first column, and everything below. The blank is for tmux, which moves the screen into its
/// history when it is cleared from the very first cell.
const CLEAR_BELOW: &str = " \u{1b}[J\r\u{1b}[K";

/// A repainted region, and what the screen shows of it.
#[derive(Debug, Default)]
pub struct Region {
    /// The lines on the screen.
    painted: Vec<String>,
    /// Whether the screen may differ from `painted`.
    stale: bool,
}

impl Region {
    /// Returns whether the screen shows nothing of it.
    pub fn is_empty(&self) -> bool {
        self.painted.is_empty()
    }

    /// Returns the lines on the screen.
    pub fn lines(&self) -> Vec<String> {
        self.painted.clone()
    }

    /// Marks the screen as unknown, after another program wrote to it or it was resized.
    pub fn forget(&mut self) {
        self.stale = true;
    }

    /// Returns the bytes that show these lines, each narrower than the terminal; `None` if they are already shown.
    pub fn frame(&mut self, lines: Vec<String>) -> Option<String> {
        if lines == self.painted && !self.stale {
            return None;
        }
        let mut out = String::from(BEGIN);
        paint(&mut out, &self.painted, &lines, self.stale);
        out.push_str(END);
        self.painted = lines;
        self.stale = false;
        Some(out)
    }

    /// Returns the bytes that print a text above the region, which then shows these lines, in one update.
    pub fn print(&mut self, text: &str, lines: Vec<String>) -> String {
        let mut out = String::with_capacity(text.len() + 64);
        out.push_str(BEGIN);
        for line in text.lines() {
            out.push_str(line);
            out.push_str(CLEAR_LINE_END);
            out.push_str("\r\n");
        }
        paint(&mut out, &[], &lines, true);
        out.push_str(END);
        self.painted = lines;
        self.stale = false;
        out
    }

    /// Returns the bytes that remove it from the screen for a moment; empty if nothing is shown.
    pub fn cover(&self) -> &'static str {
        match self.is_empty() {
            true => "",
            false => CLEAR_BELOW,
        }
    }

    /// Returns the bytes that show it again after [`Region::cover`]; empty if nothing was shown.
    pub fn uncover(&self) -> String {
        let mut out = String::new();
        if !self.is_empty() {
            paint(&mut out, &[], &self.painted, true);
        }
        out
    }

    /// Returns the bytes that remove it; empty if nothing is shown.
    pub fn clear(&mut self) -> &'static str {
        let bytes = self.cover();
        self.painted.clear();
        bytes
    }
}

/// Paints `new` over `old` from the first line of the region, and returns there. `all` paints every line, and clears
/// everything below.
fn paint(out: &mut String, old: &[String], new: &[String], all: bool) {
    for (i, line) in new.iter().enumerate() {
        if i > 0 {
            out.push_str("\r\n");
        }
        if all || old.get(i) != Some(line) {
            out.push_str(line);
            out.push_str(CLEAR_LINE_END);
        }
    }
    if new.is_empty() {
        out.push_str(CLEAR_BELOW);
    } else if all {
        out.push_str(CLEAR_REST);
    } else if old.len() > new.len() {
        out.push_str("\r\n");
        out.push_str(CLEAR_BELOW);
        out.push_str("\u{1b}[A");
    }
    out.push('\r');
    if new.len() > 1 {
        let _ = write!(out, "\u{1b}[{}A", new.len() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn shown(bytes: &str) -> String {
        let mut parser = vt100::Parser::new(12, 40, 100);
        parser.process(bytes.as_bytes());
        let rows = parser.screen().rows(0, 40);
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    #[test]
    fn frames_replace_each_other_and_printed_text_stays() {
        let mut region = Region::default();
        let mut bytes = String::new();
        bytes += &region.frame(lines("a\nb\nc")).unwrap();
        assert_eq!(shown(&bytes), "a\nb\nc");
        assert_eq!(region.frame(lines("a\nb\nc")), None, "nothing new");
        bytes += &region.frame(lines("a\nx")).unwrap();
        assert_eq!(shown(&bytes), "a\nx");
        bytes += &region.print("said\n\nmore", lines("y\nz"));
        assert_eq!(shown(&bytes), "said\n\nmore\ny\nz");
        bytes += region.cover();
        bytes += "a notice\r\n";
        bytes += &region.uncover();
        assert_eq!(shown(&bytes), "said\n\nmore\na notice\ny\nz");
        bytes += region.clear();
        assert_eq!(shown(&bytes), "said\n\nmore\na notice");
        assert!(region.is_empty() && region.cover().is_empty());
    }

    #[test]
    fn what_another_program_wrote_is_painted_over() {
        let mut region = Region::default();
        let mut bytes = region.frame(lines("a\nb")).unwrap();
        bytes += "noise\r";
        region.forget();
        bytes += &region.frame(lines("a\nb")).unwrap();
        assert_eq!(shown(&bytes), "a\nb");
    }
}
