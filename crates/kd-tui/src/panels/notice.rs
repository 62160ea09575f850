//! Notices to the user that are not messages.

use super::{Card, Look, yellow};
use crate::text::clean;
use crate::text::wrap::{Line, Span, wrap_spans};
use anstyle::Style;

/// Builds the card of a notice.
pub(super) fn card(text: &str, look: &Look) -> Card {
    lines(
        look.styles.glyph("ℹ", "i"),
        Style::new().dimmed(),
        text,
        look,
    )
}

/// Builds the card of something that could not be done.
pub(super) fn refusal(text: &str, look: &Look) -> Card {
    lines(look.styles.glyph("✗", "x"), yellow(), text, look)
}

fn lines(mark: &str, style: Style, text: &str, look: &Look) -> Card {
    let room = look.columns.saturating_sub(4).max(8);
    let head: Vec<Line> = clean::text(text)
        .lines()
        .flat_map(|line| wrap_spans(&[Span::new(style, line)], room))
        .enumerate()
        .map(|(i, mut line)| {
            let lead = if i == 0 {
                format!(" {mark} ")
            } else {
                "   ".to_owned()
            };
            line.insert(0, Span::new(style, lead));
            line
        })
        .collect();
    Card {
        head,
        bare: true,
        ..Card::default()
    }
}
