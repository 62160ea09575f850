//! Draws the forum screen.

use super::keys::{KEYS, View, WRITING};
use super::plural;
use super::reader::{Reader, Side};
use crate::draw::pen::Pen;
use crate::text::clean;
use crate::text::wrap::{self, Line, Span};
use anstyle::Style;
use ratatui_core::buffer::Buffer;

/// Minimum width for showing both sides.
const BOTH_FROM: u16 = 60;
/// Maximum width of the list.
const LIST_MAX: u16 = 40;
/// The input takes at most this fraction of the screen's rows.
const INPUT_PART: u16 = 3;
/// Columns for keys in the help.
const HELP_LEFT: usize = 30;
const HELP_BESIDE_FROM: usize = 64;

impl Reader {
    /// Draws everything. Returns the cursor position if something is being written.
    pub fn draw(&mut self, buffer: &mut Buffer) -> Option<(u16, u16)> {
        let area = buffer.area;
        if area.width < 10 || area.height < 4 {
            return None;
        }
        let styles = self.looks.styles;
        let mut pen = Pen {
            buffer,
            theme: self.looks.theme,
            unicode: styles.unicode,
        };
        pen.line(0, 0, area.width, &self.header(area.width.into()));
        self.columns = usize::from(area.width).saturating_sub(3).max(2);
        let rows = self.editor.rows(self.columns);
        let most = (area.height / INPUT_PART).max(1);
        let input = match (&self.writing, self.help) {
            (Some(_), None) => (rows.len().min(usize::from(u16::MAX)) as u16).clamp(1, most),
            _ => 0,
        };
        let bottom = area.height - 1 - input;
        self.rows = usize::from(bottom.saturating_sub(2)).max(1);
        if self.help.is_some() {
            pen.repeat(
                0,
                area.width,
                1,
                styles.glyph("─", "-"),
                Style::new().dimmed(),
            );
            self.draw_help(&mut pen, bottom);
        } else {
            self.draw_body(&mut pen, bottom);
        }
        let status = self.status(area.width.into());
        pen.line(0, bottom, area.width, &status);
        if input == 0 {
            return None;
        }
        Some(self.draw_input(&mut pen, bottom + 1, input, &rows))
    }

    fn header(&self, width: usize) -> Line {
        let dim = Style::new().dimmed();
        let dot = self.looks.styles.glyph(" · ", " - ");
        let (threads, posts) = self.counts;
        let name = format!("forum {}", clean::line(&self.forum));
        let mut counts = format!(
            "{dot}{}{dot}{}",
            plural(threads, "thread"),
            plural(posts, "post")
        );
        let (me, role) = &self.me;
        if !me.is_empty() {
            counts.push_str(&format!("{dot}you: {} ({role})", clean::line(me)));
        }
        wrap::clip_spans(
            &[Span::new(Style::new().bold(), name), Span::new(dim, counts)],
            width,
        )
    }

    /// Draws the rule below the header, with the views in it.
    fn draw_views(&self, pen: &mut Pen<'_>) {
        let width = pen.buffer.area.width;
        let dim = Style::new().dimmed();
        let rule = self.looks.styles.glyph("─", "-");
        pen.repeat(0, width, 1, rule, dim);
        let named = |view: View, name: &str| match (view, self.open_motions) {
            (View::Motions, open @ 1..) => format!("{name} ({open} open)"),
            _ => name.to_owned(),
        };
        let all: usize = View::ALL
            .iter()
            .map(|(view, name)| named(*view, name).len() + 4)
            .sum();
        let mut x = 1;
        for (i, (view, name)) in View::ALL.iter().enumerate() {
            let text = match all < usize::from(width) || *view == self.view {
                true => format!("{} {}", i + 1, named(*view, name)),
                false => (i + 1).to_string(),
            };
            let style = match *view == self.view {
                true => Style::new().bold(),
                false => dim,
            };
            x = pen.line(x, 1, width, &[Span::new(style, format!(" {text} "))]) + 1;
        }
    }

