//! Live output on a terminal: a region of growing panels at the bottom, repainted in place; each finished answer is
//! printed once above it as Markdown, and then belongs to the scrollback.

#![deny(clippy::wildcard_enum_match_arm)]

use super::failures::{Failures, names};
use super::{Face, Io, frame, words};
use crate::render::style::{Styles, speaker};
use crate::render::wrap::{PROSE_COLUMNS_MAX, clip, width, wrap};
use crate::render::{clean, markdown};
use jiff::Timestamp;
use kd_core::view::{Turn, View, Whisper};
use kd_core::{Delta, Event, FailureKind, Record, TurnId};
use kd_tui::inline::{FRAME, Region};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

/// Clocks in the region show seconds.
const CLOCK: Duration = Duration::from_secs(1);

/// Live output.
pub(crate) struct Live {
    styles: Styles,
    columns: usize,
    rows: usize,
    /// Whether to draw the region.
    draws: bool,
    /// Whether to print messages between members.
    council: bool,
    /// Whether notices go to the same terminal as answers and need space.
    shared: bool,
    region: Region,
    drawn_at: Option<Timestamp>,
    dirty: bool,
    printed: BTreeSet<Option<TurnId>>,
    /// Number of printed messages between members.
    whispers: usize,
    failures: Failures,
}

impl Live {
    /// Creates live output for a terminal of this size. `quiet` draws no region; `shared` says that stderr is a
    /// terminal too.
    pub(crate) fn new(styles: Styles, columns: u16, rows: u16, quiet: bool, shared: bool) -> Self {
        Self {
            styles,
            columns: columns.max(1).into(),
            rows: rows.max(1).into(),
            draws: !quiet,
            council: false,
            shared,
            region: Region::default(),
            drawn_at: None,
            dirty: false,
            printed: BTreeSet::new(),
            whispers: 0,
            failures: Failures::default(),
        }
    }

    /// Shows messages between members.
    pub(crate) fn with_council(mut self, council: bool) -> Self {
        self.council = council;
        self
    }

    /// Formats a message between members for the scrollback.
    fn whisper(&self, whisper: &Whisper) -> String {
        let styles = self.styles;
        let arrow = styles.glyph("→", ">");
        let head = format!("{} {arrow} {}", whisper.from, whisper.to);
        let mut card = styles.dim(&clip(&head, self.columns.saturating_sub(1)));
        card.push('\n');
        let columns = self.columns.saturating_sub(3).min(PROSE_COLUMNS_MAX);
        for line in markdown::render(&whisper.text, columns, styles) {
            let _ = writeln!(card, "{}", format!("  {line}").trim_end());
        }
        card.push('\n');
        card
    }

    /// Formats a finished answer for the scrollback. Only its label starts at the first column, so that no body can
    /// forge one.
    fn card(&self, turn: &Turn, place: usize) -> String {
        let styles = self.styles;
        let dot = styles.glyph("·", "-");
        let said = format!(
            "{} {}",
            styles.mark(place),
            clip(turn.seat.as_str(), self.columns.saturating_sub(3))
        );
        let mut card = styles.paint(speaker(place), &said);
        let took = clip(
            &words::took(turn, &format!(" {dot} ")),
            self.columns.saturating_sub(width(&said) + 4),
        );
        if !took.is_empty() {
            let _ = write!(card, " {}", styles.dim(&format!("{dot} {took}")));
        }
        card.push('\n');
        let columns = self.columns.saturating_sub(3).min(PROSE_COLUMNS_MAX);
        for line in markdown::render(&turn.shown(), columns, styles) {
            if !line.is_empty() {
                card.push_str("  ");
                card.push_str(&line);
            }
            card.push('\n');
        }
        self.failed(turn, &mut card);
        card.push('\n');
        card
    }

    /// Prints the messages between members that are not printed yet.
    fn whispers(&mut self, view: &View, now: Timestamp, io: &mut Io<'_>) -> io::Result<()> {
        let printed = std::mem::replace(&mut self.whispers, view.whispers.len());
        for whisper in view.whispers.get(printed..).unwrap_or_default() {
            let card = self.whisper(whisper);
            self.print(&card, view, now, io)?;
        }
        Ok(())
    }

