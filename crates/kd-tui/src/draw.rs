//! The whole screen, from the state. Comes in: the app and a buffer. Goes out: cells, and where the cursor stands.

use crate::app::{App, Screen};
use crate::keymap::KEYS;
use crate::log::Slice;
use crate::panels::{self, Body, Look};
use crate::text::clean;
use crate::text::wrap::{self, Line, Span};
use crate::theme::Theme;
use anstyle::{AnsiColor, Style};
use kd_core::slash::COMMANDS;
use ratatui_core::buffer::Buffer;
use unicode_segmentation::UnicodeSegmentation;

/// The most rows of the input, as a part of the screen.
const INPUT_PART: u16 = 3;
/// From this height on, rules part the header and the input from the log.
const RULES_FROM: u16 = 18;
/// The most candidates that are shown.
const OFFERS: usize = 6;

/// Draws everything. The cursor's place; none if it is hidden.
pub fn draw(app: &mut App, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let area = buffer.area;
    if area.width < 4 || area.height < 3 {
        return None;
    }
    let theme = app.theme;
    let look = app.look();
    if let Screen::Picker(_) = app.screen {
        return picker(app, &look, buffer);
    }
    let mut pen = Pen { buffer, theme };
    let rules = u16::from(area.height >= RULES_FROM);
    let mut top = 0;
    pen.line(0, top, area.width, &header(app, &look));
    top += 1;
    if rules > 0 {
        pen.rule(top, area.width, &look);
        top += 1;
    }
    if let Screen::Help(from) = &mut app.screen {
        let lines = help(look.styles.unicode);
        let rows = usize::from(area.height - top - 1);
        *from = (*from).min(lines.len().saturating_sub(rows));
        for (y, line) in lines.iter().skip(*from).take(rows).enumerate() {
            pen.line(0, top + y as u16, area.width, line);
        }
        let hint = vec![Span::new(
            Style::new().dimmed(),
            " Up Down PgUp PgDn scroll; any other key goes back",
        )];
        pen.line(0, area.height - 1, area.width, &hint);
        return None;
    }
    let rows = app.editor.rows(app.input_columns());
    let most = (area.height / INPUT_PART).max(1);
    let input = (rows.len().min(usize::from(u16::MAX)) as u16).clamp(1, most);
    let bottom = area.height - input;
    let status_y = bottom - 1;
    let log_rows = status_y.saturating_sub(rules).saturating_sub(top);
    draw_log(app, &look, &mut pen, top, log_rows);
    if rules > 0 {
        pen.rule(status_y - 1, area.width, &look);
    }
    pen.line(
        0,
        status_y,
        area.width,
        &status(app, &look, area.width.into()),
    );
    offers(app, &look, &mut pen, status_y);
    let (row, column) = app.editor.place(&rows);
    let first = row.saturating_sub(usize::from(input) - 1);
    for (i, range) in rows.iter().enumerate().skip(first).take(input.into()) {
        let y = bottom + (i - first) as u16;
        let lead = if i == 0 { "> " } else { "  " };
        let style = if app.reading {
            Style::new().dimmed()
        } else {
            Style::new().bold()
        };
        let text = clean::text(&app.editor.text()[range.clone()]).into_owned();
        pen.line(
            0,
            y,
            area.width,
            &[Span::new(style, lead), Span::plain(text)],
        );
    }
    if app.editor.is_empty() {
        let hint = if app.reading {
            "reading; a letter that is no key here writes"
        } else {
            placeholder(app)
        };
        pen.line(
            2,
            bottom,
            area.width,
            &[Span::new(Style::new().dimmed(), hint)],
        );
    }
    if app.reading {
        return None;
    }
    let x = (2 + column).min(usize::from(area.width) - 1);
    Some((x as u16, bottom + (row - first) as u16))
}

fn placeholder(app: &App) -> &'static str {
    if app.log.view.is_busy() {
        "what you send now is said when they have spoken"
    } else {
        "your message; @member asks one, / commands"
    }
}

/// Puts lines into cells.
struct Pen<'a> {
    buffer: &'a mut Buffer,
    theme: Theme,
}

