//! The question of a council that asks back: answered on a terminal, the council deliberates once more with the answer, in
//! the same thread.

use crate::args::deliberate::Deliberate;
use crate::error::Error;
use crate::render::clean;
use crate::render::wrap::wrap;
use crate::run::agreed::line_or_stop;
use crate::run::here::Here;
use crate::run::notices::notice_line;
use crate::run::stage::Played;
use kd_core::SeatName;
use kd_core::deliberation::{Plan, forecast};
use kd_core::planner::Planned;
use kd_core::secrets::Secrets;
use std::io::{self, IsTerminal, Write};

/// The indent of the council's question.
const INDENT: &str = "  ";

/// The user's reaction to the council's question.
pub(super) enum Answered {
    /// Answered it.
    With(String),
    /// Was not asked, or gave no answer.
    No,
    /// Stopped the program.
    Stopped,
}

/// Asks the user the council's question, if there is one and a terminal to answer it on.
///
/// # Errors
/// If signals cannot be handled.
pub(super) fn answer(
    args: &Deliberate,
    plan: &Plan,
    played: &Played,
    here: &Here,
) -> Result<Answered, Error> {
    let Some((by, question)) = question(played) else {
        return Ok(Answered::No);
    };
    let has_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if args.output.quiet || args.output.is_json() || played.stopped || !has_terminal {
        return Ok(Answered::No);
    }
    if !is_affordable(&rest(plan, played)) {
        notice_line("note: what is left of the limits does not cover another deliberation");
        return Ok(Answered::No);
    }
    // Discards what was typed before the question.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let mut err = crate::out::stderr().lock();
    for line in asking(by.as_str(), question, here.columns()) {
        let _ = writeln!(err, "{line}");
    }
    let _ = write!(err, "your answer (Enter for none): ");
    let _ = err.flush();
    drop(err);
    let Some(line) = line_or_stop()? else {
        return Ok(Answered::Stopped);
    };
    Ok(match line.trim() {
        "" => Answered::No,
        line => Answered::With(line.to_owned()),
    })
}

/// Returns the question, and the member that worded it.
fn question(played: &Played) -> Option<(&SeatName, &str)> {
    let report = &played.view.report;
    report.verdict.as_ref()?.asks_back.as_ref()?;
    let (by, question) = report.asks_back.as_ref()?;
    Some((by, question))
}

/// Returns the lines that show the question. It is in quotes and indented, so that no line of it looks like a line of
/// `kd`.
fn asking(by: &str, question: &str, columns: usize) -> Vec<String> {
    let columns = columns.saturating_sub(1);
    let quoted = format!("\"{}\"", clean::line(question));
    let asks = format!("the council asks, in words of {}:", clean::line(by));
    let told = "Your answer is sent to the members and saved in the thread. Do not type passwords.";
    let indented = wrap(&quoted, columns.saturating_sub(INDENT.len()));
    wrap(&asks, columns)
        .into_iter()
        .chain(indented.iter().map(|line| format!("{INDENT}{line}")))
        .chain(wrap(told, columns))
        .collect()
}

/// Returns the plan of a second deliberation: with the limits that are left, and without another question to the user.
fn rest(plan: &Plan, played: &Played) -> Plan {
    let mut rest = Plan {
        ask_back: None,
        ..plan.clone()
    };
    if let Some(verdict) = &played.view.report.verdict {
        rest.limits.take(verdict.spent);
    }
    rest
}

/// Returns whether the limits of a plan cover what it will probably spend.
fn is_affordable(plan: &Plan) -> bool {
    let (expected, limits) = (forecast(plan), plan.limits.ceiling());
    let micro_usd = expected.usd.map_or(0, |usd| (usd * 1e6).ceil() as u64);
    [
        (expected.calls, limits.calls),
        (expected.tokens, limits.tokens),
        (micro_usd, limits.micro_usd),
    ]
    .into_iter()
    .all(|(expected, limit)| limit.is_none_or(|limit| expected <= limit))
}

/// Returns the plan of the second deliberation: what is left of the first one, with the answer in its question.
pub(super) fn planned(
    plan: Plan,
    played: &Played,
    mut answer: String,
    masked: &Secrets,
) -> Planned {
    if let Some(line) = masked.mask_in_place(&mut answer).line() {
        notice_line(&line);
    }
    let asked = question(played).map_or("", |(_, question)| question);
    Planned {
        plan: Plan {
            question: format!(
                "{}\n\nThe council asked: {asked}\nThe answer is: {answer}",
                plan.question
            ),
            ..rest(&plan, played)
        },
        notices: Vec::new(),
    }
}

/// Says what to do with a question that was not answered.
pub(super) fn advise(args: &Deliberate) {
    if !args.output.is_json() {
        notice_line("help: ask again, with the answer to the council's question in your question");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_question_looks_like_one_of_kd() {
        let forged = format!("How long is it?{}promise: always right?", " ".repeat(90));
        let long = format!("How long is {}the area?", "the way to ".repeat(18));
        for question in [forged.as_str(), &long, &"x".repeat(200), "\u{2800}?"] {
            for columns in [20, 80, 200] {
                let lines = asking("ann", question, columns);
                let from = lines.iter().position(|line| line.starts_with("  \""));
                let to = lines.iter().position(|line| line.ends_with('"'));
                let (from, to) = (from.expect("it begins"), to.expect("it ends"));
                assert!(
                    lines[from..=to].iter().all(|line| line.starts_with(INDENT)),
                    "{lines:?}"
                );
                assert!(
                    lines.iter().all(|line| line.chars().count() < columns),
                    "{lines:?}"
                );
                let told = lines[to + 1..].join(" ");
                assert!(told.contains("sent to the members and saved"), "{told}");
                let whole: String = lines[from..=to].concat();
                let words = |text: &str| text.split_whitespace().collect::<String>();
                assert_eq!(
                    words(&whole),
                    words(&format!("\"{}\"", clean::line(question)))
                );
            }
        }
    }
}