    fn draw_body(&mut self, pen: &mut Pen<'_>, bottom: u16) {
        let width = pen.buffer.area.width;
        let dim = Style::new().dimmed();
        let styles = self.looks.styles;
        self.draw_views(pen);
        let listed = self.view.has_list();
        let both = listed && width >= BOTH_FROM;
        let list = if both {
            (width / 3).min(LIST_MAX)
        } else {
            width
        };
        if listed && (both || self.side == Side::List) {
            self.draw_list(pen, list);
        }
        if both {
            let bar = [Span::new(dim, styles.glyph("│", "|"))];
            for y in 2..bottom {
                pen.line(list, y, list + 1, &bar);
            }
        }
        if both || !listed || self.side == Side::Text {
            let left = if both { list + 2 } else { 0 };
            let lines = self.text_lines_of(usize::from(width - left));
            for (i, line) in lines.iter().take(self.rows).enumerate() {
                pen.line(left, 2 + i as u16, width, line);
            }
        }
    }

    /// Returns the rows of the list: title, note, and whether it is emphasized.
    fn list_rows(&self) -> Vec<(String, String, bool)> {
        if self.view != View::Threads {
            let row =
                |item: &super::Item| (clean::line(&item.title), clean::line(&item.note), false);
            return self.items.iter().map(row).collect();
        }
        if let Some(search) = &self.search {
            let hits = search.hits.as_deref().unwrap_or_default();
            return hits
                .iter()
                .map(|hit| {
                    let title = format!(
                        "{}: {}",
                        clean::line(&hit.author),
                        clean::line(&hit.excerpt)
                    );
                    (title, format!("#{}", hit.post_id), false)
                })
                .collect();
        }
        let row = |thread: &kd_forum::words::Thread| {
            let note = match self.fresh(thread) {
                0 => thread.post_count.to_string(),
                fresh => format!("{fresh} new"),
            };
            let note = match (thread.hidden_at.is_some(), thread.closed_at.is_some()) {
                (true, _) => format!("hidden {note}"),
                (_, true) => format!("closed {note}"),
                _ => note,
            };
            (clean::line(&thread.title), note, self.fresh(thread) > 0)
        };
        self.threads.iter().map(row).collect()
    }

    fn draw_list(&self, pen: &mut Pen<'_>, width: u16) {
        let rows = self.list_rows();
        let styles = self.looks.styles;
        if rows.is_empty() {
            let text = match (self.opened, self.view, &self.search) {
                (false, _, _) => "reading",
                (_, View::Threads, Some(search)) if search.hits.is_none() => "searching",
                (_, View::Threads, Some(_)) => "nothing found; Esc: all threads",
                (_, View::Threads, None) => "no threads yet; w starts one",
                (_, View::Motions, _) => "no motions; w proposes one",
                (_, _, _) => "no members yet",
            };
            for (i, line) in wrap::wrap(text, usize::from(width).saturating_sub(2))
                .into_iter()
                .enumerate()
                .take(self.rows)
            {
                pen.line(
                    1,
                    2 + i as u16,
                    width,
                    &[Span::new(Style::new().dimmed(), line)],
                );
            }
            return;
        }
        let at = match (self.view, &self.search) {
            (View::Threads, Some(search)) => search.at,
            (View::Threads, None) => self.chosen.and_then(|id| self.place(id)).unwrap_or(0),
            _ => self.item_at(),
        };
        let first = at.saturating_sub(self.rows.saturating_sub(1));
        for (i, (title, note, strong)) in rows.iter().enumerate().skip(first).take(self.rows) {
            let chosen = i == at;
            let style = match (chosen, self.side) {
                (true, Side::List) => Style::new().invert(),
                (true, Side::Text) => Style::new().bold(),
                (false, _) => Style::new(),
            };
            let mark = if chosen {
                styles.glyph("› ", "> ")
            } else {
                "  "
            };
            let room = usize::from(width).saturating_sub(4 + wrap::width(note));
            let title = wrap::clip(title, room);
            let gap = room.saturating_sub(wrap::width(&title));
            let line = [
                Span::new(style, format!("{mark}{title}{}", " ".repeat(gap))),
                Span::new(
                    if *strong {
                        style.bold()
                    } else {
                        style.dimmed()
                    },
                    format!(" {note}"),
                ),
            ];
            pen.line(0, 2 + (i - first) as u16, width, &line);
        }
    }

