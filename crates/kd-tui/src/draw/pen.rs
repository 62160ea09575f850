//! Writes lines into buffer cells.

use crate::panels::Look;
use crate::text::wrap::{self, Span};
use crate::theme::Theme;
use anstyle::Style;
use ratatui_core::buffer::Buffer;
use unicode_segmentation::UnicodeSegmentation;

/// Writes into a buffer, in a theme's colors.
pub(crate) struct Pen<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) theme: Theme,
    /// Whether the UI's own symbols may use glyphs beyond ASCII.
    pub(crate) unicode: bool,
}

impl Pen<'_> {
    /// Writes a line from a column on, cut at the right edge. Returns the next column.
    pub(crate) fn line(&mut self, x: u16, y: u16, right: u16, line: &[Span]) -> u16 {
        let mut at = x;
        for span in line {
            let style = self.theme.of(span.style);
            for g in span.text.graphemes(true) {
                // Marks the cut.
                let g = if g == "…" && !self.unicode { "~" } else { g };
                let width = wrap::width(g) as u16;
                if width == 0 {
                    continue;
                }
                if at + width > right {
                    return at;
                }
                let cell = &mut self.buffer[(at, y)];
                // Clear the style of the previous content.
                cell.reset();
                cell.set_symbol(g).set_style(style);
                for covered in 1..width {
                    self.buffer[(at + covered, y)].reset();
                }
                at += width;
            }
        }
        // The background of code fills the line.
        let ground = line.last().and_then(|span| self.theme.of(span.style).bg);
        if let Some(ground) = ground {
            for x in at..right {
                self.buffer[(x, y)].set_bg(ground);
            }
        }
        at
    }

    /// Repeats a symbol between two columns.
    pub(crate) fn repeat(&mut self, from: u16, to: u16, y: u16, symbol: &str, style: Style) {
        let style = self.theme.of(style);
        for x in from..to {
            self.buffer[(x, y)].set_symbol(symbol).set_style(style);
        }
    }

    /// Draws a rule across the screen.
    pub(crate) fn rule(&mut self, y: u16, width: u16, look: &Look) {
        let glyph = look.styles.glyph("─", "-");
        self.repeat(0, width, y, glyph, Style::new().dimmed());
    }
}
