//! A message on disk, from the user or a member, complete or partial.

use super::{Body, Card, Look, count, length, since};
use crate::keymap::Action;
use crate::text::clean;
use crate::text::wrap::Line;
use anstyle::Style;
use kd_core::message::{Address, Message, Status};
use kd_core::view::Trace;
use kd_core::{Usage, attached};
use std::borrow::Cow;

/// Lines of a long message of the user that are shown while it is folded.
const FOLDED_LINES: usize = 8;
/// Fewer lines than this are not folded.
const FOLDED_MIN: usize = 8;

/// Builds its card.
pub(super) fn card(
    message: &Message,
    usage: Option<&Usage>,
    trace: Option<&Trace>,
    look: &Look,
) -> Card {
    if message.is_pass() {
        return pass(message, look);
    }
    let (_, style) = look.speaker(&message.from);
    let mut title = look.name(&message.from);
    title.push(look.dim(facts(message, usage, trace, look)));
    let folded = fold(message, look);
    Card {
        edge: if message.is_king() {
            style
        } else {
            look.edge(&message.from).dimmed()
        },
        title,
        head: trace.map_or_else(Vec::new, |t| look.thought(t)),
        body: match (message.is_king(), &folded) {
            (true, Some((shown, _))) => look.typed(shown),
            (true, None) => look.typed(&message.body),
            (false, _) => look.markdown(&message.shown()),
        },
        foot: match folded {
            Some((_, more)) => {
                let key = look.styles.glyph("▸", ">");
                let line = format!(
                    "{key} {} more lines{}{} shows them",
                    count(more),
                    look.dot(),
                    look.keys.label(Action::Thinking)
                );
                let mut foot = look.words(Style::new().dimmed(), &line);
                foot.extend(references(message, look));
                foot
            }
            None => references(message, look),
        },
        bare: false,
    }
}

/// Returns the shown part of a long message of the user, and the number of lines that are folded: those of attached
/// files, and the end of a long text.
fn fold<'m>(message: &'m Message, look: &Look) -> Option<(Cow<'m, str>, usize)> {
    if look.unfolded || !message.is_king() {
        return None;
    }
    let brief = attached::brief(&message.body);
    let attached = message.body.lines().count() - brief.lines().count();
    let typed = attached::typed(&message.body);
    let mut ends = typed.match_indices('\n').map(|(at, _)| at);
    let folded = ends.nth(FOLDED_LINES - 1).and_then(|end| {
        let more = typed[end + 1..].lines().count();
        (more > FOLDED_MIN).then_some((end, more))
    });
    match (folded, brief) {
        (Some((end, more)), Cow::Borrowed(_)) => Some((Cow::Borrowed(&typed[..end]), more)),
        (Some((end, more)), Cow::Owned(brief)) => {
            let shown = format!("{}{}", &typed[..end], &brief[typed.len()..]);
            Some((Cow::Owned(shown), more + attached))
        }
        (None, Cow::Owned(brief)) => Some((Cow::Owned(brief), attached)),
        (None, Cow::Borrowed(_)) => None,
    }
}

/// Builds what follows the name.
pub(super) fn facts(
    message: &Message,
    usage: Option<&Usage>,
    trace: Option<&Trace>,
    look: &Look,
) -> String {
    let mut facts = Vec::new();
    if let (true, Address::Seats(_)) = (message.is_king(), &message.to) {
        let arrow = look.styles.glyph("→", "to");
        facts.push(format!("{arrow} {}", message.to));
    }
    if let Some(model) = message
        .provenance
        .model
        .as_deref()
        .filter(|m| *m != message.from)
    {
        facts.push(clean::line(model));
    }
    let took = trace.and_then(|t| t.span).map(|(from, to)| since(from, to));
    if let Some(took) = took.filter(|t| t.as_secs() > 0) {
        facts.push(length(took));
    }
    if let Some(tools) = trace.map(|t| t.tools).filter(|n| *n > 0) {
        facts.push(if tools == 1 {
            "1 tool".to_owned()
        } else {
            format!("{tools} tools")
        });
    }
    if let Some(usage) = usage.filter(|u| u.output_tokens > 0) {
        facts.push(format!("{} tokens", count(usage.output_tokens as usize)));
    }
    let at = message.at.to_zoned(look.zone.clone());
    let today = look.now.to_zoned(look.zone.clone()).date() == at.date();
    let form = if today { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    facts.push(at.strftime(form).to_string());
    let dot = look.dot();
    format!("{dot}{}", facts.join(dot))
}

fn pass(message: &Message, look: &Look) -> Card {
    let (_, style) = look.speaker(&message.from);
    let mut title = look.name(&message.from);
    title.push(look.dim(format!("{}passes: nothing to add", look.dot())));
    Card {
        edge: style,
        title,
        bare: true,
        ..Card::default()
    }
}

fn references(message: &Message, look: &Look) -> Vec<Line> {
    if message.refs.is_empty() {
        return Vec::new();
    }
    let files = format!("files: {}", message.refs.join(", "));
    look.words(Style::new().dimmed(), &files)
}

impl Card {
    /// Returns whether it has no body.
    pub(super) fn is_silent(&self) -> bool {
        match &self.body {
            Body::None => true,
            Body::Lines(lines) => lines.is_empty(),
            Body::Growing => false,
        }
    }
}

/// Describes how an unsuccessful turn ended.
pub(super) fn ended(status: Option<Status>) -> &'static str {
    match status {
        Some(Status::Timeout) => "timed out",
        Some(Status::Interrupted) => "interrupted",
        _ => "errored",
    }
}
