//! A message on disk, from the user or a member, complete or partial.

use super::{Body, Card, Look, length, since};
use crate::keymap::Action;
use crate::text::clean;
use crate::text::wrap::Line;
use anstyle::Style;
use kd_app::words::count;
use kd_core::Usage;
use kd_core::media;
use kd_core::message::{Address, Message, Status, folded};
use kd_core::prompt::imitated;
use kd_core::view::Trace;
use std::borrow::Cow;

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
    let body = media::without_copies(Cow::Borrowed(&message.body));
    let folded = fold(&body, look).filter(|_| message.is_king());
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
            (true, None) => look.typed(&body),
            (false, _) => look.markdown(&message.shown()),
        },
        foot: {
            let mut foot = folded.map_or_else(Vec::new, |(_, more)| folds(more, look));
            if !message.is_king() {
                foot.extend(forged(message, look));
            }
            if trace.is_some_and(|t| t.late) {
                let line = "late: it was asked before your newer message";
                foot.extend(look.words(Style::new().dimmed(), line));
            }
            foot.extend(references(message, look));
            foot
        },
        bare: false,
    }
}

/// Returns the shown part of a long message of the user, and the number of lines that are folded.
pub(super) fn fold<'m>(body: &'m str, look: &Look) -> Option<(&'m str, usize)> {
    if look.unfolded { None } else { folded(body) }
}

/// Builds the line below a folded message.
pub(super) fn folds(more: usize, look: &Look) -> Vec<Line> {
    let key = look.styles.glyph("▸", ">");
    let line = format!(
        "{key} {}{}{} shows them",
        count(more as u64, "more line"),
        look.dot(),
        look.keys.label(Action::Thinking)
    );
    look.words(Style::new().dimmed(), &line)
}

/// Builds the line that says who wrote lines in the name of others.
fn forged(message: &Message, look: &Look) -> Vec<Line> {
    let names = imitated(&message.body, &message.from, &look.members);
    if names.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}:\"")).collect();
    let line = format!(
        "! {} wrote the lines that begin with {}",
        message.from,
        names.join(", ")
    );
    look.words(Style::new().bold(), &clean::line(&line))
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
    if trace.is_some_and(|t| t.late) {
        facts.push("late".to_owned());
    }
    if let Some(tools) = trace.map(|t| t.tools).filter(|n| *n > 0) {
        facts.push(count(tools.into(), "tool"));
    }
    if let Some(usage) = usage.filter(|u| u.output_tokens > 0) {
        facts.push(count(usage.output_tokens, "token"));
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
