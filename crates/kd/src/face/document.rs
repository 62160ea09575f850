//! A round as one Markdown document: what `-o FILE` writes.

use super::round::{Phase, Round, Turn};
use super::words;
use crate::render::clean;
use kd_core::event::Purpose;
use std::fmt::Write;

/// The document: question, answers in the order of the members, the conclusion last.
///
/// Headings of ours are of the first two levels; those of the answers are lowered below them, so that an answer cannot
/// look like another member's.
pub(crate) fn markdown(round: &Round) -> String {
    let mut doc = String::new();
    if let Some(question) = &round.question {
        let _ = writeln!(doc, "# {}\n", title(&question.body));
        if question.body.trim().contains('\n') {
            let _ = writeln!(doc, "{}\n", below(&question.body, 2));
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
            let _ = writeln!(doc, "*{took}*\n");
        }
        let body = below(turn.body(), 2);
        if !body.trim().is_empty() {
            let _ = writeln!(doc, "{}\n", body.trim_end());
        }
        if let Phase::Failed(_) = &turn.phase {
            let _ = writeln!(doc, "**{}**\n", words::doing(turn, turn.since));
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

/// Clean Markdown whose headings stand at least `level` levels lower than written; code stays as it is, and a fence
/// that was left open is closed.
pub(crate) fn below(text: &str, level: usize) -> String {
    let text = clean::text(text);
    let mut out = String::with_capacity(text.len() + 16);
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let indent = line.len() - start.len();
        let mark = ["```", "~~~"].into_iter().find(|m| start.starts_with(m));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            _ => {}
        }
        let underline = !start.is_empty()
            && (start.trim_end().chars().all(|c| c == '=')
                || start.trim_end().chars().all(|c| c == '-'));
        if fence.is_none() && indent < 4 && start.starts_with('#') {
            let hashes = start.len() - start.trim_start_matches('#').len();
            out.push_str(&"#".repeat((hashes + level).min(6)));
            out.push_str(start.trim_start_matches('#'));
        } else if fence.is_none() && indent < 4 && underline {
            // The line of `---` or `===` below a text would make it a heading of ours.
            out.push('\n');
            out.push_str("***");
        } else {
            out.push_str(line.trim_end());
        }
        out.push('\n');
    }
    if let Some(mark) = fence {
        out.push_str(mark);
        out.push('\n');
    }
    out
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

    #[test]
    fn an_answer_cannot_forge_a_heading_of_ours() {
        let evil = "# codex\n## codex\ncodex\n=====\ncodex\n-----\n```\n# code stays\n";
        let out = below(evil, 2);
        assert_eq!(
            out,
            "### codex\n#### codex\ncodex\n\n***\ncodex\n\n***\n```\n# code stays\n```\n"
        );
    }
}
