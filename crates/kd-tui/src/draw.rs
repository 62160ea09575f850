//! Draws the whole screen from the app's state into a buffer, and returns the cursor position.

mod bars;
mod compare;
mod help;
pub(crate) mod pen;
mod picker;
mod strip;

use crate::app::{App, Screen};
use crate::keymap::Action;
use crate::log::{Placed, Slice};
use crate::paint::Link;
use crate::panels::{Body, Frame, Look};
use crate::select::{Area, Selection};
use crate::text::wrap::{self, Line, Span, clip_spans, wrap_spans};
use crate::text::{clean, links};
use anstyle::Style;
use pen::Pen;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Modifier;

/// The input takes at most this fraction of the screen's rows.
const INPUT_PART: u16 = 3;
/// Minimum height for rules that separate the header and the input from the log.
const RULES_FROM: u16 = 18;
/// Minimum height for the round strip while a member speaks; with rules, also afterwards.
const STRIP_FROM: u16 = 10;
/// The status line takes at most this fraction of the screen's rows, for a notice that does not fit on one.
const STATUS_PART: u16 = 6;
/// Prompt of the search.
const SEARCH: &str = "search: ";
/// Maximum candidates shown.
const OFFERS: usize = 6;

/// Draws everything. Returns the cursor position; `None` if it is hidden.
pub fn draw(app: &mut App, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let area = buffer.area;
    app.links.clear();
    app.areas.clear();
    if area.width < 4 || area.height < 3 {
        return None;
    }
    let theme = app.theme;
    let look = app.look();
    let unicode = look.styles.unicode;
    let mut pen = Pen {
        buffer,
        theme,
        unicode,
    };
    if let Screen::Picker(choice) = &app.screen {
        return picker::picker(choice, &look, &mut pen);
    }
    let rules = u16::from(area.height >= RULES_FROM);
    let mut top = 0;
    pen.line(
        0,
        top,
        area.width,
        &bars::header(app, &look, area.width.into()),
    );
    top += 1;
    if rules > 0 {
        pen.rule(top, area.width, &look);
        top += 1;
    }
    match &mut app.screen {
        Screen::Compare(shown) => {
            compare::comparison(shown, &look, &mut pen, top);
            return None;
        }
        Screen::Merge(merge) => {
            compare::pieces(merge, &look, &mut pen, top);
            return None;
        }
        Screen::Chat | Screen::Picker(_) | Screen::Help(_) | Screen::Keys(_) => {}
    }
    let lines = match app.screen {
        Screen::Keys(_) => help::keys,
        _ => help::lines,
    };
    if let Screen::Help(from) | Screen::Keys(from) = &mut app.screen {
        let lines = lines(area.width.into(), &look.keys);
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
    let wanted = if app.search.is_some() { 1 } else { rows.len() };
    let input = (wanted.min(usize::from(u16::MAX)) as u16).clamp(1, most);
    let bottom = area.height - input;
    let wanted = area.height >= RULES_FROM || app.log.view.is_growing();
    let strip = (area.height >= STRIP_FROM && wanted && app.search.is_none())
        .then(|| strip::strip(&app.log.view, &look, area.width.into()))
        .flatten();
    let strip_rows = u16::from(strip.is_some());
    let most = (area.height / STATUS_PART).max(1).into();
    let status = bars::status(app, &look, strip.is_some(), area.width.into(), most);
    let status_y = bottom - status.len() as u16;
    let log_rows = status_y
        .saturating_sub(rules)
        .saturating_sub(strip_rows)
        .saturating_sub(top);
    draw_log(app, &look, &mut pen, top, log_rows);
    if rules > 0 {
        pen.rule(status_y - strip_rows - 1, area.width, &look);
    }
    if let Some(strip) = &strip {
        pen.line(0, status_y - 1, area.width, strip);
    }
    for (y, line) in (status_y..bottom).zip(&status) {
        pen.line(0, y, area.width, line);
    }
    offers(app, &look, &mut pen, status_y);
    // A cell that was drawn over a link is no longer a link.
    app.links.retain(|link| is_shown(link, pen.buffer));
    if let Some(search) = &app.search {
        let lead = Span::new(Style::new().bold(), SEARCH);
        let line = [lead, Span::plain(clean::text(search.query()).into_owned())];
        let x = pen.line(0, bottom, area.width, &line);
        return Some((x.min(area.width - 1), bottom));
    }
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
            "reading; any letter that is not a key writes"
        } else {
            placeholder(app)
        };
        let room = usize::from(area.width) - 2;
        let hint = clip_spans(&[Span::new(Style::new().dimmed(), hint)], room);
        pen.line(2, bottom, area.width, &hint);
    }
    if app.reading {
        return None;
    }
    let x = (2 + column).min(usize::from(area.width) - 1);
    Some((x as u16, bottom + (row - first) as u16))
}

