//! Shows a review while it runs, and tells its exit code.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::exit::{Exit, Failures};
use crate::face::jsonl::JsonLines;
use crate::face::{Face, Io};
use crate::render::clean;
use kd_core::build_log::inert;
use kd_core::event::{Outcome, Purpose};
use kd_core::review::Report;
use kd_core::view::View;
use kd_core::{Event, Record, SeatName};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};

/// Returns the exit code of a completed review. A member that reviewed only some parts of the change makes it partial.
/// The outcome is not known if only the log has the report.
pub(super) fn exit(outcome: Option<Outcome>, report: &Report, failures: Failures) -> Exit {
    let members = report.members.iter();
    let failed = members.filter(|member| member.failed.is_some()).count();
    let outcome = outcome.unwrap_or(match failed {
        0 => Outcome::Complete,
        n if n == report.members.len() => Outcome::Failed,
        _ => Outcome::Partial,
    });
    match (outcome, failures) {
        (Outcome::Complete, Failures::Limited) => Exit::Cut,
        _ => Exit::of_round(outcome, failures),
    }
}

/// Formats a line for stdout or stderr. On a terminal, only its beginning is at the margin, so that no name, path or
/// message in it passes for another line.
pub(super) fn hung(line: &str, out: &impl IsTerminal) -> String {
    let indent = " ".repeat(line.len() - line.trim_start_matches(' ').len());
    let line = clean::line(line);
    let columns = out.is_terminal().then(kd_tui::terminal::size).flatten();
    let lines = match columns {
        Some((columns, _)) => {
            let columns = usize::from(columns).saturating_sub(indent.len());
            crate::face::review::hung(&line, columns)
        }
        None => vec![line],
    };
    let lines = lines.iter().map(|line| format!("{indent}{}", inert(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Prints a line on stderr.
pub(super) fn tell(line: &str) {
    // If this cannot be written, stderr was closed.
    let _ = writeln!(crate::out::stderr(), "{}", hung(line, &io::stderr()));
}

/// The output of a running review.
pub(super) struct Watching {
    lines: Option<JsonLines>,
    quiet: bool,
    parts: usize,
    /// The number of parts that each member has reviewed.
    reviewed: BTreeMap<SeatName, usize>,
    /// The failures that were reported.
    failed: BTreeSet<String>,
}

/// Describes what a member has not done.
fn failed(seat: &SeatName, purpose: Option<Purpose>, why: &str) -> String {
    let why = why.strip_prefix("not sent: ").unwrap_or(why);
    let deed = match purpose {
        Some(Purpose::Vote) => "did not vote",
        Some(Purpose::Arbitrate) => "did not compare unclear findings",
        _ => "did not review",
    };
    format!("{seat} {deed}: {why}")
}

impl Watching {
    pub(super) fn new(events: bool, quiet: bool, parts: usize) -> Self {
        Self {
            parts,
            reviewed: BTreeMap::new(),
            failed: BTreeSet::new(),
            lines: events.then(|| JsonLines::new(quiet).with_council(true)),
            quiet: quiet || events,
        }
    }

    /// Describes what a member has done.
    fn deed(&mut self, seat: &SeatName, purpose: Option<Purpose>) -> String {
        match purpose {
            Some(Purpose::Vote) => "voted on findings of others".to_owned(),
            Some(Purpose::Arbitrate) => "compared unclear findings".to_owned(),
            _ if self.parts < 2 => "reviewed the change".to_owned(),
            _ => {
                let done = self.reviewed.entry(seat.clone()).or_default();
                *done += 1;
                format!("reviewed {done} of {} parts", self.parts)
            }
        }
    }

    fn say(&self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        match self.quiet {
            true => Ok(()),
            false => writeln!(io.err, "{}", hung(line, &io::stderr())),
        }
    }
}

impl Face for Watching {
    fn hear(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match &record.event {
            Event::TurnFinished { turn, seat, .. } => {
                let purpose = view.turn(*turn).map(|turn| turn.purpose);
                let deed = self.deed(seat, purpose);
                self.say(&format!("{seat} {deed}"), io)?;
            }
            Event::TurnFailed {
                turn,
                seat,
                failure,
                ..
            } => {
                let purpose = view.turn(*turn).map(|turn| turn.purpose);
                let line = failed(seat, purpose, &failure.message);
                // One line per cause, however many parts there are.
                if self.failed.insert(line.clone()) {
                    self.say(&line, io)?;
                }
            }
            // The report tells the rest at the end; the command told the settings before.
            Event::ThreadOpened { .. }
            | Event::MessageAdded { .. }
            | Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::TurnQueued { .. }
            | Event::TurnDelta { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. }
            | Event::SeatMuted { .. }
            | Event::ModeSet { .. }
            | Event::OpRefused { .. }
            | Event::SaveFailed { .. }
            | Event::FloorYielded { .. }
            | Event::PhaseBegan { .. }
            | Event::CouncilSaid { .. }
            | Event::DuetEnded { .. }
            | Event::Deliberated { .. }
            | Event::Promised { .. }
            | Event::Reviewed { .. }
            | Event::HeldBack { .. }
            | Event::Noticed { .. } => {}
        }
        match &mut self.lines {
            Some(lines) => lines.hear(record, view, io),
            None => Ok(()),
        }
    }

    fn catch_up(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.catch_up(view, io),
            None => Ok(()),
        }
    }

    fn end(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.end(view, io),
            None => Ok(()),
        }
    }
}
