//! The panel of a member that waits for its turn, in modes where members answer one after another. Names the members
//! before it.

use super::{Card, Look};
use anstyle::Style;
use kd_core::SeatName;

/// Builds its card: one line.
pub(super) fn card(seat: &SeatName, place: usize, look: &Look) -> Card {
    let (mark, style) = look.speaker(seat.as_str());
    let dot = look.dot();
    let when = match place {
        0 => "comes next".to_owned(),
        n => format!("{} turns later", n + 1),
    };
    let title = vec![
        crate::text::wrap::Span::new(style.dimmed(), format!("{mark} {seat}")),
        look.dim(format!("{dot}{when}")),
    ];
    Card {
        edge: Style::new().dimmed(),
        title,
        bare: true,
        ..Card::default()
    }
}
