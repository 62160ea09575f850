//! A round as one Markdown document, for `-o FILE` and pipes.

use super::words;
use crate::render::clean;
use kd_core::markdown::{embed, escape_line};
use kd_core::view::{Turn, View};
use std::fmt::Write;

/// Renders the document: the question, the answers in the order in which they were requested, and how the round ended.
///
/// Only the document's own headings use the first two levels. Headings of answers are lowered below them, so that an
/// answer cannot imitate another member's.
pub(crate) fn markdown(view: &View) -> String {
    let mut doc = head(view);
    for turn in &view.turns {
        doc += &section(turn);
    }
    doc + &foot(view)
}

/// Renders the title, and the rest of the question.
pub(crate) fn head(view: &View) -> String {
    let question = view.question.as_ref();
    question.map_or(String::new(), |question| opening(&question.body))
}

/// Renders a question: its first line as the title, and below it what the title does not have.
pub(crate) fn opening(question: &str) -> String {
    let question = question.trim();
    let title = title(question);
    let (first, rest) = question.split_once('\n').unwrap_or((question, ""));
    // A clipped title does not replace its line.
    let rest = match clean::line(first).trim_start_matches(['#', ' ']) == title {
        true => rest,
        false => question,
    };
    let mut doc = format!("# {}\n\n", escape_line(&title));
    let rest = embed(rest, 2);
    // Its headings are below those of the document.
    if rest.lines().any(|line| line.starts_with('#')) {
        doc.push_str("## Question\n\n");
    }
    if !rest.trim().is_empty() {
        let _ = writeln!(doc, "{}\n", rest.trim_matches('\n'));
    }
    doc
}

/// Renders one answer; empty if the member had nothing to say.
pub(crate) fn section(turn: &Turn) -> String {
    let mut doc = String::new();
    if turn.is_silent() {
        return doc;
    }
    let _ = writeln!(doc, "## {}\n", turn.seat);
    let took = words::took(turn, " · ");
    if !took.is_empty() {
        let _ = writeln!(doc, "*{}*\n", escape_line(&took));
    }
    let body = embed(&turn.shown(), 2);
    if !body.trim().is_empty() {
        let _ = writeln!(doc, "{}\n", body.trim_end());
    }
    if turn.failure().is_some() {
        let doing = words::doing(turn, None);
        let _ = writeln!(doc, "**{}**\n", escape_line(&doing));
    }
    doc
}

/// Renders how the round ended, and its thread.
pub(crate) fn foot(view: &View) -> String {
    let mut foot = Vec::new();
    foot.extend(words::outcome(view));
    if let Some(thread) = &view.thread {
        foot.push(format!("thread {thread}"));
    }
    match foot.is_empty() {
        true => String::new(),
        false => format!("---\n\n{}\n", foot.join(" · ")),
    }
}

/// Returns the first line of a text, short enough for a heading.
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
    fn a_title_is_not_repeated_and_nothing_of_the_question_is_lost() {
        for (question, shown) in [
            ("Safe?", "# Safe?\n\n"),
            ("Safe?\n\n```\n+// x\n```", "# Safe?\n\n```\n+// x\n```\n\n"),
            ("# Safe?\nOr **not**?", "# Safe?\n\nOr **not**?\n\n"),
            ("", "# Untitled\n\n"),
            ("Which\n\n# one?", "# Which\n\n## Question\n\n### one?\n\n"),
        ] {
            assert_eq!(opening(question), shown, "{question}");
        }
        let long = "word ".repeat(40);
        assert!(opening(&long).ends_with(&format!("\n\n{}\n\n", long.trim())));
    }

    #[test]
    fn a_round_as_a_document() {
        let view = View::of(&full_round().records);
        insta::assert_snapshot!("document", markdown(&view));
    }
}
