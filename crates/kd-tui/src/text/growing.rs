//! Renders Markdown that is still growing. Takes the text so far, repeatedly; returns its lines and re-renders only the
//! last block.
//!
//! A Markdown block is final when another block has begun below it: later text does not change its rendering (except
//! the target of a reference link, which the final rendering resolves). So everything before the last block is laid
//! out once per width, and only the tail is parsed again.

use super::clean;
use super::markdown::{OPTIONS, left_out, lines_of, shown_part};
use super::style::Styles;
use super::wrap::Line;
use pulldown_cmark::{Event, Parser};

/// Trailing bytes compared to recognize the same text.
const LAST: usize = 64;

/// The layout of a text that grows at its end.
#[derive(Debug, Default)]
pub struct Growing {
    columns: usize,
    styles: Option<Styles>,
    /// Bytes seen so far, and the last of them: a restarted text differs there.
    seen: usize,
    last: Vec<u8>,
    /// Bytes of the text whose blocks are final.
    fixed: usize,
    /// Lines of the final blocks, then of the tail.
    lines: Vec<Line>,
    /// The number of lines before the tail.
    kept: usize,
    /// Bytes beyond the limit, which are not laid out.
    left: usize,
}

impl Growing {
    /// Returns the lines of a text. Only the added part costs time; a different text is detected.
    pub fn lines(&mut self, text: &str, columns: usize, styles: Styles) -> &[Line] {
        let (text, left) = shown_part(text);
        let goes_on = text
            .as_bytes()
            .get(..self.seen)
            .is_some_and(|before| before.ends_with(&self.last));
        if self.columns != columns || self.styles != Some(styles) || !goes_on {
            self.reset();
            (self.columns, self.styles) = (columns, Some(styles));
        } else if text.len() == self.seen && self.seen > 0 {
            // Growth beyond the limit only updates the line that counts it.
            if left != self.left {
                let had = usize::from(self.left > 0);
                self.lines.truncate(self.lines.len() - had);
                self.lines.extend(left_out(left, styles));
                self.left = left;
            }
            return &self.lines;
        }
        self.seen = text.len();
        self.last = text.as_bytes()[text.len().saturating_sub(LAST)..].to_vec();
        self.lines.truncate(self.kept);
        let tail = &text[self.fixed..];
        // The meaning of an unfinished line is still open.
        let cut = last_block(&tail[..tail.rfind('\n').map_or(0, |at| at + 1)]);
        if cut > 0 {
            let final_blocks = lines_of(&clean::text(&tail[..cut]), columns, styles);
            self.append(final_blocks);
            self.kept = self.lines.len();
            self.fixed += cut;
        }
        let rest = mend(&clean::text(&text[self.fixed..]));
        let tail = lines_of(&rest, columns, styles);
        self.append(tail);
        self.lines.extend(left_out(left, styles));
        self.left = left;
        &self.lines
    }

    /// Returns the lines of the last layout.
    pub fn shown(&self) -> &[Line] {
        &self.lines
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn append(&mut self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        if !self.lines.is_empty() {
            self.lines.push(Line::new());
        }
        self.lines.extend(lines);
    }
}

/// Returns the offset of the last top-level block.
fn last_block(text: &str) -> usize {
    let mut depth = 0usize;
    let mut last = 0;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    last = range.start;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => last = range.start,
            _ => {}
        }
    }
    // An indented code block is reported after its indentation, which belongs to it.
    text[..last].rfind('\n').map_or(0, |at| at + 1)
}

/// Closes emphasis and code opened in the tail, so that marks do not flicker until their end arrives.
fn mend(text: &str) -> String {
    let mut out = text.trim_end_matches([' ', '\n']).to_owned();
    // The bar of a new row is not a row yet, and would end its table for a moment.
    if out.ends_with("\n|") {
        out.truncate(out.len() - 2);
    }
    let paragraph = out.rfind("\n\n").map_or(0, |at| at + 2);
    let last = &out[paragraph..];
    if last.contains("```") || last.contains("~~~") || out.matches("\n```").count() % 2 == 1 {
        return out;
    }
    let ticks = last.matches('`').count();
    let end = if ticks % 2 == 1 {
        (!last.ends_with('`')).then_some("`")
    } else if last.matches("**").count() % 2 == 1 {
        (!last.ends_with('*')).then_some("**")
    } else {
        None
    };
    out.extend(end);
    out
}

#[cfg(test)]
mod tests {
    use super::super::markdown;
    use super::*;

    const SAMPLE: &str = include_str!("../../tests/data/answer.md");
    const STYLES: Styles = Styles::NONE;

    fn text(lines: &[Line]) -> String {
        let line = |l: &Line| l.iter().map(|s| s.text.as_str()).collect::<String>();
        lines
            .iter()
            .map(|l| line(l).trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
            .trim_end()
            .to_owned()
    }

    #[test]
    fn growing_by_letters_ends_where_rendering_at_once_ends() {
        for columns in [24, 40, 80] {
            let mut growing = Growing::default();
            for (at, c) in SAMPLE.char_indices() {
                let so_far = &SAMPLE[..at + c.len_utf8()];
                let shown = text(growing.lines(so_far, columns, STYLES));
                // Closing marks changes the text; without open marks both are the same.
                if mend(so_far) == so_far.trim_end_matches([' ', '\n']) {
                    let whole = text(&markdown::lines(so_far, columns, STYLES));
                    assert_eq!(shown, whole, "{columns}, after {so_far:?}");
                }
            }
            assert!(
                growing.fixed > SAMPLE.len() / 2,
                "most of it was laid out once"
            );
        }
    }

    #[test]
    fn marks_do_not_flicker() {
        let shown = |t: &str| {
            text(Growing::default().lines(
                t,
                40,
                Styles {
                    color: true,
                    unicode: true,
                },
            ))
        };
        assert_eq!(shown("this is **bo"), "this is bo");
        assert_eq!(shown("call `fo"), "call fo");
        assert_eq!(shown("2 * 3"), "2 * 3");
        let table = "| a |\n|---|\n| 1 |\n";
        assert_eq!(shown(&format!("{table}|")), shown(table), "no row yet");
    }

    #[test]
    fn a_text_that_began_anew_and_another_width_are_noticed() {
        let mut growing = Growing::default();
        growing.lines("first answer\n\nsecond", 40, STYLES);
        assert_eq!(text(growing.lines("other", 40, STYLES)), "other");
        assert_eq!(
            text(growing.lines("other words", 8, STYLES)),
            "other\nwords"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_markdown_grows_into_what_it_is(
            blocks in proptest::collection::vec(proptest::sample::select(vec![
                "words here\n\n", "# Head\n\n", "- one\n- two\n\n", "1. a\n\n   b\n2. c\n\n", "> quote\n> more\n\n",
                "```rust\nfn f() {}\n\nlet x;\n```\n", "    indented\n\n", "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
                "---\n\n", "<b>html</b>\n\n", "text\nmore\n", "\n", "日本語 words\n\n", "  - nested\n",
            ]), 0..10),
            step in 1usize..30,
        ) {
            let whole = blocks.concat();
            let mut growing = Growing::default();
            let mut at = 0;
            while at < whole.len() {
                at = whole.ceil_char_boundary((at + step).min(whole.len()));
                growing.lines(&whole[..at], 40, STYLES);
            }
            let shown = text(growing.lines(&(whole.clone() + "\n"), 40, STYLES));
            proptest::prop_assert_eq!(shown, text(&markdown::lines(&whole, 40, STYLES)));
        }
    }
}
