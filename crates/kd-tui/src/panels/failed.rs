//! A failed or partial answer: the reason, what can be done, and what was received.

use super::message::{ended, facts};
use super::{Body, Card, Look, red, yellow};
use crate::keymap::Action;
use crate::text::clean;
use crate::text::wrap::{Line, Span};
use anstyle::Style;
use kd_core::message::{Message, Status};
use kd_core::view::Trace;
use kd_core::{Failure, FailureKind, SeatName};

/// Builds the card of its message.
pub(super) fn message(
    message: &Message,
    failure: Option<&Failure>,
    trace: Option<&Trace>,
    look: &Look,
) -> Card {
    let stopped = message.status == Some(Status::Interrupted)
        || failure.is_some_and(|f| f.kind == FailureKind::Cancelled);
    let style = if stopped { yellow() } else { red() };
    let mut title = look.name(&message.from);
    title.push(Span::new(
        style.bold(),
        format!(" ({})", ended(message.status)),
    ));
    title.push(look.dim(facts(message, None, trace, look)));
    // If there is no answer, the body is the error itself, which is shown better below.
    let told = failure.is_some() && message.body.starts_with('*');
    let mut card = Card {
        edge: style,
        title,
        head: trace.map_or_else(Vec::new, |t| look.thought(t)),
        body: if told {
            Body::None
        } else {
            look.markdown(&message.shown())
        },
        ..Card::default()
    };
    card.foot = foot(&message.from, failure, stopped, !card.is_silent(), look);
    // The log that has the failure may be gone, or of another program.
    if let (None, Some(reason)) = (failure, message.reason()) {
        let cross = look.styles.glyph("✗", "x");
        let reason = look.words(red(), &format!("{cross} {reason}"));
        let at = card.foot.len().min(usize::from(!card.is_silent()));
        card.foot.splice(at..at, reason);
    }
    card
}

/// Builds the card of a turn whose message could not be written.
pub(super) fn lost(seat: &SeatName, text: &str, failure: &Failure, look: &Look) -> Card {
    let mut title = look.name(seat.as_str());
    title.push(Span::new(red().bold(), " (lost)"));
    let mut card = Card {
        edge: red(),
        title,
        body: if text.is_empty() {
            Body::None
        } else {
            look.markdown(text)
        },
        ..Card::default()
    };
    card.foot = foot(seat.as_str(), Some(failure), false, !card.is_silent(), look);
    card
}

fn foot(
    name: &str,
    failure: Option<&Failure>,
    stopped: bool,
    kept: bool,
    look: &Look,
) -> Vec<Line> {
    let cross = look.styles.glyph("✗", "x");
    let mut lines = Vec::new();
    if stopped {
        let what = if kept {
            "stopped here; partial answer saved"
        } else {
            "stopped before any output"
        };
        lines.extend(look.words(yellow(), &format!("{cross} {what}")));
    } else if let Some(failure) = failure {
        lines.extend(look.words(red(), &format!("{cross} {}", failure.message)));
        lines.extend(look.words(Style::new(), failure.hint()));
    }
    let again = format!(
        "{} asks again, or /retry {}",
        look.keys.label(Action::Retry),
        clean::line(name)
    );
    lines.extend(look.words(Style::new().dimmed(), &again));
    if kept {
        lines.insert(0, Line::new());
    }
    lines
}
