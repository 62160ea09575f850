//! Tables: columns that fit the width, cells that wrap; records of `head: value` where columns would be too narrow.

use super::wrap::{Line, Span, clip_spans, line_width, width, wrap_spans};
use anstyle::Style;
use pulldown_cmark::Alignment;

/// Words up to this length are not broken to narrow their column: the table becomes records instead.
const WORD_MAX: usize = 16;

/// One cell, before it is wrapped.
pub type Cell = Vec<Span>;

/// Lays out a table. The first row is the head; `unicode` selects the rules.
pub fn layout(
    rows: &[Vec<Cell>],
    aligns: &[Alignment],
    columns: usize,
    unicode: bool,
) -> Vec<Line> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    if count == 0 {
        return Vec::new();
    }
    let gaps = (count - 1) * 3;
    let natural: Vec<usize> = (0..count)
        .map(|i| {
            rows.iter()
                .filter_map(|r| r.get(i))
                .map(|c| line_width(c))
                .max()
                .unwrap_or(0)
                .max(1)
        })
        .collect();
    let least: Vec<usize> = (0..count)
        .map(|i| {
            rows.iter()
                .filter_map(|r| r.get(i))
                .map(longest_word)
                .max()
                .unwrap_or(0)
                .max(1)
        })
        .collect();
    match fit(&natural, &least, columns.saturating_sub(gaps)) {
        Some(widths) => grid(rows, aligns, &widths, unicode),
        None => records(rows, columns),
    }
}

/// Returns widths that sum to at most `room`: shrinks the widest column first, none below its minimum.
fn fit(natural: &[usize], least: &[usize], room: usize) -> Option<Vec<usize>> {
    if least.iter().sum::<usize>() > room {
        return None;
    }
    let mut widths: Vec<usize> = natural.iter().map(|w| (*w).min(room)).collect();
    while widths.iter().sum::<usize>() > room {
        let gives = |i: &usize| widths[*i] > least[*i];
        let widest = (0..widths.len()).filter(gives).max_by_key(|i| widths[*i])?;
        widths[widest] -= 1;
    }
    Some(widths)
}

/// Returns the width of a cell's longest word, up to a limit.
fn longest_word(cell: &Cell) -> usize {
    cell.iter()
        .flat_map(|s| s.text.split_whitespace())
        .map(width)
        .max()
        .unwrap_or(0)
        .min(WORD_MAX)
}

fn grid(rows: &[Vec<Cell>], aligns: &[Alignment], widths: &[usize], unicode: bool) -> Vec<Line> {
    let (bar, rule, cross) = if unicode {
        (" │ ", "─", "─┼─")
    } else {
        (" | ", "-", "-+-")
    };
    let dim = Style::new().dimmed();
    let mut lines = Vec::new();
    for (r, row) in rows.iter().enumerate() {
        let cells: Vec<Vec<Line>> = widths
            .iter()
            .enumerate()
            .map(|(i, w)| row.get(i).map_or_else(Vec::new, |c| wrap_spans(c, *w)))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1).max(1);
        for h in 0..height {
            let mut line = Line::new();
            for (i, w) in widths.iter().enumerate() {
                if i > 0 {
                    line.push(Span::new(dim, bar));
                }
                let cell = cells[i].get(h).cloned().unwrap_or_default();
                let spare = w.saturating_sub(line_width(&cell));
                let (before, after) = match aligns.get(i) {
                    Some(Alignment::Right) => (spare, 0),
                    Some(Alignment::Center) => (spare / 2, spare - spare / 2),
                    _ => (0, spare),
                };
                line.push(Span::plain(" ".repeat(before)));
                line.extend(cell);
                if i + 1 < widths.len() {
                    line.push(Span::plain(" ".repeat(after)));
                }
            }
            lines.push(line);
        }
        if r == 0 && rows.len() > 1 {
            let text = widths
                .iter()
                .map(|w| rule.repeat(*w))
                .collect::<Vec<_>>()
                .join(cross);
            lines.push(vec![Span::new(dim, text)]);
        }
    }
    lines
}

fn records(rows: &[Vec<Cell>], columns: usize) -> Vec<Line> {
    let Some((head, body)) = rows.split_first() else {
        return Vec::new();
    };
    if body.is_empty() {
        return head.iter().flat_map(|c| wrap_spans(c, columns)).collect();
    }
    let mut lines = Vec::new();
    for (r, row) in body.iter().enumerate() {
        if r > 0 {
            lines.push(Line::new());
        }
        for (i, cell) in row.iter().enumerate() {
            // Repeated for every row, so a long head would multiply.
            let mut spans = head
                .get(i)
                .map_or_else(Line::new, |h| clip_spans(h, columns));
            spans.push(Span::plain(": "));
            spans.extend(cell.iter().cloned());
            lines.extend(wrap_spans(&spans, columns));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_shrink_fairly_and_never_exceed() {
        assert_eq!(fit(&[5, 10], &[1, 1], 20), Some(vec![5, 10]));
        assert_eq!(fit(&[5, 40], &[5, 9], 25), Some(vec![5, 20]));
        assert_eq!(fit(&[8, 8, 8], &[8, 8, 1], 12), None);
        for room in 12..80 {
            if let Some(widths) = fit(&[30, 3, 30], &[4, 3, 4], room) {
                assert!(widths.iter().sum::<usize>() <= room, "{room}: {widths:?}");
            }
        }
    }
}