    /// Returns the visible lines of the right side, or of the whole screen where there is no list.
    fn text_lines_of(&mut self, columns: usize) -> Vec<Line> {
        if self.view == View::Threads {
            let thread = self.thread.clone();
            let active = self.side == Side::Text;
            return match thread {
                Some(thread) => self
                    .sheet
                    .draw(&thread, columns, self.rows, active, &self.looks),
                None => Vec::new(),
            };
        }
        let words = match self.view.has_list() {
            true => self
                .items
                .get(self.item_at())
                .map(|item| item.text.clone())
                .unwrap_or_default(),
            false => self.text.clone(),
        };
        let lines: Vec<Line> = words
            .iter()
            .flat_map(|line| text_line(line, columns))
            .collect();
        self.text_lines = lines.len();
        self.text_top = self.text_top.min(lines.len().saturating_sub(self.rows));
        lines
            .into_iter()
            .skip(self.text_top)
            .take(self.rows)
            .collect()
    }

    fn draw_help(&mut self, pen: &mut Pen<'_>, bottom: u16) {
        let width = usize::from(pen.buffer.area.width);
        let lines = help(width);
        let rows = usize::from(bottom - 2);
        let from = self.help.unwrap_or(0).min(lines.len().saturating_sub(rows));
        self.help = Some(from);
        for (i, line) in lines.iter().skip(from).take(rows).enumerate() {
            pen.line(0, 2 + i as u16, pen.buffer.area.width, line);
        }
    }

    /// Builds the status line: the notice; without a notice the current input mode; in no mode as many of the available
    /// keys as fit.
    fn status(&self, width: usize) -> Line {
        let (dim, bold) = (Style::new().dimmed(), Style::new().bold());
        let dot = self.looks.styles.glyph(" · ", " - ");
        let mut parts: Vec<(Style, String)> = Vec::new();
        if let Some(why) = &self.broken {
            parts.push((bold, clean::line(why)));
        } else if let Some(told) = &self.told {
            parts.push((bold, told.clone()));
        } else if let (Some(writing), None) = (&self.writing, self.help) {
            parts.push((bold, clean::line(&writing.label())));
        }
        let keys: &[&str] = match (self.help.is_some(), &self.writing) {
            (true, _) => &["Up Down PgUp PgDn: scroll", "any other key: back"],
            (_, Some(writing)) if writing.is_line() => &["Enter", "Esc: stop"],
            (_, Some(_)) => &[
                "Enter: send",
                "Ctrl+J: new line",
                "Esc: stop",
                "Ctrl+G: editor",
            ],
            (_, None) => match (self.view, self.side) {
                (View::Threads, Side::List) if self.search.is_some() => &[
                    "Enter: read",
                    "Esc: all threads",
                    "/ search",
                    "? help",
                    "q leave",
                ],
                (View::Threads, Side::List) => &[
                    "Enter: read",
                    "/ search",
                    "w write",
                    "? help",
                    "q leave",
                    "r reply",
                ],
                (View::Threads, Side::Text) => &[
                    "r reply",
                    "R quote",
                    "n p posts",
                    "Esc: list",
                    "? help",
                    "q leave",
                    "End: follow",
                ],
                (View::Members, _) => &[
                    "x ban",
                    "o role",
                    "u undo",
                    "? help",
                    "q leave",
                    "Enter: read",
                ],
                (View::Motions, _) => &[
                    "v vote",
                    "a accept",
                    "x veto",
                    "w move",
                    "? help",
                    "q leave",
                    "Enter: read",
                ],
                (_, _) => &["1 threads", "? help", "q leave", "Up Down: scroll"],
            },
        };
        parts.extend(keys.iter().map(|key| (dim, (*key).to_owned())));
        let mut line = vec![Span::plain(" ")];
        let mut used = 1;
        for (i, (style, part)) in parts.into_iter().enumerate() {
            let lead = if i == 0 { "" } else { dot };
            let needs = wrap::width(lead) + wrap::width(&part);
            if used + needs > width {
                // The first part is cut rather than dropped.
                if i == 0 {
                    line.push(Span::new(style, wrap::clip(&part, width.saturating_sub(1))));
                }
                break;
            }
            used += needs;
            line.extend([Span::new(dim, lead), Span::new(style, part)]);
        }
        line
    }