fn placeholder(app: &App) -> &'static str {
    if app.log.view.is_busy() {
        "messages sent now wait until they have answered"
    } else if app.log.view.is_growing() {
        "messages to members that answer another window wait; @member asks one"
    } else {
        "your message; @member asks one, / commands"
    }
}

fn draw_log(app: &mut App, look: &Look, pen: &mut Pen<'_>, top: u16, rows: u16) {
    let following = app.log.is_following();
    let empty = app.log.end() == app.log.first();
    if empty {
        let text = if app.thread.is_some() {
            "No messages yet. What you write goes to every member; @name asks one of them."
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
    let has_links = app.settings.links;
    let selection = app.selection.as_ref();
    let slices = app.log.slices(rows.into(), look);
    let total: usize = slices.iter().map(|s| s.rows).sum();
    let mut y = top;
    // A short log is placed right above the input, where the next message appears.
    if following {
        y += (usize::from(rows).saturating_sub(total)) as u16;
    }
    let (mut links, mut areas) = (Vec::new(), Vec::new());
    for slice in slices {
        if has_links {
            add_links(&slice, y, &mut links);
        }
        add_areas(&slice, y, &mut areas);
        for at in slice.from..slice.from + slice.rows {
            for placed in &slice.cards {
                if (placed.y..placed.y + placed.height).contains(&at) {
                    card_line(placed, at - placed.y, y, look, pen);
                    if let Some(selection) = selection {
                        mark(selection, placed, at - placed.y, y, pen);
                    }
                }
            }
            y += 1;
        }
    }
    app.links = links;
    app.areas = areas;
}

/// Adds the visible parts of cards whose first visible line is at `y`.
fn add_areas(slice: &Slice<'_>, y: u16, out: &mut Vec<Area>) {
    for placed in &slice.cards {
        let line = |at: usize| at.saturating_sub(placed.y).min(placed.height);
        let lines = line(slice.from)..line(slice.from + slice.rows);
        out.push(Area {
            item: placed.item,
            x: placed.x as u16,
            width: placed.width as u16,
            y: y + (placed.y + lines.start - slice.from) as u16,
            lines,
        });
    }
}

/// Shows the selected text of a line of a card.
fn mark(selection: &Selection, placed: &Placed<'_>, at: usize, y: u16, pen: &mut Pen<'_>) {
    let columns = selection.columns(at);
    if selection.item != placed.item || columns.is_empty() {
        return;
    }
    let Some((left, line)) = placed.card.text_line(placed.body, at) else {
        return;
    };
    let end = columns.end.min(left + wrap::line_width(line));
    for column in columns.start.max(left)..end.min(placed.width) {
        if let Some(cell) = pen.buffer.cell_mut(((placed.x + column) as u16, y)) {
            cell.modifier.toggle(Modifier::REVERSED);
        }
    }
}

/// Adds the links in the visible lines of cards whose first one is at `y`.
fn add_links(slice: &Slice<'_>, y: u16, out: &mut Vec<Link>) {
    for placed in slice.cards.iter().filter(|placed| !placed.card.bare) {
        let begin = placed.y + 1 + placed.card.head.len();
        let row = |row: usize| row.saturating_sub(begin).min(placed.body.len());
        let shown = row(slice.from)..row(slice.from + slice.rows);
        for found in links::find(|at| placed.body.get(at), shown) {
            out.push(Link {
                y: y + (begin + found.line - slice.from) as u16,
                from: (placed.x + 2 + found.from) as u16,
                to: (placed.x + 2 + found.to) as u16,
                url: found.url,
            });
        }
    }
}

/// Returns whether the cells of a link show a part of its address.
fn is_shown(link: &Link, buffer: &Buffer) -> bool {
    let cells = (link.from..link.to).filter_map(|x| buffer.cell((x, link.y)));
    let text: String = cells.map(|cell| cell.symbol()).collect();
    link.url.contains(&text)
}

/// Draws one line of a card, including its edges.
fn card_line(placed: &Placed<'_>, at: usize, y: u16, look: &Look, pen: &mut Pen<'_>) {
    let card = placed.card;
    let left = placed.x as u16;
    let right = left + placed.width as u16;
    let glyph = |unicode: &'static str, ascii: &'static str| look.styles.glyph(unicode, ascii);
    if card.bare {
        let lines = usize::from(!card.title.is_empty());
        let line = if at < lines {
            Some(&card.title)
        } else {
            card.head.get(at - lines)
        };
        if let Some(line) = line {
            let x = left + u16::from(at < lines);
            pen.line(x, y, right, line);
        }
        return;
    }
    if look.frame == Frame::Bar {
        // The line of the lower edge keeps messages apart.
        if at + 1 < placed.height {
            let bar = [Span::new(card.edge, glyph("▎", "|"))];
            pen.line(left, y, right, &bar);
        }
        if at == 0 {
            let title = clip_spans(&card.title, placed.width.saturating_sub(4));
            pen.line(left + 2, y, right - 2, &title);
        }
        if at == 0 || at + 1 >= placed.height {
            return;
        }
    }
    let edge = [Span::new(card.edge, glyph("─", "-"))];
    if at == 0 || at + 1 == placed.height {
        let (begin, end) = if at == 0 {
            ("┌", "┐")
        } else {
            ("└", "┘")
        };
        pen.line(left, y, right, &[Span::new(card.edge, glyph(begin, "+"))]);
        pen.repeat(left + 1, right - 1, y, &edge[0].text, card.edge);
        pen.line(
            right - 1,
            y,
            right,
            &[Span::new(card.edge, glyph(end, "+"))],
        );
        if at == 0 {
            pen.line(left + 1, y, right, &[Span::plain(" ")]);
            let title = clip_spans(&card.title, placed.width.saturating_sub(4));
            let end = pen.line(left + 2, y, right - 2, &title);
            pen.line(end, y, right - 1, &[Span::plain(" ")]);
        }
        return;
    }
    let bar = [Span::new(card.edge, glyph("│", "|"))];
    if look.frame == Frame::Box {
        pen.line(left, y, right, &bar);
        pen.line(right - 1, y, right, &bar);
    }
    let mut i = at - 1;
    if let Some(line) = card.head.get(i) {
        pen.line(left + 2, y, right - 1, line);
        return;
    }
    i -= card.head.len();
    let grows = matches!(card.body, Body::Growing);
    let body = placed.body.len().max(usize::from(grows));
    if i < body {
        let end = placed
            .body
            .get(i)
            .map_or(left + 2, |line| pen.line(left + 2, y, right - 1, line));
        if grows && i + 1 == body {
            let cursor = [Span::new(card.edge, glyph("▍", "_"))];
            pen.line(end.min(right - 2), y, right - 1, &cursor);
        }
        return;
    }
    if let Some(line) = card.foot.get(i - body) {
        pen.line(left + 2, y, right - 1, line);
    }
}

/// Draws the completions above the status line.
fn offers(app: &App, look: &Look, pen: &mut Pen<'_>, below: u16) {
    let width = pen.buffer.area.width;
    let (list, picked) = match (&app.search, &app.candidates) {
        (Some(search), _) => {
            let fitting = search.fitting(app.editor.sent());
            let line = |text: &&str| excerpt(text, search.query(), width.into());
            let list = fitting.iter().map(|text| (line(text), String::new()));
            (list.collect(), search.chosen())
        }
        (None, Some(candidates)) => (candidates.list.clone(), candidates.chosen),
        (None, None) => return,
    };
    let room = usize::from(below.saturating_sub(1));
    let rows = list.len().min(OFFERS).min(room);
    let first = picked.saturating_sub(rows.saturating_sub(1));
    let mut lines: Vec<Line> = Vec::new();
    let mut whole = Vec::new();
    for (i, (text, what)) in list.iter().enumerate().skip(first).take(rows) {
        let chosen = i == picked;
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
        if chosen && app.search.is_none() {
            whole = hung(&line, width.into());
        }
        lines.push(clip_spans(&line, width.into()));
    }
    // The chosen one is explained in full where there is room for it.
    if !whole.is_empty() && lines.len() + whole.len() - 1 <= room {
        lines.splice(picked - first..=picked - first, whole);
    }
    if rows < list.len() && app.search.is_none() && lines.len() < room {
        let (from, to) = (first + 1, first + rows);
        let more = match to < list.len() {
            true => format!("; {} shows more", look.keys.label(Action::Down)),
            false => String::new(),
        };
        let text = format!("  {from} to {to} of {}{more}", list.len());
        lines.push(vec![Span::new(Style::new().dimmed(), text)]);
    }
    for (y, line) in (below - lines.len() as u16..below).zip(&lines) {
        pen.repeat(0, width, y, " ", Style::new());
        pen.line(0, y, width, line);
    }
}

/// Wraps a line; what follows its first line is indented.
fn hung(line: &[Span], columns: usize) -> Vec<Line> {
    const INDENT: &str = "    ";
    let mut lines = wrap_spans(line, columns.saturating_sub(INDENT.len()));
    for line in lines.iter_mut().skip(1) {
        line.insert(0, Span::plain(INDENT));
    }
    lines
}

/// Returns one line of a text, from its beginning or, if that would hide the first search word, from shortly before it.
fn excerpt(text: &str, query: &str, width: usize) -> String {
    let line = clean::line(text);
    let lower = line.to_lowercase();
    let word = query.split_whitespace().next().unwrap_or_default();
    let at = lower.find(&word.to_lowercase()).unwrap_or_default();
    let before = lower[..at].chars().count();
    if before + wrap::width(word) + 4 < width {
        return line;
    }
    let rest: String = line
        .chars()
        .skip(before.saturating_sub(width / 4))
        .collect();
    format!("…{rest}")
}
