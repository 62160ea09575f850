//! Selecting text with the mouse: in one card, without its border. Takes where the mouse is; returns which columns of which
//! lines are marked, and their text with paragraphs as they were before they were wrapped.

use crate::log::Item;
use crate::text::markdown::indented;
use crate::text::wrap::{Line, width};
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// The visible part of a card in the last frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// The card.
    pub item: Item,
    /// Its first column.
    pub x: u16,
    /// Its columns.
    pub width: u16,
    /// The row of its first visible line.
    pub y: u16,
    /// Its visible lines.
    pub lines: Range<usize>,
}

impl Area {
    /// Returns whether a cell is inside.
    fn contains(&self, (x, y): (u16, u16)) -> bool {
        let rows = self.lines.len() as u16;
        (self.x..self.x + self.width).contains(&x) && (self.y..self.y + rows).contains(&y)
    }

    /// Returns the line and column of a cell; of the nearest one inside for a cell outside.
    fn spot(&self, (x, y): (u16, u16)) -> (usize, usize) {
        let last = self.lines.end.saturating_sub(1);
        let line = self.lines.start + usize::from(y.saturating_sub(self.y));
        let x = x.clamp(self.x, self.x + self.width.saturating_sub(1));
        (line.min(last), usize::from(x - self.x))
    }
}

/// Text of a card that is marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The card.
    pub item: Item,
    /// Line and column of the card where the button was pressed, and where the mouse is.
    ends: [(usize, usize); 2],
    /// Whether the mouse was moved to another cell.
    moved: bool,
}

impl Selection {
    /// Begins where the button was pressed; `None` outside of all cards.
    pub fn begin(areas: &[Area], cell: (u16, u16)) -> Option<Self> {
        let area = areas.iter().find(|area| area.contains(cell))?;
        Some(Self {
            item: area.item,
            ends: [area.spot(cell); 2],
            moved: false,
        })
    }

    /// Follows the mouse. Outside of the card, the nearest cell counts.
    pub fn follow(&mut self, areas: &[Area], cell: (u16, u16)) {
        if let Some(area) = areas.iter().find(|area| area.item == self.item) {
            let to = area.spot(cell);
            self.moved |= to != self.ends[0];
            self.ends[1] = to;
        }
    }

    /// Returns the marked columns of a line of the card, the one under the mouse included; empty if none are.
    pub fn columns(&self, line: usize) -> Range<usize> {
        let [from, to] = match self.ends {
            [from, to] if from <= to => [from, to],
            [to, from] => [from, to],
        };
        if !self.moved || !(from.0..=to.0).contains(&line) {
            return 0..0;
        }
        let first = if line == from.0 { from.1 } else { 0 };
        let last = if line == to.0 { to.1 + 1 } else { usize::MAX };
        first..last
    }

    /// Returns the marked text; `None` if there is none. `line` returns a line of the card and the column where it begins.
    pub fn text<'l>(&self, line: impl Fn(usize) -> Option<(usize, &'l Line)>) -> Option<String> {
        let mut text = String::new();
        // What stands between a line and the one before.
        let mut gap = "";
        let [one, other] = self.ends.map(|(line, _)| line);
        let last = one.max(other);
        for at in one.min(other)..=last {
            let columns = self.columns(at);
            let Some((left, line)) = line(at).filter(|_| !columns.is_empty()) else {
                continue;
            };
            let is_joined = gap != "\n";
            // What shows code as code is none of it.
            let mark = indented(line);
            let inside = columns.start.saturating_sub(left)..columns.end.saturating_sub(left);
            let inside = inside.start.max(mark)..inside.end.max(mark);
            let piece = cut(line, &inside);
            let is_cut = line.last().is_some_and(|span| span.cut);
            text.push_str(gap);
            text.push_str(match is_joined && !text.is_empty() {
                // The spaces of code count, also where a line is broken.
                true if mark > 0 => &piece,
                false if is_cut && at < last => &piece,
                true => piece.trim(),
                false => piece.trim_end(),
            });
            gap = match line.last() {
                Some(_) if is_cut => "",
                Some(span) if span.wraps => " ",
                _ => "\n",
            };
        }
        let text = text.trim_matches('\n');
        (!text.trim().is_empty()).then(|| text.to_owned())
    }
}

/// Returns the text of a line in these columns. A wide character counts where it begins.
fn cut(line: &Line, columns: &Range<usize>) -> String {
    let mut text = String::new();
    let mut at = 0;
    for grapheme in line.iter().flat_map(|span| span.text.graphemes(true)) {
        if columns.contains(&at) {
            text.push_str(grapheme);
        }
        at += width(grapheme);
    }
    text
}

#[cfg(test)]
mod tests;