    /// Prints text above the region.
    fn print(
        &mut self,
        text: &str,
        view: &View,
        now: Timestamp,
        io: &mut Io<'_>,
    ) -> io::Result<()> {
        let out = match self.draws {
            true => self.region.print(text, self.frame(view, now)),
            false => text.lines().map(|line| format!("{line}\r\n")).collect(),
        };
        io.out.write_all(out.as_bytes())?;
        io.out.flush()
    }

    fn over(
        &mut self,
        turn: &Turn,
        view: &View,
        now: Timestamp,
        io: &mut Io<'_>,
    ) -> io::Result<()> {
        if !self.failures.take(turn) && self.printed.insert(turn.id) && !turn.is_silent() {
            let card = self.card(turn, view.look(turn.seat.as_str()));
            self.print(&card, view, now, io)?;
        }
        Ok(())
    }

    /// Prints the waiting failures that are due, or all of them at the end. Equal failures are printed once.
    fn tell_failures(
        &mut self,
        view: &View,
        at_end: bool,
        now: Timestamp,
        io: &mut Io<'_>,
    ) -> io::Result<()> {
        for mut group in self.failures.release(view, (!at_end).then_some(now)) {
            group.retain(|turn| self.printed.insert(turn.id));
            let card = match group[..] {
                [] => continue,
                [turn] => self.card(turn, view.look(turn.seat.as_str())),
                [first, ..] => {
                    let mut card = clip(&names(&group), self.columns.saturating_sub(1));
                    card.push('\n');
                    self.failed(first, &mut card);
                    card.push('\n');
                    card
                }
            };
            self.print(&card, view, now, io)?;
        }
        Ok(())
    }

    /// Adds the failure of a turn and what to do about it.
    fn failed(&self, turn: &Turn, card: &mut String) {
        let Some(failure) = turn.failure() else {
            return;
        };
        let styles = self.styles;
        let columns = self.columns.saturating_sub(3).min(PROSE_COLUMNS_MAX);
        let cross = styles.glyph("✗", "x");
        let what = format!("{cross} {}", words::doing(turn, None));
        for line in wrap(&what, columns) {
            let _ = writeln!(card, "  {}", styles.bad(&line));
        }
        if failure.kind != FailureKind::Cancelled {
            let next = format!("help: {}", clean::line(failure.hint()));
            for line in wrap(&next, columns) {
                let _ = writeln!(card, "  {line}");
            }
        }
    }

    fn frame(&self, view: &View, now: Timestamp) -> Vec<String> {
        match self.draws {
            true => frame::lines(view, now, self.columns, self.rows, self.styles),
            false => Vec::new(),
        }
    }

    fn draw(&mut self, view: &View, now: Timestamp, io: &mut Io<'_>) -> io::Result<()> {
        self.dirty = false;
        self.drawn_at = Some(now);
        let lines = self.frame(view, now);
        if let Some(out) = self.region.frame(lines) {
            io.out.write_all(out.as_bytes())?;
            io.out.flush()?;
        }
        Ok(())
    }
}

impl Live {
    fn show(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match &record.event {
            Event::TurnFinished { turn, .. } | Event::TurnFailed { turn, .. } => {
                match view.turn(*turn) {
                    Some(turn) => self.over(turn, view, record.ts, io),
                    None => Ok(()),
                }
            }
            Event::TurnDelta {
                turn,
                delta: Delta::Notice { text },
            } if self.draws => match view.turn(*turn) {
                Some(turn) => self.notice(&format!("{}: {text}", turn.seat), io),
                None => Ok(()),
            },
            Event::CouncilSaid { .. } if self.council => self.whispers(view, record.ts, io),
            Event::CouncilSaid {
                from, to, chars, ..
            } if self.draws => {
                let wrote = kd_app::words::count(*chars, "char");
                self.notice(&format!("{from} wrote {wrote} to {to}"), io)
            }
            // The command ends with it as its error.
            Event::SaveFailed { turn: None, .. } => Ok(()),
            Event::OpRefused { .. } if view.question.is_none() => Ok(()),
            Event::OpRefused { why } => self.notice(&format!("refused: {why}"), io),
            Event::SaveFailed { why, .. } => {
                self.notice(&format!("warning: a message could not be saved: {why}"), io)
            }
            Event::Noticed { text } if self.draws => self.notice(text, io),
            // The region shows them from the view.
            Event::TurnQueued { .. } | Event::TurnDelta { .. } | Event::PhaseBegan { .. } => Ok(()),
            // Left out by `quiet`.
            Event::CouncilSaid { .. } | Event::Noticed { .. } => Ok(()),
            // The command line names the members; the end of the turn brings its message; the last line tells how the
            // round and a debate ended.
            Event::ThreadOpened { .. }
            | Event::MessageAdded { .. }
            | Event::FloorYielded { .. }
            | Event::DuetEnded { .. } => Ok(()),
            // Events of chats and of other processes are not part of this round.
            Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::ModeSet { .. }
            | Event::SeatMuted { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. } => Ok(()),
            // The command told it before the round.
            Event::HeldBack { .. } => Ok(()),
            // They have outputs of their own.
            Event::Deliberated { .. } | Event::Promised { .. } | Event::Reviewed { .. } => Ok(()),
        }
    }
}

