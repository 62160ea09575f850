//! The live region as lines: one panel per open turn, within the terminal's size. Pure; [`super::live`] paints it.

use super::words;
use crate::render::clean;
use crate::render::style::{Styles, speaker};
use crate::render::wrap::{clip, width, wrap};
use jiff::Timestamp;
use kd_core::view::{State, Turn, View};

/// Maximum lines shown per panel, the newest: more would only distract.
const TAIL_MAX: usize = 8;
/// Minimum rows for the hint about Ctrl+C.
const HINT_ROWS_MIN: usize = 12;

/// Returns the lines of the region: each narrower than `columns`, fewer than `rows`.
pub(crate) fn lines(
    view: &View,
    now: Timestamp,
    columns: usize,
    rows: usize,
    styles: Styles,
) -> Vec<String> {
    let columns = columns.saturating_sub(1).max(8);
    let room = rows.saturating_sub(1).max(1);
    let open: Vec<&Turn> = view.turns.iter().filter(|t| !t.is_over()).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let hint = usize::from(rows >= HINT_ROWS_MIN);
    let heads = open.len().min(room);
    let writing = open.iter().filter(|t| tells(t)).count().max(1);
    let share = (room.saturating_sub(heads + hint) / writing).min(TAIL_MAX);
    let mut lines = Vec::with_capacity(room);
    let shown = if open.len() > room {
        room - 1
    } else {
        open.len()
    };
    for turn in &open[..shown] {
        lines.push(head(
            turn,
            view.look(turn.seat.as_str()),
            now,
            columns,
            styles,
        ));
        if tells(turn) {
            lines.extend(tail(turn, columns, share, styles));
        }
    }
    if shown < open.len() {
        lines.push(styles.dim(&clip(&format!("and {} more", open.len() - shown), columns)));
    }
    if hint == 1 && lines.len() < room {
        lines.push(styles.dim(&clip("Ctrl+C stops; partial answers are saved", columns)));
    }
    lines
}

/// Returns whether a panel has text to show.
fn tells(turn: &Turn) -> bool {
    match turn.state {
        State::Answering | State::Whole(_) => true,
        State::Thinking | State::Tool { .. } => !turn.text.is_empty(),
        State::Waiting
        | State::Started
        | State::Retrying { .. }
        | State::Done
        | State::Failed(_) => false,
    }
}

fn head(turn: &Turn, place: usize, now: Timestamp, columns: usize, styles: Styles) -> String {
    let mark = styles.mark(place);
    let name = clip(turn.seat.as_str(), columns.saturating_sub(width(mark) + 1));
    let dot = styles.glyph("·", "-");
    let part = turn
        .phase
        .map(|part| format!("{} {dot} ", words::part(part)));
    let state = format!(
        "{}{} {dot} {}",
        part.unwrap_or_default(),
        words::doing(turn, Some(now)),
        words::seconds(turn.elapsed(now))
    );
    let room = columns.saturating_sub(width(mark) + width(&name) + 3);
    let said = styles.paint(speaker(place), &format!("{mark} {name}"));
    if room < 4 {
        return said;
    }
    format!("{said}  {}", styles.dim(&clip(&state, room)))
}

/// Returns the last lines of a text. Looks only at its end, so a long answer costs no more than a short one.
fn tail(turn: &Turn, columns: usize, count: usize, styles: Styles) -> Vec<String> {
    if count == 0 {
        return Vec::new();
    }
    let room = columns.saturating_sub(2).max(1);
    // A character takes at most four bytes, and more than that never fit.
    let from = turn.text.len().saturating_sub(count * room * 4);
    let from = (from..=turn.text.len())
        .find(|i| turn.text.is_char_boundary(*i))
        .unwrap_or(0);
    let text = clean::text(&turn.text[from..]);
    let mut lines: Vec<String> = text
        .lines()
        .filter(|l| !l.trim().is_empty())
        .flat_map(|l| wrap(l.trim_end(), room.saturating_sub(1)))
        .collect();
    let skip = lines.len().saturating_sub(count);
    lines.drain(..skip);
    if let Some(last) = lines.last_mut() {
        last.push_str(styles.glyph("▍", "_"));
    }
    lines.into_iter().map(|l| format!("  {l}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::script::{Script, at};
    use kd_core::Delta;

    fn middle() -> View {
        let mut s = Script::open(&["claude", "codex", "gpt-5"]);
        for (turn, name) in [(1, "claude"), (2, "codex"), (3, "gpt-5")] {
            s.queue(turn, name);
        }
        s.text(1, "Start with **SQLite**: 日本語も大丈夫。 It is one file, and a small team has enough to do.\n\n- no server\n- 👩‍👩‍👧 fine\n- and so");
        s.delta(
            2,
            Delta::Thinking {
                text: "hm, hm".into(),
            },
        );
        s.retry(3, 9);
        View::of(&s.records)
    }

    #[test]
    fn the_region_at_three_sizes() {
        for (columns, rows) in [(40, 12), (80, 24), (140, 50)] {
            let text = lines(&middle(), at(12), columns, rows, Styles::NONE).join("\n");
            insta::assert_snapshot!(format!("frame-{columns}"), text);
        }
    }

    #[test]
    fn it_fits_every_terminal() {
        let mut view = middle();
        let turn = view.turns[0].clone();
        for i in 0..9 {
            let mut more = turn.clone();
            more.id = Some(kd_core::TurnId::new(10 + i));
            more.text = "many words 日本語 ".repeat(5000);
            view.turns.push(more);
        }
        for columns in [9, 20, 40, 80, 300] {
            for rows in [1, 2, 5, 12, 24, 100] {
                let lines = lines(&view, at(12), columns, rows, Styles::NONE);
                assert!(
                    lines.len() <= rows.saturating_sub(1).max(1),
                    "{columns}x{rows}: {}",
                    lines.len()
                );
                for line in &lines {
                    assert!(width(line) < columns, "{columns}: {line:?}");
                }
            }
        }
    }
}