impl Pen<'_> {
    /// A line from a column on, cut at the right edge. The column behind it.
    fn line(&mut self, x: u16, y: u16, right: u16, line: &[Span]) -> u16 {
        let mut at = x;
        for span in line {
            let style = self.theme.of(span.style);
            for g in span.text.graphemes(true) {
                let width = wrap::width(g) as u16;
                if width == 0 {
                    continue;
                }
                if at + width > right {
                    return at;
                }
                self.buffer[(at, y)].set_symbol(g).set_style(style);
                for covered in 1..width {
                    self.buffer[(at + covered, y)].reset();
                }
                at += width;
            }
        }
        at
    }

    fn repeat(&mut self, from: u16, to: u16, y: u16, symbol: &str, style: Style) {
        let style = self.theme.of(style);
        for x in from..to {
            self.buffer[(x, y)].set_symbol(symbol).set_style(style);
        }
    }

    fn rule(&mut self, y: u16, width: u16, look: &Look) {
        let glyph = look.styles.glyph("─", "-");
        self.repeat(0, width, y, glyph, Style::new().dimmed());
    }
}

fn header(app: &App, look: &Look) -> Line {
    let view = &app.log.view;
    let dim = Style::new().dimmed();
    let dot = || Span::new(dim, look.styles.glyph(" · ", " - "));
    let mut line = vec![Span::new(Style::new().bold(), "kd chat")];
    if let Some(id) = &app.thread {
        line.extend([dot(), Span::plain(clean::line(id))]);
    }
    line.push(dot());
    for (i, member) in app.members().iter().enumerate() {
        if i > 0 {
            line.push(Span::plain(" "));
        }
        let (mark, style) = look.speaker(member.as_str());
        if view.muted.contains(member) {
            line.push(Span::new(dim.strikethrough(), format!("{mark} {member}")));
            line.push(Span::new(dim, " (muted)"));
        } else {
            line.push(Span::new(style, format!("{mark} {member}")));
        }
    }
    if let Some(mode) = &view.mode {
        line.extend([dot(), Span::plain(mode.clone())]);
        if let Some(auto) = view.auto_messages {
            line.push(Span::new(dim, format!(" (auto {auto})")));
        }
    }
    if let Some(focus) = &app.log.focus {
        line.extend([
            dot(),
            Span::new(Style::new().invert(), format!(" only {focus} ")),
            Span::new(dim, " Alt+0: everybody"),
        ]);
    }
    line
}

/// What goes on, what is below, and the keys that work here and now; the most important first, cut at the right.
fn status(app: &App, look: &Look, width: usize) -> Line {
    let dim = Style::new().dimmed();
    let strong = Style::new().bold();
    let dot = look.styles.glyph(" · ", " - ");
    let mut line = Line::new();
    let mut right = String::new();
    if let Some(unseen) = app.log.unseen() {
        let arrow = look.styles.glyph("↓", "v");
        right = match unseen {
            0 => format!("End {arrow}"),
            n => format!("{n} new {arrow}"),
        };
    }
    let speaking: Vec<&str> = app
        .log
        .view
        .growing_turns()
        .filter(|g| g.turn.is_some())
        .map(|g| g.seat.as_str())
        .collect();
    let mut parts: Vec<(Style, String)> = Vec::new();
    if app.leaving {
        let whom = speaking.join(", ");
        parts.push((
            strong,
            format!("leaving when {whom} has ended{dot}Esc: at once"),
        ));
    } else if let Some((toast, _)) = &app.toast {
        parts.push((strong, clean::line(toast)));
    } else {
        if app.thread.is_some() && !app.is_ready() {
            parts.push((strong, format!("opening{}", look.styles.glyph("…", "..."))));
        }
        if !speaking.is_empty() {
            let whom = match speaking.as_slice() {
                [one] => format!("{one} speaks"),
                [one, two] => format!("{one} and {two} speak"),
                more => format!("{} members speak", more.len()),
            };
            parts.push((strong, whom));
        }
        let newline = if app.keyboard {
            "Shift+Enter: newline"
        } else {
            "Ctrl+J: newline"
        };
        let keys: &[&str] = if app.reading {
            &[
                "j k n p g G",
                "1-9: one member",
                "c: copy",
                "t: thinking",
                "r: retry",
                "Esc: write",
                "?: help",
            ]
        } else if !app.editor.is_empty() {
            &["Enter: send", newline, "Esc: clear", "Tab: complete"]
        } else if !speaking.is_empty() {
            &["Esc: interrupt", "Enter: send", newline, "F1: help"]
        } else {
            &["Enter: send", newline, "Esc: read", "F1: help", "/quit"]
        };
        parts.extend(keys.iter().map(|k| (dim, (*k).to_owned())));
    }
    let room = width.saturating_sub(wrap::width(&right) + 2);
    let mut used = 1;
    line.push(Span::plain(" "));
    for (i, (style, part)) in parts.into_iter().enumerate() {
        let lead = if i == 0 { "" } else { dot };
        let needs = wrap::width(lead) + wrap::width(&part);
        if used + needs > room {
            // The first is cut rather than left out.
            if i == 0 {
                let cut = wrap::clip(&part, room.saturating_sub(1));
                used += wrap::width(&cut);
                line.push(Span::new(style, cut));
            }
            break;
        }
        used += needs;
        line.push(Span::new(dim, lead));
        line.push(Span::new(style, part));
    }
    if !right.is_empty() {
        let gap = width.saturating_sub(used + wrap::width(&right) + 1);
        line.push(Span::plain(" ".repeat(gap)));
        let style = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
        line.push(Span::new(style, right));
    }
    line
}