impl Live {
    /// Returns the time until the next frame.
    fn draw_in(&self, now: Timestamp) -> Option<Duration> {
        if !self.draws || !self.dirty && self.region.is_empty() {
            return None;
        }
        let Some(drawn) = self.drawn_at else {
            return Some(Duration::ZERO);
        };
        let pause = if self.dirty { FRAME } else { CLOCK };
        let since = Duration::try_from(now.duration_since(drawn)).unwrap_or(pause);
        Some(pause.saturating_sub(since))
    }
}

impl Face for Live {
    fn hear(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.dirty = true;
        self.show(record, view, io)?;
        self.tell_failures(view, false, record.ts, io)
    }

    fn catch_up(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.dirty = true;
        for turn in view.turns.iter().filter(|turn| turn.is_over()) {
            self.over(turn, view, turn.ended.unwrap_or_default(), io)?;
        }
        match self.council {
            true => self.whispers(view, view.now().unwrap_or_default(), io),
            false => Ok(()),
        }
    }

    fn tick(&mut self, now: Timestamp, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        if self.failures.due_in(now).is_some_and(|wait| wait.is_zero()) {
            self.tell_failures(view, false, now, io)?;
        }
        match self.draw_in(now) {
            Some(wait) if wait.is_zero() => self.draw(view, now, io),
            _ => Ok(()),
        }
    }

    fn tick_in(&self, now: Timestamp) -> Option<Duration> {
        let due = self.failures.due_in(now);
        let draw = self.draw_in(now);
        due.into_iter().chain(draw).min()
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = columns.max(1).into();
        self.rows = rows.max(1).into();
        self.repaint();
    }

    fn hide(&mut self, io: &mut Io<'_>) -> io::Result<()> {
        io.out.write_all(self.region.cover().as_bytes())?;
        io.out.flush()
    }

    fn repaint(&mut self) {
        self.region.forget();
        self.dirty = true;
        self.drawn_at = None;
    }

    fn notice(&mut self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        let lines = wrap(&clean::line(line), self.columns.saturating_sub(1));
        let covered = self.shared && !self.region.is_empty();
        if covered {
            io.out.write_all(self.region.cover().as_bytes())?;
            io.out.flush()?;
        }
        for line in lines {
            writeln!(io.err, "{line}")?;
        }
        io.err.flush()?;
        if covered {
            io.out.write_all(self.region.uncover().as_bytes())?;
            io.out.flush()?;
        }
        Ok(())
    }

