//! The output of a deliberation. Takes records, and the [`Report`] of the view; shows the plan, progress while it runs,
//! and at the end the answer, the vote, the map and the trend.

#![deny(clippy::wildcard_enum_match_arm)]

pub(crate) mod export;
mod map;
pub(crate) mod tables;

use super::{Face, Io, words};
use crate::render::style::Styles;
use crate::render::wrap::{PROSE_COLUMNS_MAX, clip, wrap};
use crate::render::{clean, markdown};
use jiff::Timestamp;
use kd_core::Record;
use kd_core::council::concludes;
use kd_core::deliberation::Fact;
use kd_core::deliberation::report::{Report, SeatState};
use kd_core::event::Event;
use kd_core::view::{Turn, View};
use kd_tui::inline::Region;
use std::io;
use std::time::Duration;

/// Time between frames of the live region.
const FRAME: Duration = Duration::from_millis(100);

/// The output style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A repainted region, then the result.
    Live,
    /// Lines on stderr, then the result.
    Plain,
    /// Only the result.
    Quiet,
}

/// Output of a deliberation.
pub(crate) struct Deliberating {
    manner: Manner,
    /// Whether the result is a Markdown document.
    document: bool,
    styles: Styles,
    columns: usize,
    rows: usize,
    region: Region,
    told: usize,
    drawn_at: Option<Timestamp>,
    shown: bool,
}

impl Deliberating {
    /// Creates the output for a terminal of this size.
    pub(crate) fn new(manner: Manner, styles: Styles, (columns, rows): (u16, u16)) -> Self {
        Self {
            manner,
            document: false,
            styles,
            columns: columns.max(20).into(),
            rows: rows.max(4).into(),
            region: Region::default(),
            told: 0,
            drawn_at: None,
            shown: false,
        }
    }

    /// Writes the result as a Markdown document, for a pipe.
    pub(crate) fn with_document(mut self, document: bool) -> Self {
        self.document = document;
        self
    }

    /// Reports an event on stderr.
    fn tell(&mut self, record: &Record, report: &Report, io: &mut Io<'_>) -> io::Result<()> {
        let dot = self.styles.glyph("·", "-");
        if let Event::Deliberated { fact } = &record.event {
            let line = report.told(fact, dot);
            if let Some(line) = line {
                writeln!(io.err, "{}", clean::line(&line))?;
            }
        }
        for notice in &report.notices[self.told.min(report.notices.len())..] {
            writeln!(io.err, "note: {}", clean::line(notice))?;
        }
        self.told = report.notices.len();
        io.err.flush()
    }

    fn lines(&self, view: &View, now: Option<Timestamp>) -> Vec<String> {
        let report = &view.report;
        let styles = self.styles;
        let mut lines = Vec::new();
        let width = self.columns.saturating_sub(1);
        for (at, stage) in report.stages.iter().enumerate() {
            let last = at + 1 == report.stages.len();
            let done = stage
                .seats
                .iter()
                .filter(|s| s.state == SeatState::Replied)
                .count();
            // When all is over, no stage is open.
            let is_open = last && now.is_some();
            let mark = if is_open {
                styles.glyph("▸", ">")
            } else {
                styles.glyph("✓", "+")
            };
            let line = format!("{mark} {}  {done}/{}", stage.heading(), stage.seats.len());
            lines.push(clip(&line, width));
            if last {
                let ended = |state| matches!(state, SeatState::Failed | SeatState::Cut);
                let told = stage.seats.iter().filter(|s| is_open || ended(s.state));
                for seat in told {
                    let turn = seat.turn.and_then(|t| view.turn(t));
                    let doing = match seat.state {
                        SeatState::Asked => {
                            turn.map_or(String::new(), |turn| words::doing(turn, now))
                        }
                        SeatState::Waiting => "waits".into(),
                        SeatState::Replied => seat.what.clone(),
                        SeatState::Failed => match turn.and_then(|turn| turn.failure()) {
                            Some(_) => turn.map_or(String::new(), |turn| words::doing(turn, now)),
                            None => format!("failed: {}", seat.what),
                        },
                        SeatState::Cut => format!("not asked: {}", seat.what),
                    };
                    let line = format!("    {}  {}", seat.seat, clean::line(&doing));
                    lines.push(styles.dim(&clip(&line, width)));
                }
            }
        }
        let foot = report.spent().words(", ");
        lines.push(styles.dim(&clip(
            &format!(
                "{foot} {} Ctrl+C stops; partial answers are saved",
                styles.glyph("·", "-")
            ),
            width,
        )));
        let most = self.rows.saturating_sub(1).max(1);
        let skip = lines.len().saturating_sub(most);
        lines.drain(..skip);
        lines
    }