fn draw_log(app: &mut App, look: &Look, pen: &mut Pen<'_>, top: u16, rows: u16) {
    let following = app.log.is_following();
    let empty = app.log.end() == app.log.first();
    if empty {
        let text = if app.thread.is_some() {
            "Nothing was said here yet. What you write goes to every member; @name asks one of them."
        } else {
            "Opening…"
        };
        for (i, line) in wrap::wrap(text, look.columns.saturating_sub(4))
            .iter()
            .enumerate()
        {
            if i < usize::from(rows) {
                let span = [Span::new(Style::new().dimmed(), format!("  {line}"))];
                pen.line(0, top + i as u16, pen.buffer.area.width, &span);
            }
        }
        return;
    }
    let slices = app.log.slices(rows.into(), look);
    let total: usize = slices.iter().map(|s| s.rows).sum();
    let mut y = top;
    // A short log stands above the input, where the next message will come.
    if following {
        y += (usize::from(rows).saturating_sub(total)) as u16;
    }
    for slice in slices {
        for i in 0..slice.rows {
            card_line(&slice, slice.from + i, y, look, pen);
            y += 1;
        }
    }
}

/// One line of a card, its edges included.
fn card_line(slice: &Slice<'_>, at: usize, y: u16, look: &Look, pen: &mut Pen<'_>) {
    let card = slice.card;
    let width = look.columns as u16;
    let glyph = |unicode: &'static str, ascii: &'static str| look.styles.glyph(unicode, ascii);
    if card.bare {
        let lines = usize::from(!card.title.is_empty());
        let line = if at < lines {
            Some(&card.title)
        } else {
            card.head.get(at - lines)
        };
        if let Some(line) = line {
            let x = if at < lines { 1 } else { 0 };
            pen.line(x, y, width, line);
        }
        return;
    }
    let edge = [Span::new(card.edge, glyph("─", "-"))];
    if at == 0 || at + 1 == slice.height {
        let (left, right) = if at == 0 {
            ("┌", "┐")
        } else {
            ("└", "┘")
        };
        pen.line(0, y, width, &[Span::new(card.edge, glyph(left, "+"))]);
        pen.repeat(1, width - 1, y, &edge[0].text, card.edge);
        pen.line(
            width - 1,
            y,
            width,
            &[Span::new(card.edge, glyph(right, "+"))],
        );
        if at == 0 {
            pen.line(1, y, width, &[Span::plain(" ")]);
            let end = pen.line(2, y, width - 2, &card.title);
            pen.line(end, y, width - 1, &[Span::plain(" ")]);
        }
        return;
    }
    let bar = [Span::new(card.edge, glyph("│", "|"))];
    pen.line(0, y, width, &bar);
    pen.line(width - 1, y, width, &bar);
    let mut i = at - 1;
    if let Some(line) = card.head.get(i) {
        pen.line(2, y, width - 1, line);
        return;
    }
    i -= card.head.len();
    let grows = matches!(card.body, Body::Growing);
    let body = slice.body.len().max(usize::from(grows));
    if i < body {
        let end = slice
            .body
            .get(i)
            .map_or(2, |line| pen.line(2, y, width - 1, line));
        if grows && i + 1 == body {
            let cursor = [Span::new(card.edge, glyph("▍", "_"))];
            pen.line(end.min(width - 2), y, width - 1, &cursor);
        }
        return;
    }
    if let Some(line) = card.foot.get(i - body) {
        pen.line(2, y, width - 1, line);
    }
}

