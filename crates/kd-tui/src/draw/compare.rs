//! Draws two answers beside each other, with the words that differ marked, and the parts of answers to tick.

use super::pen::Pen;
use crate::compare::{Comparison, Side};
use crate::merge::Merge;
use crate::panels::Look;
use crate::text::clean;
use crate::text::wrap::{self, Line, Span, clip_spans};
use anstyle::Style;
use kd_app::words::{count, grouped};

/// Minimum columns for two texts beside each other.
const BESIDE_FROM: u16 = 60;

/// Draws a comparison below `top`.
pub(super) fn comparison(shown: &mut Comparison, look: &Look, pen: &mut Pen<'_>, top: u16) {
    let area = pen.buffer.area;
    let beside = area.width >= BESIDE_FROM;
    // A margin at the left, and around the bar.
    let columns = match beside {
        true => (area.width - 4) / 2,
        false => area.width - 2,
    };
    let sides = shown.lay(columns.into(), look.styles);
    let lines = |side: &Side| {
        let (mark, style) = look.speaker(&side.name);
        let words = count(side.words as u64, "word");
        let facts = format!(" {} of {words} differ", grouped(side.differ as u64));
        let mut lines = vec![
            vec![
                Span::new(style, format!("{mark} {}", clean::line(&side.name))),
                Span::new(Style::new().dimmed(), facts),
            ],
            Line::new(),
        ];
        lines.extend(side.lines.iter().cloned());
        lines
    };
    let (left, right) = (lines(&sides[0]), lines(&sides[1]));
    let rows = usize::from(area.height - top - 1);
    let all = match beside {
        true => left.len().max(right.len()),
        false => left.len() + 1 + right.len(),
    };
    shown.from = shown.from.min(all.saturating_sub(rows));
    let bar = [Span::new(
        Style::new().dimmed(),
        look.styles.glyph("│", "|"),
    )];
    for (y, at) in (shown.from..all.min(shown.from + rows)).enumerate() {
        let y = top + y as u16;
        if beside {
            if let Some(line) = left.get(at) {
                pen.line(1, y, columns + 1, line);
            }
            pen.line(columns + 2, y, area.width, &bar);
            if let Some(line) = right.get(at) {
                pen.line(columns + 4, y, area.width, line);
            }
        } else {
            let line = match at.checked_sub(left.len() + 1) {
                Some(at) => right.get(at),
                None => left.get(at),
            };
            if let Some(line) = line {
                pen.line(1, y, columns + 1, line);
            }
        }
    }
    hint(" Up Down PgUp PgDn scroll; any other key goes back", pen);
}

/// Draws the parts of answers to tick below `top`.
pub(super) fn pieces(merge: &Merge, look: &Look, pen: &mut Pen<'_>, top: u16) {
    let area = pen.buffer.area;
    let mut lines: Vec<Line> = Vec::new();
    let (mut first, mut last) = (0, 0);
    let mut from = None;
    for (at, piece) in merge.pieces().iter().enumerate() {
        let begin = lines.len();
        if from != Some(&piece.from) {
            let (mark, style) = look.speaker(&piece.from);
            if from.is_some() {
                lines.push(Line::new());
            }
            let name = format!("{mark} {}", clean::line(&piece.from));
            lines.push(vec![Span::new(style, name)]);
        }
        from = Some(&piece.from);
        let here = at == merge.chosen();
        let sign = match here {
            true => look.styles.glyph("› ", "> "),
            false => "  ",
        };
        let tick = match piece.ticked {
            true => "[x] ",
            false => "[ ] ",
        };
        let style = match (here, piece.ticked) {
            (true, _) => Style::new().bold(),
            (false, true) => Style::new(),
            (false, false) => Style::new().dimmed(),
        };
        let text = clean::text(&piece.text);
        let wrapped = text.lines().flat_map(|line| {
            let columns = usize::from(area.width).saturating_sub(7);
            wrap::wrap(line, columns.max(8))
        });
        for (row, text) in wrapped.enumerate() {
            let lead = match row {
                0 => format!("{sign}{tick}"),
                _ => "      ".to_owned(),
            };
            lines.push(vec![
                Span::new(Style::new().bold(), lead),
                Span::new(style, text),
            ]);
        }
        if here {
            (first, last) = (begin, lines.len());
        }
    }
    let rows = usize::from(area.height - top - 1);
    // The part at the cursor is in view, from its beginning.
    let scroll = last.saturating_sub(rows).min(first);
    for (y, line) in lines.iter().skip(scroll).take(rows).enumerate() {
        pen.line(0, top + y as u16, area.width, line);
    }
    let ticked = merge.ticked();
    hint(
        &format!(" Space: tick, Up Down: move, Enter: quote the {ticked} ticked parts, Esc: back"),
        pen,
    );
}

fn hint(text: &str, pen: &mut Pen<'_>) {
    let area = pen.buffer.area;
    let hint = [Span::new(Style::new().dimmed(), text)];
    let hint = clip_spans(&hint, area.width.into());
    pen.line(0, area.height - 1, area.width, &hint);
}