    /// Writes the painter's bytes.
    fn write(&self, bytes: &str, io: &mut Io<'_>) -> io::Result<()> {
        io.out.write_all(bytes.as_bytes())?;
        io.out.flush()
    }
}

impl Face for Deliberating {
    fn hear(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        // The plan's own notes appear below the plan, which was shown.
        if matches!(&record.event, Event::Deliberated { fact } if matches!(**fact, Fact::PlanMade { .. } | Fact::Opened { .. }))
        {
            self.told = view.report.notices.len();
        }
        match &record.event {
            // The command ends with it as its error.
            Event::SaveFailed { turn: None, .. } => {}
            Event::OpRefused { .. } if view.question.is_none() => {}
            Event::OpRefused { why } => writeln!(io.err, "refused: {}", clean::line(why))?,
            Event::SaveFailed { why, .. } => writeln!(
                io.err,
                "warning: a message could not be saved: {}",
                clean::line(why)
            )?,
            // Facts become progress lines. Notices, also those of cut answers, are shown once.
            Event::Deliberated { .. } | Event::Noticed { .. } | Event::MessageAdded { .. }
                if self.manner == Manner::Plain =>
            {
                self.tell(record, &view.report, io)?;
            }
            // The region shows facts from the report, and notices follow the result; or `quiet` leaves them out.
            Event::Deliberated { .. } | Event::Noticed { .. } | Event::MessageAdded { .. } => {}
            // The command shows it last.
            Event::Promised { .. } => {}
            // Facts tell the same of the members: when they are asked, answer and fail.
            Event::ThreadOpened { .. }
            | Event::TurnQueued { .. }
            | Event::TurnDelta { .. }
            | Event::TurnFinished { .. }
            | Event::TurnFailed { .. }
            | Event::FloorYielded { .. } => {}
            // Events of chats and of other processes are not part of this round.
            Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::ModeSet { .. }
            | Event::SeatMuted { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. } => {}
            // The command told it before the round.
            Event::HeldBack { .. } => {}
            // Events of debates and reviews are not shown.
            Event::PhaseBegan { .. }
            | Event::CouncilSaid { .. }
            | Event::DuetEnded { .. }
            | Event::Reviewed { .. } => {}
        }
        Ok(())
    }

    fn catch_up(&mut self, _view: &View, io: &mut Io<'_>) -> io::Result<()> {
        writeln!(
            io.err,
            "warning: output was too slow, so some events are missing; `kd why` has the whole record"
        )
    }

    fn tick(&mut self, now: Timestamp, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        if self.manner != Manner::Live || self.tick_in(now).is_none_or(|left| !left.is_zero()) {
            return Ok(());
        }
        self.drawn_at = Some(now);
        let lines = self.lines(view, Some(now));
        match self.region.frame(lines) {
            Some(bytes) => self.write(&bytes, io),
            None => Ok(()),
        }
    }

    fn tick_in(&self, now: Timestamp) -> Option<Duration> {
        if self.manner != Manner::Live {
            return None;
        }
        let since = self.drawn_at.map_or(FRAME, |at| {
            Duration::try_from(now.duration_since(at)).unwrap_or(FRAME)
        });
        Some(FRAME.saturating_sub(since))
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = columns.max(20).into();
        self.rows = rows.max(4).into();
        self.repaint();
    }