/// What could be written, above the status line.
fn offers(app: &App, look: &Look, pen: &mut Pen<'_>, below: u16) {
    let Some(candidates) = &app.candidates else {
        return;
    };
    let rows = candidates
        .list
        .len()
        .min(OFFERS)
        .min(below.saturating_sub(1).into());
    let first = candidates.chosen.saturating_sub(rows.saturating_sub(1));
    let width = pen.buffer.area.width;
    for (i, (text, what)) in candidates.list.iter().enumerate().skip(first).take(rows) {
        let y = below - rows as u16 + (i - first) as u16;
        pen.repeat(0, width, y, " ", Style::new());
        let chosen = i == candidates.chosen;
        let style = if chosen {
            Style::new().invert()
        } else {
            Style::new()
        };
        let sign = if chosen {
            look.styles.glyph("›", ">")
        } else {
            " "
        };
        let line = [
            Span::new(Style::new().bold(), format!("{sign} ")),
            Span::new(style, clean::line(text)),
            Span::new(Style::new().dimmed(), format!("  {}", clean::line(what))),
        ];
        pen.line(0, y, width, &line);
    }
}

/// Everything that helps: keys, then commands.
fn help(unicode: bool) -> Vec<Line> {
    let head = |text: &str| vec![Span::new(Style::new().bold(), format!(" {text}"))];
    let row = |left: &str, right: &str| {
        let left = if unicode {
            left.to_owned()
        } else {
            left.replace('…', "..")
        };
        vec![
            Span::plain(format!("   {left:<26} ")),
            Span::new(Style::new().dimmed(), right),
        ]
    };
    let mut lines = vec![head("Keys")];
    lines.extend(
        KEYS.iter()
            .filter_map(|k| k.help)
            .map(|(keys, what)| row(keys, what)),
    );
    lines.push(Line::new());
    lines.push(head("Commands"));
    lines.extend(
        COMMANDS
            .iter()
            .map(|c| row(format!("/{} {}", c.name, c.args).trim(), c.doc)),
    );
    lines.push(Line::new());
    lines.push(head("Words"));
    lines.push(row("@member", "that member alone, once"));
    lines.push(row("@all", "everybody, then the discussion"));
    lines.push(row("@path Tab", "a file's path"));
    lines
}

fn picker(app: &App, look: &Look, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let Screen::Picker(picker) = &app.screen else {
        return None;
    };
    let area = buffer.area;
    let mut pen = Pen {
        buffer,
        theme: app.theme,
    };
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
                let when = row.at.map(|at| ago(at, look)).unwrap_or_default();
                line.push(Span::new(style, format!("{:<14}", clean::line(&row.id))));
                let facts = format!(" {when:>7}  {:>5} msgs  ", row.messages);
                line.push(Span::new(dim, facts));
                line.push(Span::plain(clean::line(&row.question)));
            }
        }
        pen.line(0, 2 + (i - first) as u16, area.width, &line);
    }
    let hint = " Enter: open, Ctrl+N: new, letters: search, Esc: back";
    pen.line(0, area.height - 1, area.width, &[Span::new(dim, hint)]);
    Some((end.min(area.width - 1), 1))
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
