//! A growing answer, rendered as it arrives.

use super::waiting;
use super::{Body, Card, Look};
use crate::text::clean;
use crate::text::growing::Growing;
use crate::text::wrap::{Span, clip};
use anstyle::Style;
use kd_app::words::count;
use kd_core::view::{State, Turn};

/// Builds its card.
pub(super) fn card(turn: &Turn, look: &Look, growing: &mut Growing) -> Card {
    let mut title = look.name(turn.seat.as_str());
    let dot = look.dot();
    let what = match (&turn.state, turn.chars) {
        (State::Whole(_), _) => "being written".to_owned(),
        (_, 0) => format!("thinking{dot}{}", waiting::elapsed(turn, look)),
        (_, n) => format!("streaming{dot}{}", count(n as u64, "char")),
    };
    let other = if turn.id.is_none() {
        format!("{dot}another program asked")
    } else {
        String::new()
    };
    title.push(look.dim(format!(" ({what}){other}")));
    let mut head = look.thinking(&turn.thinking, turn.text.is_empty());
    if let State::Tool { name, detail } = &turn.state {
        let sign = look.styles.glyph("⚙", "*");
        let text = format!("{sign} {} {}", clean::line(name), clean::line(detail));
        let tool = Style::new().dimmed();
        head.push(vec![Span::new(tool, clip(text.trim_end(), look.inner()))]);
    }
    growing.lines(&turn.text, look.inner(), look.styles);
    Card {
        edge: look.edge(turn.seat.as_str()),
        title,
        head,
        body: Body::Growing,
        ..Card::default()
    }
}