    fn repaint(&mut self) {
        self.region.forget();
        self.drawn_at = None;
    }

    fn hide(&mut self, io: &mut Io<'_>) -> io::Result<()> {
        self.write(self.region.cover(), io)
    }

    fn notice(&mut self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        match self.manner {
            Manner::Quiet => Ok(()),
            Manner::Live => {
                let (cover, uncover) = (self.region.cover(), self.region.uncover());
                let bytes = format!("{cover}{}\r\n{uncover}", clean::line(line));
                self.write(&bytes, io)
            }
            Manner::Plain => writeln!(io.err, "{}", clean::line(line)),
        }
    }

    fn end(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        if std::mem::replace(&mut self.shown, true) {
            return Ok(());
        }
        if self.manner == Manner::Live {
            // The stages stay in the scrollback.
            let mut lines = self.lines(view, None);
            lines.pop();
            let bytes = self.region.print(&lines.join("\n"), Vec::new());
            self.write(&bytes, io)?;
        }
        let report = &view.report;
        if self.document {
            if report.verdict.is_some() {
                io.out.write_all(export::decided(report).as_bytes())?;
            }
            return io.out.flush();
        }
        let columns = self.columns.saturating_sub(1).min(PROSE_COLUMNS_MAX);
        let eol = if self.manner == Manner::Live {
            "\r\n"
        } else {
            "\n"
        };
        if let Some(verdict) = &report.verdict {
            write!(io.out, "{eol}")?;
            let mut answer = verdict.answer.trim_end().to_owned();
            if report.conclusion_cut {
                answer.push_str(&conclusion_mark(view));
            }
            for line in markdown::render(&answer, columns, self.styles) {
                write!(io.out, "{line}{eol}")?;
            }
        }
        for line in tables::all(report, columns, self.styles) {
            write!(io.out, "{line}{eol}")?;
        }
        io.out.flush()?;
        if self.manner == Manner::Live {
            // Other ways of output have printed them already, or leave them out.
            for notice in &report.notices[self.told.min(report.notices.len())..] {
                for line in wrap(&format!("note: {}", clean::line(notice)), columns) {
                    write!(io.err, "{line}{eol}")?;
                }
            }
            self.told = report.notices.len();
            io.err.flush()?;
        }
        Ok(())
    }
}

/// Returns the mark of a conclusion that the token limit cut.
fn conclusion_mark(view: &View) -> String {
    let concludes = |turn: &&Turn| {
        let message = turn.message.as_deref();
        message.is_some_and(concludes)
    };
    let mark = view
        .turns
        .iter()
        .rev()
        .filter(concludes)
        .find_map(Turn::cut_mark);
    mark.unwrap_or_else(|| export::CUT_MARK.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The live region has no room for notices, and the result would scroll them away: they follow it.
    #[test]
    fn notices_follow_the_result_once_in_each_manner() {
        let long = "this verdict was not noted as your own, so it cannot be marked later: others can write its file";
        let mut view = View::default();
        view.report.notices = vec!["of the plan".into(), long.into()];
        for (manner, lines) in [(Manner::Live, 2), (Manner::Plain, 0), (Manner::Quiet, 0)] {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut io = Io {
                out: &mut out,
                err: &mut err,
            };
            let mut face = Deliberating::new(manner, Styles::NONE, (80, 24));
            face.told = 1;
            face.end(&view, &mut io).unwrap();
            face.end(&view, &mut io).unwrap();
            let said = String::from_utf8(err).unwrap();
            assert_eq!(said.lines().count(), lines, "{manner:?}: {said}");
            assert!(said.lines().all(|line| line.len() < 80), "{said}");
            let words: Vec<&str> = said.split_whitespace().collect();
            assert_eq!(words.join(" ").contains(long), lines > 0, "{said}");
        }
    }
}
