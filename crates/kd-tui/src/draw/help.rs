//! The help screen: keys, then commands.

use crate::keymap::{KEYS, Keymap};
use crate::text::wrap::{self, Line, Span};
use anstyle::Style;
use kd_core::slash::COMMANDS;

/// Columns for keys and commands; the description follows on the same row, or below where space is short.
const LEFT: usize = 30;
const BESIDE_FROM: usize = 64;

/// Builds all lines of the help for a width.
pub(super) fn lines(width: usize, map: &Keymap) -> Vec<Line> {
    let mut lines = Vec::new();
    let changed: Vec<_> = KEYS.iter().filter(|k| map.is_changed(k.action)).collect();
    if !changed.is_empty() {
        lines.push(head("Keys that your settings changed"));
        for key in changed {
            lines.extend(row(&map.labels(key.action), key.name, width));
        }
        lines.push(Line::new());
    }
    lines.push(head("Keys"));
    let usual = KEYS.iter().filter(|k| !map.is_changed(k.action));
    for (keys, what) in usual.filter_map(|k| k.help) {
        lines.extend(row(keys, what, width));
    }
    lines.extend([Line::new(), head("Commands")]);
    for command in COMMANDS {
        let left = format!("/{} {}", command.name, command.args);
        lines.extend(row(left.trim(), command.doc, width));
    }
    lines.extend([Line::new(), head("Words")]);
    for (left, what) in [
        ("@member", "only that member, once"),
        ("@all", "every member, then the discussion"),
        ("@path", "attaches the file; Tab completes its path"),
        (
            "!command",
            "runs it if `chat.shell` is on; the output goes into your draft",
        ),
    ] {
        lines.extend(row(left, what, width));
    }
    lines
}

/// Builds the list of all actions and their keys.
pub(super) fn keys(width: usize, map: &Keymap) -> Vec<Line> {
    let mut lines = vec![head("Actions and their keys")];
    for key in KEYS {
        let mut what = map.labels(key.action);
        if map.is_changed(key.action) {
            what.push_str(" (changed)");
        }
        lines.extend(row(key.name, &what, width));
    }
    lines.push(Line::new());
    let how = "`\"chat\": {\"keys\": {\"search\": \"ctrl+o\"}}` in your own settings file \
               (`kd config path` names it) changes them";
    lines.extend(row("", how, width));
    lines
}

fn head(text: &str) -> Line {
    vec![Span::new(Style::new().bold(), format!(" {text}"))]
}

fn row(left: &str, what: &str, width: usize) -> Vec<Line> {
    let beside = width >= BESIDE_FROM;
    let indent = if beside { LEFT } else { 5 };
    let left = Span::plain(format!("   {left}"));
    let dim = Style::new().dimmed();
    let mut lines = Vec::new();
    let mut begun = beside.then(|| left.clone());
    if !beside {
        lines.push(vec![left]);
    }
    for text in wrap::wrap(what, width.saturating_sub(indent + 1)) {
        let mut line: Line = begun.take().into_iter().collect();
        let gap = indent.saturating_sub(wrap::line_width(&line));
        line.extend([Span::plain(" ".repeat(gap)), Span::new(dim, text)]);
        lines.push(line);
    }
    lines
}