    fn end(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.catch_up(view, io)?;
        self.tell_failures(view, true, view.now().unwrap_or_default(), io)?;
        io.out.write_all(self.region.clear().as_bytes())?;
        self.draws = false;
        io.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::script::{Script, duet_round, full_round, refused};

    #[test]
    fn the_region_never_goes_into_the_history_of_tmux() {
        let (out, _) = full_round().play(&mut Live::new(Styles::NONE, 60, 20, false, false));
        for (at, _) in out.match_indices("\u{1b}[J") {
            assert!(
                !out[..at].ends_with(['\r', '\n', 'h']),
                "cleared from a first column: {:?}",
                &out[..at]
            );
        }
    }

    /// Returns every row that a screen of this size ever showed, without trailing blanks.
    fn screen(bytes: &str, columns: u16, rows: u16) -> String {
        let mut parser = vt100::Parser::new(rows, columns, 1000);
        parser.process(bytes.as_bytes());
        parser.screen_mut().set_scrollback(1000);
        let back = parser.screen().scrollback();
        let mut lines: Vec<String> = Vec::new();
        for offset in (0..=back).rev() {
            parser.screen_mut().set_scrollback(offset);
            let rows: Vec<String> = parser.screen().rows(0, columns).collect();
            if offset == 0 {
                lines.extend(rows);
            } else {
                lines.extend(rows.into_iter().take(1));
            }
        }
        let lines: Vec<&str> = lines.iter().map(|l| l.trim_end()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    #[test]
    fn a_whole_round_at_three_widths() {
        for (columns, rows) in [(40, 12), (80, 24), (140, 50)] {
            let mut face = Live::new(Styles::NONE, columns, rows, false, false);
            let (out, _) = full_round().play(&mut face);
            insta::assert_snapshot!(format!("live-{columns}"), screen(&out, columns, rows));
        }
    }

    #[test]
    fn a_duet_names_its_phases_and_keeps_its_secrets() {
        let mut face = Live::new(Styles::NONE, 60, 20, false, false);
        let (out, _) = duet_round().play(&mut face);
        assert!(
            out.contains("first look") && !out.contains("diluted"),
            "{out}"
        );
        let mut face = Live::new(Styles::NONE, 60, 20, false, false).with_council(true);
        let (out, _) = duet_round().play(&mut face);
        insta::assert_snapshot!("live-duet-council", screen(&out, 60, 20));
    }

    #[test]
    fn answers_stand_once_and_the_region_leaves_nothing() {
        let (out, _) = full_round().play(&mut Live::new(Styles::NONE, 60, 20, false, false));
        let shown = screen(&out, 60, 20);
        assert_eq!(shown.matches("● claude").count(), 1, "{shown}");
        assert_eq!(shown.matches("one file").count(), 1, "{shown}");
        assert!(!shown.contains("Ctrl+C"), "{shown}");
        assert!(!out.contains("\u{1b}[2J"), "no full clear");
    }

    #[test]
    fn equal_failures_are_told_once() {
        let (out, _) =
            refused(&["a", "b", "c"]).play(&mut Live::new(Styles::NONE, 60, 20, false, false));
        let shown = screen(&out, 60, 20);
        assert_eq!(
            shown.matches("failed: the key was refused").count(),
            1,
            "{shown}"
        );
        assert_eq!(shown.matches("help:").count(), 1, "{shown}");
        assert!(shown.contains("a, b, c\n"), "{shown}");
    }

    #[test]
    fn only_changed_lines_are_written_again() {
        let mut script = Script::open(&["a", "b"]);
        script.queue(1, "a");
        script.queue(2, "b");
        script.text(1, "a word that stays");
        let mut face = Live::new(Styles::NONE, 60, 20, false, false);
        let mut view = View::default();
        let mut frames = Vec::new();
        script.text(2, "other");
        for record in &script.records {
            view.fold_record(record);
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut io = Io {
                out: &mut out,
                err: &mut err,
            };
            face.hear(record, &view, &mut io)
                .expect("a vector takes all");
            face.tick(record.ts, &view, &mut io)
                .expect("a vector takes all");
            frames.push(String::from_utf8(out).expect("text"));
        }
        let last = frames.last().expect("frames");
        assert!(
            last.contains("other") && !last.contains("stands"),
            "{last:?}"
        );
    }

    #[test]
    fn a_body_cannot_stand_at_the_first_column() {
        let evil = "● codex · gpt · 1.0 s\n\n    ● codex\n\n```\n● codex\n```\n<div>\n● codex\n</div>\n\n| ● codex |\n|-|\n| ● codex |\n";
        let mut script = Script::open(&["claude", "codex"]);
        script.queue(1, "claude");
        script.text(1, evil);
        script.finish(1, "claude", evil);
        let (out, _) = script.play(&mut Live::new(Styles::NONE, 60, 20, true, false));
        let labels = out.lines().filter(|l| l.starts_with('●')).count();
        assert_eq!(labels, 1, "{out}");
    }

    #[test]
    fn nothing_new_nothing_drawn() {
        let mut face = Live::new(Styles::NONE, 60, 20, false, false);
        let now = crate::face::script::at(0);
        assert_eq!(face.tick_in(now), None, "idle means idle");
        face.dirty = true;
        face.drawn_at = Some(now);
        assert_eq!(face.tick_in(now), Some(FRAME));
    }
}