    fn draw_input(
        &self,
        pen: &mut Pen<'_>,
        top: u16,
        input: u16,
        rows: &[std::ops::Range<usize>],
    ) -> (u16, u16) {
        let width = pen.buffer.area.width;
        let (row, column) = self.editor.place(rows);
        let first = row.saturating_sub(usize::from(input) - 1);
        for (i, range) in rows.iter().enumerate().skip(first).take(input.into()) {
            let lead = if i == 0 { "> " } else { "  " };
            let text = clean::text(&self.editor.text()[range.clone()]).into_owned();
            let line = [Span::new(Style::new().bold(), lead), Span::plain(text)];
            pen.line(0, top + (i - first) as u16, width, &line);
        }
        let x = (2 + column).min(usize::from(width) - 1);
        (x as u16, top + (row - first) as u16)
    }
}

/// Wraps a line of text to a number of columns, keeping its indent; headings are bold.
fn text_line(line: &str, columns: usize) -> Vec<Line> {
    let line = clean::text(line);
    let indent = line.len() - line.trim_start_matches(' ').len();
    let (style, words) = match line.strip_prefix("# ") {
        Some(words) => (Style::new().bold(), words),
        None => (Style::new(), &line[indent..]),
    };
    let lead = " ".repeat(indent.min(columns / 2));
    // Tables are cut rather than wrapped.
    if words.contains("  ") {
        let whole = format!("{lead}{words}");
        return vec![wrap::clip_spans(&[Span::new(style, whole)], columns)];
    }
    if words.is_empty() {
        return vec![Line::new()];
    }
    wrap::wrap(words, columns.saturating_sub(lead.len()).max(1))
        .into_iter()
        .map(|part| vec![Span::new(style, format!("{lead}{part}"))])
        .collect()
}

fn help(width: usize) -> Vec<Line> {
    let head = |text: &str| vec![Span::new(Style::new().bold(), format!(" {text}"))];
    let mut lines = vec![head("Keys")];
    for (keys, what) in KEYS.iter().filter_map(|row| row.help) {
        lines.extend(help_row(keys, what, width));
    }
    lines.extend([Line::new(), head("While you write")]);
    for (keys, what) in WRITING {
        lines.extend(help_row(keys, what, width));
    }
    lines
}

fn help_row(left: &str, what: &str, width: usize) -> Vec<Line> {
    let dim = Style::new().dimmed();
    let beside = width >= HELP_BESIDE_FROM;
    let indent = if beside { HELP_LEFT } else { 5 };
    let mut begun = beside.then(|| vec![Span::plain(format!("   {left}"))]);
    let mut lines = Vec::new();
    if !beside {
        lines.push(vec![Span::plain(format!("   {left}"))]);
    }
    for text in wrap::wrap(what, width.saturating_sub(indent + 1)) {
        let mut line: Line = begun.take().unwrap_or_default();
        let gap = indent.saturating_sub(wrap::line_width(&line));
        line.extend([Span::plain(" ".repeat(gap)), Span::new(dim, text)]);
        lines.push(line);
    }
    lines
}
