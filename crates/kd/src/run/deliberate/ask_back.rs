//! The question of a council that asks back: answered on a terminal, the council deliberates once more with the answer, in
//! the same thread.

use crate::args::deliberate::Deliberate;
use crate::render::clean;
use crate::run::notices::notice_line;
use crate::run::stage::Played;
use kd_core::deliberation::Plan;
use kd_core::planner::Planned;
use kd_core::secrets::Secrets;
use std::io::{self, BufRead, IsTerminal, Write};

/// Returns the user's answer to the council's question, if there is one and a terminal to give it on.
pub(super) fn answer(args: &Deliberate, played: &Played) -> Option<String> {
    let question = question(played)?;
    let has_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if args.output.quiet || args.output.is_json() || played.stopped || !has_terminal {
        return None;
    }
    // Discards what was typed before the question.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let mut err = crate::out::stderr().lock();
    let _ = write!(
        err,
        "the council asks: {}\nyour answer (Enter for none): ",
        clean::line(question)
    );
    let _ = err.flush();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok()?;
    let answer = line.trim().to_owned();
    (!answer.is_empty()).then_some(answer)
}

fn question(played: &Played) -> Option<&str> {
    played.view.report.verdict.as_ref()?.asks_back.as_deref()
}

/// Returns the plan of the second deliberation: the first one, with the answer in its question, with the limits that are
/// left, and without another question to the user.
pub(super) fn planned(
    plan: Plan,
    played: &Played,
    mut answer: String,
    masked: &Secrets,
) -> Planned {
    if let Some(line) = masked.mask_in_place(&mut answer).line() {
        notice_line(&line);
    }
    let asked = question(played).unwrap_or_default();
    let mut limits = plan.limits;
    if let Some(verdict) = &played.view.report.verdict {
        limits.take(verdict.spent);
    }
    Planned {
        plan: Plan {
            question: format!(
                "{}\n\nThe council asked: {asked}\nThe answer is: {answer}",
                plan.question
            ),
            ask_back: None,
            limits,
            ..plan
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
