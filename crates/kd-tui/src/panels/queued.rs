//! Messages of the user that wait until the current round is over.

use super::message::{fold, folds};
use super::{Card, Look};
use crate::keymap::Action;
use anstyle::Style;
use kd_core::media;
use kd_core::message::Address;
use kd_core::names::KING;
use std::borrow::Cow;

/// Builds their card.
pub(super) fn card(body: &str, to: &Address, look: &Look) -> Card {
    let mut title = look.name(KING);
    let arrow = look.styles.glyph("→", "to");
    let to = match to {
        Address::Seats(_) => format!(" {arrow} {to}"),
        Address::All | Address::King => String::new(),
    };
    title.push(look.dim(format!(
        "{to} (queued: sent when the others are done, or at {})",
        look.keys.label(Action::Escape)
    )));
    let body = media::without_copies(Cow::Borrowed(body));
    let folded = fold(&body, look);
    Card {
        edge: Style::new().dimmed(),
        title,
        body: look.typed(folded.map_or(&*body, |(shown, _)| shown)),
        foot: folded.map_or_else(Vec::new, |(_, more)| folds(more, look)),
        ..Card::default()
    }
}
