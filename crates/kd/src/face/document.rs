//! A round as one Markdown document: what `-o FILE` writes.

use super::round::{Phase, Round, Turn};
use super::words;
use crate::render::clean;
use kd_core::event::Purpose;
use kd_core::markdown::{embed, escape_line};
use std::fmt::Write;

/// The document: question, answers in the order of the members, the conclusion last.
///
/// Headings of ours are of the first two levels; those of the answers are lowered below them, so that an answer cannot
/// look like another member's.
pub(crate) fn markdown(round: &Round) -> String {
    let mut doc = String::new();
    if let Some(question) = &round.question {
        let _ = writeln!(doc, "# {}\n", escape_line(&title(&question.body)));
        if question.body.trim().contains('\n') {
            let _ = writeln!(doc, "{}\n", embed(&question.body, 2));
        }
    }
    let mut turns: Vec<&Turn> = round.turns.iter().collect();
    if round.duet.is_none() {
        turns.sort_by_key(|t| (t.purpose == Purpose::Conclude, t.place, t.id));
    }
    for turn in turns.into_iter().filter(|t| !t.passed()) {
        let took = words::took(turn, " · ");
        let _ = writeln!(doc, "## {}\n", turn.seat);
        if !took.is_empty() {
            let _ = writeln!(doc, "*{}*\n", escape_line(&took));
        }
        let body = embed(turn.body(), 2);
        if !body.trim().is_empty() {
            let _ = writeln!(doc, "{}\n", body.trim_end());
        }
        if let Phase::Failed(_) = &turn.phase {
            let _ = {
                let doing = words::doing(turn, turn.since);
                writeln!(doc, "**{}**\n", escape_line(&doing))
            };
        }
    }
    let mut foot = Vec::new();
    foot.extend(words::outcome(round));
    if let Some(thread) = &round.thread {
        foot.push(format!("thread {thread}"));
    }
    if !foot.is_empty() {
        let _ = writeln!(doc, "---\n\n{}", foot.join(" · "));
    }
    doc
}

/// The first line of a text, short enough for a heading.
pub(crate) fn title(text: &str) -> String {
    let first = text
        .lines()
        .find(|l| !l.trim().is_empty())
        .unwrap_or_default();
    let line = clean::line(first);
    let line = line.trim_start_matches(['#', ' ']);
    if line.is_empty() {
        "Untitled".into()
    } else {
        crate::render::wrap::clip(line, 80)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::script::full_round;

    #[test]
    fn a_round_as_a_document() {
        let mut round = Round::default();
        full_round().records.iter().for_each(|r| round.apply(r));
        insta::assert_snapshot!("document", markdown(&round));
    }
}
