//! A member without output yet: the reason for waiting, and for how long.

use super::{Card, Look, length, since, yellow};
use crate::text::clean;
use crate::text::wrap::{Span, clip};
use kd_core::event::Purpose;
use kd_core::view::{State, Turn};

/// Builds its card: one line.
pub(super) fn card(turn: &Turn, look: &Look) -> Card {
    let mut title = look.name(turn.seat.as_str());
    let dot = look.dot();
    let dots = look.styles.glyph("…", "...");
    let why = match (&turn.state, turn.purpose) {
        (State::Retrying { .. }, _) => format!("waiting: asked again{dots}"),
        (State::Started, _) => format!("waiting: it has the question{dots}"),
        (_, Purpose::Conclude) => format!("waiting to conclude{dots}"),
        (_, Purpose::Format) => format!("waiting to write JSON{dots}"),
        _ => format!("waiting: asked{dots}"),
    };
    let limit = look
        .gives_up
        .filter(|limit| turn.id.is_some() && !limit.is_zero())
        .map(|limit| format!("{dot}gives up at {}", length(limit)))
        .unwrap_or_default();
    title.push(look.dim(format!("{dot}{why} {}{limit}", elapsed(turn, look))));
    let head = if let State::Retrying {
        attempt, failure, ..
    } = &turn.state
    {
        let text = format!(
            "attempt {attempt} failed: {}",
            clean::line(&failure.message)
        );
        vec![vec![Span::new(yellow(), clip(&text, look.inner()))]]
    } else {
        Vec::new()
    };
    Card {
        edge: look.edge(turn.seat.as_str()).dimmed(),
        title,
        head,
        ..Card::default()
    }
}

/// Returns the elapsed time of its turn.
pub(super) fn elapsed(turn: &Turn, look: &Look) -> String {
    turn.span
        .map(|(from, _)| length(since(from, look.now)))
        .unwrap_or_default()
}
