//! Shows a review while it runs, and keeps its report.

use crate::exit::{Exit, Failures};
use crate::face::jsonl::JsonLines;
use crate::face::round::Round;
use crate::face::{Face, Io};
use crate::render::clean;
use kd_core::event::Purpose;
use kd_core::review::Report;
use kd_core::{Event, FailureKind, Record, TurnId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// What was observed of a review.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) report: Option<Report>,
    pub(super) failures: Kinds,
}

/// The failures of a review, by kind.
#[derive(Default)]
pub(super) struct Kinds {
    limited: usize,
    late: usize,
    all: usize,
}

impl Kinds {
    /// Returns the exit code of a completed review.
    pub(super) fn exit(&self, report: &Report) -> Exit {
        let failed = report
            .members
            .iter()
            .filter(|member| member.failed.is_some())
            .count();
        let failures = match () {
            () if self.limited > 0 => Failures::Limited,
            () if self.all > 0 && self.late == self.all => Failures::Late,
            () => Failures::Other,
        };
        let outcome = match failed {
            0 => {
                return if self.limited > 0 {
                    Exit::Cut
                } else {
                    Exit::Done
                };
            }
            n if n == report.members.len() => kd_core::event::Outcome::Failed,
            _ => kd_core::event::Outcome::Partial,
        };
        Exit::of_round(outcome, failures)
    }
}

/// The output of a review: a line per answer on stderr, or every event on stdout.
pub(super) struct Watching {
    seen: Rc<RefCell<Seen>>,
    lines: Option<JsonLines>,
    quiet: bool,
    /// The purposes of running turns.
    purposes: BTreeMap<TurnId, Purpose>,
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
    pub(super) fn new(seen: Rc<RefCell<Seen>>, events: bool, quiet: bool) -> Self {
        Self {
            seen,
            lines: events.then(|| JsonLines::new(quiet).with_council(true)),
            quiet: quiet || events,
            purposes: BTreeMap::new(),
        }
    }

    fn say(&self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        match self.quiet {
            true => Ok(()),
            false => writeln!(io.err, "{}", clean::line(line)),
        }
    }
}

impl Face for Watching {
    fn hear(&mut self, record: &Record, round: &Round, io: &mut Io<'_>) -> io::Result<()> {
        match &record.event {
            Event::Reviewed { report } => self.seen.borrow_mut().report = Some((**report).clone()),
            Event::TurnQueued { turn, purpose, .. } => {
                self.purposes.insert(*turn, *purpose);
            }
            Event::TurnFinished { turn, seat, .. } => {
                let deed = deed(self.purposes.remove(turn));
                self.say(&format!("{seat} {deed}"), io)?;
            }
            Event::TurnFailed { seat, failure, .. } => {
                let mut seen = self.seen.borrow_mut();
                seen.failures.all += 1;
                seen.failures.limited += usize::from(failure.kind == FailureKind::Limit);
                seen.failures.late += usize::from(failure.kind == FailureKind::Timeout);
                drop(seen);
                self.say(&format!("{seat} failed: {}", failure.message), io)?;
            }
            _ => {}
        }
        match &mut self.lines {
            Some(lines) => lines.hear(record, round, io),
            None => Ok(()),
        }
    }

    fn catch_up(&mut self, round: &Round, io: &mut Io<'_>) -> io::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.catch_up(round, io),
            None => Ok(()),
        }
    }

    fn end(&mut self, round: &Round, io: &mut Io<'_>) -> io::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.end(round, io),
            None => Ok(()),
        }
    }
}
