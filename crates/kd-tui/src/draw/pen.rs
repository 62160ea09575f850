//! Puts lines into cells.

use crate::panels::Look;
use crate::text::wrap::{self, Span};
use crate::theme::Theme;
use anstyle::Style;
use ratatui_core::buffer::Buffer;
use unicode_segmentation::UnicodeSegmentation;

/// Writes into a buffer, in a theme's colours.
pub(crate) struct Pen<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) theme: Theme,
    /// Whether glyphs beyond ASCII may be written for our own signs.
    pub(crate) unicode: bool,
}

impl Pen<'_> {
    /// A line from a column on, cut at the right edge. The column behind it.
    pub(crate) fn line(&mut self, x: u16, y: u16, right: u16, line: &[Span]) -> u16 {
        let mut at = x;
        for span in line {
            let style = self.theme.of(span.style);
            for g in span.text.graphemes(true) {
                // Where we had to cut.
                let g = if g == "…" && !self.unicode { "~" } else { g };
                let width = wrap::width(g) as u16;
                if width == 0 {
                    continue;
                }
                if at + width > right {
                    return at;
                }
                let cell = &mut self.buffer[(at, y)];
                // What stood there leaves nothing of its style.
                cell.reset();
                cell.set_symbol(g).set_style(style);
                for covered in 1..width {
                    self.buffer[(at + covered, y)].reset();
                }
                at += width;
            }
        }
        at
    }

    /// The same symbol from a column to another.
    pub(crate) fn repeat(&mut self, from: u16, to: u16, y: u16, symbol: &str, style: Style) {
        let style = self.theme.of(style);
        for x in from..to {
            self.buffer[(x, y)].set_symbol(symbol).set_style(style);
        }
    }

    /// A rule across the screen.
    pub(crate) fn rule(&mut self, y: u16, width: u16, look: &Look) {
        let glyph = look.styles.glyph("─", "-");
        self.repeat(0, width, y, glyph, Style::new().dimmed());
    }
}
