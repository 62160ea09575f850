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
use kd_core::{Event, Record};
use std::io;

/// Returns the exit code of a completed review.
pub(super) fn exit(report: &Report, failures: Failures) -> Exit {
    let members = report.members.iter();
    let failed = members.filter(|member| member.failed.is_some()).count();
    match failed {
        0 if failures == Failures::Limited => Exit::Cut,
        0 => Exit::Done,
        n if n == report.members.len() => Exit::of_round(Outcome::Failed, failures),
        _ => Exit::of_round(Outcome::Partial, failures),
    }
}

/// The output of a running review.
pub(super) struct Watching {
    lines: Option<JsonLines>,
    quiet: bool,
}

/// Describes what a member has done.
fn deed(purpose: Option<Purpose>) -> &'static str {
    match purpose {
        Some(Purpose::Vote) => "voted on findings of others",
        Some(Purpose::Arbitrate) => "compared unclear findings",
        _ => "reviewed the change",
    }
}

impl Watching {
    pub(super) fn new(events: bool, quiet: bool) -> Self {
        Self {
            lines: events.then(|| JsonLines::new(quiet).with_council(true)),
            quiet: quiet || events,
        }
    }

    fn say(&self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        match self.quiet {
            true => Ok(()),
            false => writeln!(io.err, "{}", inert(&clean::line(line))),
        }
    }
}

impl Face for Watching {
    fn hear(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match &record.event {
            Event::TurnFinished { turn, seat, .. } => {
                let deed = deed(view.turn(*turn).map(|turn| turn.purpose));
                self.say(&format!("{seat} {deed}"), io)?;
            }
            Event::TurnFailed { seat, failure, .. } => {
                self.say(&format!("{seat} failed: {}", failure.message), io)?;
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
