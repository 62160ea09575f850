//! Draws the thread picker.

use super::pen::Pen;
use crate::panels::{self, Look};
use crate::picker::Picker;
use crate::text::clean;
use crate::text::wrap::{Line, Span, clip_spans};
use anstyle::Style;
use kd_app::ThreadRow;

/// Minimum width for rows to show the number of messages.
const COUNTS_FROM: u16 = 60;

/// Draws the picker and returns the cursor position.
pub(super) fn picker(picker: &Picker, look: &Look, pen: &mut Pen<'_>) -> Option<(u16, u16)> {
    let area = pen.buffer.area;
    let dim = Style::new().dimmed();
    pen.line(
        0,
        0,
        area.width,
        &[
            Span::new(Style::new().bold(), "kd chat"),
            Span::new(dim, " which thread?"),
        ],
    );
    let lead = "search: ";
    let end = pen.line(
        0,
        1,
        area.width,
        &[
            Span::new(dim, lead),
            Span::plain(clean::line(picker.search())),
        ],
    );
    let rows = picker.fitting();
    let room = usize::from(area.height).saturating_sub(4).max(1);
    let first = (picker.chosen() + 1).saturating_sub(room);
    for i in first..(rows.len() + 1).min(first + room) {
        let chosen = i == picker.chosen();
        let sign = if chosen {
            look.styles.glyph("› ", "> ")
        } else {
            "  "
        };
        let style = if chosen {
            Style::new().invert()
        } else {
            Style::new()
        };
        let mut line = vec![Span::new(Style::new().bold(), sign)];
        match i.checked_sub(1).and_then(|i| rows.get(i)) {
            None => line.push(Span::new(style, "a new thread")),
            Some(row) => {
                line.extend(thread(row, style, area.width, look));
                if picker.has_present() {
                    let mark = if picker.is_present(row) {
                        " open"
                    } else {
                        "     "
                    };
                    line.insert(2, Span::new(Style::new().bold(), mark));
                }
            }
        }
        let line = clip_spans(&line, area.width.into());
        pen.line(0, 2 + (i - first) as u16, area.width, &line);
    }
    let hint = " Enter: open, Ctrl+N: new, letters: search, Esc: back";
    let hint = clip_spans(&[Span::new(dim, hint)], area.width.into());
    pen.line(0, area.height - 1, area.width, &hint);
    Some((end.min(area.width - 1), 1))
}

fn thread(row: &ThreadRow, style: Style, width: u16, look: &Look) -> Line {
    let when = row.at.map(|at| ago(at, look)).unwrap_or_default();
    let (id, facts) = if width < COUNTS_FROM {
        let id = row.id.strip_prefix("council-").unwrap_or(&row.id);
        (format!("{id:<5}"), format!(" {when:>6}  "))
    } else {
        let facts = format!(" {when:>7}  {:>5} messages  ", row.messages);
        (format!("{:<14}", row.id), facts)
    };
    vec![
        Span::new(style, clean::line(&id)),
        Span::new(Style::new().dimmed(), facts),
        Span::plain(clean::line(&row.question)),
    ]
}

fn ago(at: kd_core::Timestamp, look: &Look) -> String {
    let secs = panels::since(at, look.now).as_secs();
    match secs {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min", secs / 60),
        3600..86400 => format!("{} h", secs / 3600),
        _ => format!("{} d", secs / 86400),
    }
}
