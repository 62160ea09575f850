//! The header and the status line: as much as fits, most important first.

use crate::app::{App, Asks};
use crate::keymap::Action;
use crate::panels::Look;
use crate::text::clean;
use crate::text::wrap::{self, Line, Span, clip_spans, line_width};
use anstyle::{AnsiColor, Style};

/// Steps by which the header is shortened, from everything to only the marks.
const LEVELS: u8 = 6;

/// Builds the header: the thread, its members, who is muted, absent or disabled, and the speaking order.
pub(super) fn header(app: &App, look: &Look, width: usize) -> Line {
    (0..LEVELS)
        .map(|level| header_at(app, look, level))
        .find(|line| line_width(line) <= width)
        .unwrap_or_else(|| clip_spans(&header_at(app, look, LEVELS - 1), width))
}

fn header_at(app: &App, look: &Look, level: u8) -> Line {
    let view = &app.log.view;
    let dim = Style::new().dimmed();
    let dot = || Span::new(dim, look.styles.glyph(" · ", " - "));
    let mut line = Line::new();
    if level < 1 {
        line.extend([Span::new(Style::new().bold(), "kd chat"), dot()]);
    }
    if let Some(id) = &app.thread {
        let id = if level < 2 {
            id
        } else {
            id.strip_prefix("council-").unwrap_or(id)
        };
        line.extend([Span::plain(clean::line(id)), dot()]);
    }
    if let Some(focus) = &app.log.focus {
        line.push(Span::new(Style::new().invert(), format!(" only {focus} ")));
        if level < 1 {
            line.push(Span::new(
                dim,
                format!(" {}: everybody", look.keys.label(Action::Everybody)),
            ));
        }
        line.push(dot());
    }
    for (i, member) in app.members().iter().enumerate() {
        if i > 0 && level < LEVELS - 1 {
            line.push(Span::plain(" "));
        }
        let (mark, style) = look.speaker(member.as_str());
        let name = match level {
            0..4 => format!("{mark} {member}"),
            4 => format!("{mark} {}", wrap::clip(member.as_str(), 4)),
            _ => mark.to_owned(),
        };
        if view.muted.contains(member) {
            let muted = if level < 3 {
                " (muted)"
            } else {
                look.styles.glyph("✗", "x")
            };
            line.push(Span::new(dim.strikethrough(), name));
            line.push(Span::new(dim, muted));
        } else if app.absent.iter().any(|(absent, _)| absent == member) {
            line.push(Span::new(dim, name));
            line.push(Span::new(dim, if level < 3 { " (absent)" } else { "?" }));
        } else {
            line.push(Span::new(style, name));
        }
    }
    for (member, _) in &app.disabled {
        let name = match level {
            0..4 => member.to_string(),
            _ => wrap::clip(member.as_str(), 4),
        };
        line.push(Span::new(dim.strikethrough(), format!(" {name}")));
        line.push(Span::new(dim, if level < 3 { " (disabled)" } else { "-" }));
    }
    if let Some(mode) = view.mode.as_ref().filter(|_| level < 3) {
        line.extend([dot(), Span::plain(mode.clone())]);
        if let Some(auto) = view.auto_messages {
            line.push(Span::new(dim, format!(" (auto {auto})")));
        }
    }
    line
}

/// Builds a hint: a key and what it does.
fn hint(look: &Look, action: Action, what: &str) -> String {
    format!("{}: {what}", look.keys.label(action))
}

/// Builds the status line: activity (unless shown by the `strip`), what is below, and the keys available now; most
/// important first. What does not fit is left out, except the first part, which takes up to `rows` lines.
pub(super) fn status(app: &App, look: &Look, strip: bool, width: usize, rows: usize) -> Vec<Line> {
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
        .filter(|g| g.id.is_some())
        .map(|g| g.seat.as_str())
        .collect();
    let mut parts: Vec<(Style, String)> = Vec::new();
    if let Some(consent) = &app.consent {
        let what = match consent.asks {
            Asks::Files => "attach it",
            Asks::Command(_) => "run it",
        };
        parts.push((strong, format!("{what}? y: yes")));
        parts.push((strong, format!("n or {}", hint(look, Action::Escape, "no"))));
        parts.push((dim, clean::line(&consent.doubts)));
    } else if let Some(search) = &app.search {
        let found = search.fitting(app.editor.sent()).len();
        let told = match found {
            0 => "none of your messages has these words".to_owned(),
            _ => format!("{} of {found}", search.chosen() + 1),
        };
        parts.push((strong, told));
        let keys = [
            (Action::Send, "take"),
            (Action::Search, "older"),
            (Action::Escape, "back"),
        ];
        let mut keys = keys.map(|(action, what)| hint(look, action, what)).to_vec();
        keys.insert(2, format!("{}: newer", look.keys.newer()));
        parts.extend(keys.into_iter().map(|key| (dim, key)));
    } else if app.leaving {
        let whom = speaking.join(", ");
        parts.push((
            strong,
            format!(
                "quitting after {whom}{dot}{}",
                hint(look, Action::Escape, "at once")
            ),
        ));
    } else {
        if app.is_armed() {
            parts.push((
                strong,
                format!("{} again quits", look.keys.label(Action::Interrupt)),
            ));
        }
        if let Some((toast, _)) = &app.toast {
            parts.push((strong, clean::line(toast)));
        }
        if let Some(attaches) = &app.attaches {
            parts.push((strong, clean::line(attaches)));
        }
        if app.thread.is_some() && !app.is_ready() {
            parts.push((strong, format!("opening{}", look.styles.glyph("…", "..."))));
        }
        if !speaking.is_empty() && !strip {
            let whom = match speaking.as_slice() {
                [one] => format!("{one} speaks"),
                [one, two] => format!("{one} and {two} answer"),
                more => format!("{} members answer", more.len()),
            };
            parts.push((strong, whom));
        }
        let hint = |action, what| hint(look, action, what);
        let newline = match look.keys.is_changed(Action::Newline) {
            true => hint(Action::Newline, "newline"),
            false if app.keyboard => "Shift+Enter: newline".to_owned(),
            false => "Ctrl+J: newline".to_owned(),
        };
        let send = || hint(Action::Send, "send");
        let keys: Vec<String> = if app.reading {
            let letters = ["j k n p g G", "1-9: one member", "c: copy"];
            let mut keys: Vec<String> = letters.map(str::to_owned).to_vec();
            keys.push(hint(Action::Escape, "write"));
            keys.extend(["d: compare", "m: merge", "t: thinking"].map(str::to_owned));
            keys.push(hint(Action::Retry, "retry"));
            keys.push("?: help".to_owned());
            keys
        } else if app.can_stop() {
            let help = hint(Action::Help, "help");
            vec![hint(Action::Escape, "interrupt"), send(), newline, help]
        } else if !app.editor.is_empty() {
            let complete = hint(Action::Complete, "complete");
            vec![send(), newline, hint(Action::Escape, "clear"), complete]
        } else {
            let (read, help) = (hint(Action::Read, "read"), hint(Action::Help, "help"));
            vec![send(), newline, read, help, "/quit".to_owned()]
        };
        parts.extend(keys.into_iter().map(|key| (dim, key)));
    }
    let room = width.saturating_sub(wrap::width(&right) + 2);
    let mut used = 1;
    let mut lines = Vec::new();
    line.push(Span::plain(" "));
    for (i, (style, mut part)) in parts.into_iter().enumerate() {
        let lead = if i == 0 { "" } else { dot };
        if i == 0 {
            let (above, last) = broken(&part, room.saturating_sub(1), rows);
            let above = above.into_iter().map(|text| Span::new(style, text));
            lines.extend(above.map(|text| vec![Span::plain(" "), text]));
            part = last;
        }
        let needs = wrap::width(lead) + wrap::width(&part);
        if used + needs > room {
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
    lines.push(line);
    lines
}

/// Breaks a text into at most `rows` lines. Returns all but the last, and the last, which is cut if it does not fit.
fn broken(text: &str, columns: usize, rows: usize) -> (Vec<String>, String) {
    let mut lines = wrap::wrap(text, columns);
    let mut last = lines.split_off(lines.len().min(rows.max(1)).saturating_sub(1));
    let last = match last.len() {
        0 => String::new(),
        1 => last.remove(0),
        _ => wrap::clip(&last.join(" "), columns),
    };
    (lines, last)
}
