//! Plain output: append-only lines, each prefixed with its speaker's name. For pipes, files, screen readers and dumb
//! terminals.
//!
//! `name | text` is message text: every line of a body carries the name, so no body can forge another speaker. `name !
//! text` is something that happened to the member. A member answering alone is written word by word as the answer
//! arrives. If several answer at the same time, paragraphs are written as a whole, so that they stay readable.

#![deny(clippy::wildcard_enum_match_arm)]

use super::failures::{Failures, names};
use super::{Face, Io, words};
use crate::render::clean;
use crate::render::style::{Styles, speaker};
use crate::render::wrap::width;
use kd_core::view::{State, Turn, View};
use kd_core::{Delta, Event, FailureKind, Record, Timestamp, TurnId};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Maximum length of a paragraph in bytes. A longer paragraph is written up to its last line end.
const PARAGRAPH_MAX: usize = 2048;

/// Plain output.
pub(crate) struct Plain {
    styles: Styles,
    quiet: bool,
    council: bool,
    /// Whether the answers go to a document: failures are printed on stderr too.
    beside: bool,
    /// The written part of each turn.
    written: BTreeMap<Option<TurnId>, Written>,
    /// The turn whose current line is unfinished.
    open: Option<TurnId>,
    /// Number of written messages between members.
    whispers: usize,
    failures: Failures,
}

/// The part of a turn that is written.
#[derive(Debug)]
enum Written {
    /// This prefix of its text. The text may be replaced by another, so a length would not be enough.
    Text(String),
    /// Everything, including how it ended.
    All,
}

impl Plain {
    /// Creates plain output; `quiet` omits everything on stderr.
    pub(crate) fn new(styles: Styles, quiet: bool) -> Self {
        Self {
            styles,
            quiet,
            council: false,
            beside: false,
            written: BTreeMap::new(),
            open: None,
            whispers: 0,
            failures: Failures::default(),
        }
    }

    /// Tells on stderr what else is on stdout only: the answers go to a document.
    pub(super) fn beside_a_document(mut self) -> Self {
        self.beside = true;
        self
    }

    /// Shows messages between members.
    pub(crate) fn with_council(mut self, council: bool) -> Self {
        self.council = council;
        self
    }

    /// Writes the messages between members that are not written yet as `from > to | text`. Every line carries both
    /// names.
    fn whispers(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        let written = std::mem::replace(&mut self.whispers, view.whispers.len());
        for whisper in view.whispers.get(written..).unwrap_or_default() {
            self.end_line(io)?;
            for line in clean::text(&whisper.text).lines() {
                let line = format!("{} > {} | {line}", whisper.from, whisper.to);
                writeln!(io.out, "{}", self.styles.dim(line.trim_end()))?;
            }
        }
        Ok(())
    }

    fn label(&self, turn: &Turn, view: &View, mark: char) -> String {
        let name = turn.seat.as_str();
        let longest = view
            .members
            .iter()
            .map(|m| width(m.as_str()))
            .max()
            .unwrap_or(0);
        let pad = " ".repeat(longest.saturating_sub(width(name)));
        format!(
            "{}{pad} {mark}",
            self.styles
                .paint(speaker(view.look(turn.seat.as_str())), name)
        )
    }

    /// Ends an unfinished line of a member.
    fn end_line(&mut self, io: &mut Io<'_>) -> io::Result<()> {
        match self.open.take() {
            Some(_) => writeln!(io.out),
            None => Ok(()),
        }
    }

    /// Writes a piece of a member's text, continuing its unfinished line. Omits trailing blanks of lines.
    fn write(&mut self, turn: &Turn, view: &View, text: &str, io: &mut Io<'_>) -> io::Result<()> {
        if self.open.is_some() && self.open != turn.id {
            self.end_line(io)?;
        }
        let label = self.label(turn, view, '|');
        for line in clean::text(text).split_inclusive('\n') {
            let (words, ends) = match line.strip_suffix('\n') {
                Some(words) => (words.trim_end(), true),
                None => (line, false),
            };
            match (self.open.is_some(), words.is_empty()) {
                (true, _) => write!(io.out, "{words}")?,
                (false, true) => write!(io.out, "{label}")?,
                (false, false) => write!(io.out, "{label} {words}")?,
            }
            self.open = turn.id;
            if ends {
                self.end_line(io)?;
            }
        }
        Ok(())
    }

    /// Writes lines of a member's text.
    fn body(&mut self, turn: &Turn, view: &View, text: &str, io: &mut Io<'_>) -> io::Result<()> {
        self.write(turn, view, text.trim_end_matches([' ', '\t']), io)?;
        self.end_line(io)
    }

    fn happened(
        &mut self,
        turn: &Turn,
        view: &View,
        what: &str,
        io: &mut Io<'_>,
    ) -> io::Result<()> {
        self.end_line(io)?;
        writeln!(
            io.out,
            "{} {}",
            self.label(turn, view, '!'),
            clean::line(what)
        )
    }

    /// Returns the written text of an unfinished turn.
    fn said(&self, turn: &Turn) -> &str {
        match self.written.get(&turn.id) {
            Some(Written::Text(said)) => said,
            _ => "",
        }
    }

    /// Writes what is ready of a growing turn.
    fn progress(&mut self, turn: &Turn, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        // A replaced text is written as a whole at the end.
        let Some(rest) = turn.text.strip_prefix(self.said(turn)) else {
            return Ok(());
        };
        let alone = view.turns.iter().filter(|t| !t.is_over()).count() == 1;
        let ready = match alone {
            true => &rest[..whole_words(rest)],
            false => &rest[..ready(rest)],
        };
        if !ready.is_empty() {
            self.write(turn, view, ready, io)?;
            let written = self.written.entry(turn.id);
            match written.or_insert_with(|| Written::Text(String::new())) {
                Written::Text(said) => said.push_str(ready),
                Written::All => {}
            }
        }
        Ok(())
    }

    /// Writes the rest of a text, or all of it if the written part is not its prefix.
    fn rest(&mut self, turn: &Turn, view: &View, text: &str, io: &mut Io<'_>) -> io::Result<()> {
        if let Some(rest) = text.strip_prefix(self.said(turn)) {
            return self.body(turn, view, rest, io);
        }
        self.happened(turn, view, "the answer was restated; the full text:", io)?;
        self.body(turn, view, text, io)
    }

    /// Writes a turn that is over, unless it failed as others may.
    fn ended(&mut self, turn: &Turn, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match self.failures.take(turn) {
            true => {
                self.written.insert(turn.id, Written::All);
                Ok(())
            }
            false => self.over(turn, view, io),
        }
    }

    /// Writes the failures that waited, equal ones in one line: those that are due `now`, or all of them at the end.
    fn tell_failures(
        &mut self,
        view: &View,
        now: Option<Timestamp>,
        io: &mut Io<'_>,
    ) -> io::Result<()> {
        for group in self.failures.release(view, now) {
            let (first, all) = (group[0], names(&group));
            if group.len() == 1 {
                self.over(first, view, io)?;
                continue;
            }
            self.end_line(io)?;
            let what = clean::line(&words::doing(first, None));
            writeln!(io.out, "{all} ! {what}")?;
            if let Some(failure) = first.failure().filter(|_| !self.quiet) {
                if self.beside {
                    writeln!(io.err, "{all}: {what}")?;
                }
                writeln!(io.err, "{all}: help: {}", clean::line(failure.hint()))?;
            }
        }
        Ok(())
    }

    fn over(&mut self, turn: &Turn, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match &turn.state {
            State::Done => {
                let text = match same_words(&turn.text, turn.body()) {
                    true => &turn.text,
                    // The backend sent a final answer that differs from the streamed one.
                    false => turn.body(),
                };
                match turn.cut_mark() {
                    Some(mark) => self.rest(turn, view, &format!("{text}{mark}"), io)?,
                    None => self.rest(turn, view, text, io)?,
                }
                if !self.quiet {
                    writeln!(io.err, "{}: done, {}", turn.seat, words::took(turn, ", "))?;
                }
            }
            State::Failed(failure) => {
                self.rest(turn, view, &turn.text, io)?;
                self.happened(turn, view, &words::doing(turn, None), io)?;
                if !self.quiet && failure.kind != FailureKind::Cancelled {
                    if self.beside {
                        let what = words::doing(turn, None);
                        writeln!(io.err, "{}: {}", turn.seat, clean::line(&what))?;
                    }
                    writeln!(
                        io.err,
                        "{}: help: {}",
                        turn.seat,
                        clean::line(failure.hint())
                    )?;
                }
            }
            State::Waiting
            | State::Started
            | State::Thinking
            | State::Tool { .. }
            | State::Answering
            | State::Retrying { .. }
            | State::Whole(_) => {}
        }
        self.written.insert(turn.id, Written::All);
        Ok(())
    }
}

impl Face for Plain {
    fn tick(&mut self, now: Timestamp, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match self.failures.due_in(now) {
            Some(wait) if wait.is_zero() => self.tell_failures(view, Some(now), io),
            _ => Ok(()),
        }
    }

    fn tick_in(&self, now: Timestamp) -> Option<Duration> {
        self.failures.due_in(now)
    }

    fn hear(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        match &record.event {
            Event::TurnQueued { seat, .. } if !self.quiet => writeln!(io.err, "{seat}: asked")?,
            Event::PhaseBegan {
                seat,
                phase,
                exchanged,
                exchanges_max,
                ..
            } if !self.quiet => {
                let part = words::part(*phase);
                writeln!(
                    io.err,
                    "{seat}: {part}, {exchanged} of {exchanges_max} messages exchanged"
                )?;
            }
            Event::CouncilSaid { .. } if self.council => self.whispers(view, io)?,
            Event::CouncilSaid {
                from, to, chars, ..
            } if !self.quiet => {
                writeln!(
                    io.err,
                    "{from}: wrote {} to {to}",
                    kd_app::words::count(*chars, "char")
                )?;
            }
            Event::TurnDelta { turn, delta } => {
                if let Some(turn) = view.turn(*turn) {
                    match delta {
                        Delta::Retrying { attempt, .. } => {
                            let void = self.written.remove(&turn.id).is_some();
                            let void = if void {
                                "; its answer so far is void"
                            } else {
                                ""
                            };
                            let what = format!(
                                "attempt {attempt} failed, {}{void}",
                                words::doing(turn, Some(record.ts))
                            );
                            self.happened(turn, view, &what, io)?;
                        }
                        Delta::Notice { text } if !self.quiet => {
                            writeln!(io.err, "{}: {}", turn.seat, clean::line(text))?;
                        }
                        Delta::Started { .. }
                        | Delta::Text { .. }
                        | Delta::Thinking { .. }
                        | Delta::Tool { .. }
                        | Delta::Call { .. }
                        | Delta::Notice { .. } => self.progress(turn, view, io)?,
                        // Its end follows.
                        Delta::Finished { .. } => {}
                    }
                }
            }
            Event::TurnFinished { turn, .. } | Event::TurnFailed { turn, .. } => {
                if let Some(turn) = view.turn(*turn) {
                    self.ended(turn, view, io)?;
                }
            }
            // The command ends with it as its error.
            Event::SaveFailed { turn: None, .. } => {}
            Event::OpRefused { .. } if view.question.is_none() => {}
            Event::OpRefused { why } => writeln!(io.err, "refused: {}", clean::line(why))?,
            Event::SaveFailed { why, .. } => writeln!(
                io.err,
                "warning: a message could not be saved: {}",
                clean::line(why)
            )?,
            Event::Noticed { text } if !self.quiet => writeln!(io.err, "{}", clean::line(text))?,
            // Left out by `quiet`.
            Event::TurnQueued { .. }
            | Event::PhaseBegan { .. }
            | Event::CouncilSaid { .. }
            | Event::Noticed { .. } => {}
            // The command line names the members; the end of the turn brings its message; the last line tells how the
            // round and a debate ended.
            Event::ThreadOpened { .. }
            | Event::MessageAdded { .. }
            | Event::FloorYielded { .. }
            | Event::DuetEnded { .. } => {}
            // Events of chats and of other processes are not part of this round.
            Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::ModeSet { .. }
            | Event::SeatMuted { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. } => {}
            // The command told it before the round.
            Event::HeldBack { .. } => {}
            // They have outputs of their own.
            Event::Deliberated { .. } | Event::Promised { .. } | Event::Reviewed { .. } => {}
        }
        self.tell_failures(view, Some(record.ts), io)?;
        io.out.flush()
    }

    fn catch_up(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        if self.council {
            self.whispers(view, io)?;
        }
        for turn in &view.turns {
            if matches!(self.written.get(&turn.id), Some(Written::All)) {
                continue;
            }
            if turn.is_over() {
                self.ended(turn, view, io)?;
            } else {
                self.progress(turn, view, io)?;
            }
        }
        io.out.flush()
    }

    fn end(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.catch_up(view, io)?;
        self.tell_failures(view, None, io)?;
        self.end_line(io)
    }
}

/// Returns the length of a growing text in complete words, including the line end after the last one, for readers that
/// wait for lines. Other trailing blanks may turn out to end the text, and wait.
fn whole_words(text: &str) -> usize {
    let begun = text.rfind(char::is_whitespace).map_or(0, |at| {
        at + text[at..].chars().next().map_or(0, char::len_utf8)
    });
    let words = text[..begun].trim_end().len();
    match text[words..begun].find('\n') {
        Some(end) if words > 0 => words + end + 1,
        _ => words,
    }
}

/// Returns the length that may be written: complete paragraphs outside code fences, or complete lines when it grows
/// long.
pub(super) fn ready(text: &str) -> usize {
    let mut fenced = false;
    let mut end = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if !line.ends_with('\n') {
            break;
        }
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if line.trim().is_empty() && !fenced || at - end > PARAGRAPH_MAX {
            end = at;
        }
    }
    end
}

/// Returns whether two texts differ only in trailing blanks of lines, which files lose.
pub(super) fn same_words(a: &str, b: &str) -> bool {
    let a = a.trim().lines().map(str::trim_end);
    let b = b.trim().lines().map(str::trim_end);
    a.eq(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::script::{Script, duet_round, full_round, refused};

    #[test]
    fn a_whole_round() {
        let (out, err) = full_round().play(&mut Plain::new(Styles::NONE, false));
        insta::assert_snapshot!("plain-out", out);
        insta::assert_snapshot!("plain-err", err);
    }

    #[test]
    fn a_duet_with_and_without_what_they_wrote_to_each_other() {
        let (out, err) = duet_round().play(&mut Plain::new(Styles::NONE, false));
        assert!(
            !out.contains("entropy\n") && !err.contains("diluted"),
            "{out}{err}"
        );
        insta::assert_snapshot!("plain-duet", format!("{out}--- stderr\n{err}"));
        let (out, _) = duet_round().play(&mut Plain::new(Styles::NONE, true).with_council(true));
        insta::assert_snapshot!("plain-duet-council", out);
    }

    #[test]
    fn whole_words_are_ready_and_the_end_of_their_line() {
        for (text, ready) in [
            ("", ""),
            ("begun", ""),
            ("begun ", "begun"),
            ("begun\n", "begun\n"),
            ("begun \n\n", "begun \n"),
            ("one two", "one"),
            ("one\n\ntwo", "one\n"),
            ("one\n\ntwo three", "one\n\ntwo"),
            ("\n\n", ""),
            ("\u{2003}x", ""),
        ] {
            assert_eq!(&text[..whole_words(text)], ready, "{text:?}");
        }
    }

    #[test]
    fn equal_failures_are_told_once() {
        let script = refused(&["a", "b", "c"]);
        let (out, err) = script.play(&mut Plain::new(Styles::NONE, false));
        assert_eq!(out, "a, b, c ! failed: the key was refused\n");
        assert_eq!(err.matches("help:").count(), 1, "{err}");
        assert!(err.contains("a, b, c: help: "), "{err}");
    }

    #[test]
    fn a_failure_does_not_wait_for_a_member_that_is_silent() {
        let mut script = Script::open(&["a", "b"]);
        script.say("Which?");
        script.queue(1, "a");
        script.queue(2, "b");
        script.event(Event::TurnFailed {
            turn: TurnId::new(1),
            seat: kd_core::SeatName::new("a").expect("a name"),
            failure: kd_core::Failure::new(FailureKind::Auth, "the key was refused"),
            message: None,
        });
        let (view, failed) = (View::of(&script.records), script.records.last());
        let failed = failed.expect("it failed");
        for mut face in [
            Box::new(Plain::new(Styles::NONE, false)) as Box<dyn Face>,
            Box::new(crate::face::page::Page::new(false)),
        ] {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut io = Io {
                out: &mut out,
                err: &mut err,
            };
            face.hear(failed, &view, &mut io).expect("written");
            assert_eq!(face.tick_in(failed.ts), Some(Duration::from_secs(2)));
            let due = failed.ts + Duration::from_secs(2);
            face.tick(due, &view, &mut io).expect("written");
            assert_eq!(face.tick_in(due), None);
            let all = [out, err].concat();
            let all = String::from_utf8(all).expect("text");
            assert!(all.contains("the key was refused"), "{all}");
        }
    }

    #[test]
    fn quiet_leaves_only_the_answers() {
        let (out, err) = full_round().play(&mut Plain::new(Styles::NONE, true));
        assert_eq!(err, "");
        assert!(out.contains("chair  | Both say"), "{out}");
    }

    #[test]
    fn no_body_forges_a_speaker_or_an_escape() {
        let evil = "ok\ncodex  | I resign\nclaude ! failed\r\u{1b}[1Akd: hello\n\u{2028}codex | x\u{85}codex | y";
        let mut script = Script::open(&["claude", "codex"]);
        script.queue(1, "claude");
        script.text(1, evil);
        script.finish(1, "claude", evil);
        let (out, _) = script.play(&mut Plain::new(Styles::NONE, false));
        for line in out.lines() {
            assert!(line.starts_with("claude |"), "{line:?}");
        }
        assert!(out.chars().all(|c| c == '\n' || !c.is_control()), "{out:?}");
    }

    #[test]
    fn what_is_written_is_what_was_said() {
        let text: String = (0..400)
            .map(|i| format!("line {i} of a very long paragraph\n"))
            .collect();
        let mut script = Script::open(&["a"]);
        script.queue(1, "a");
        for piece in text.as_bytes().chunks(37) {
            script.text(1, std::str::from_utf8(piece).expect("ASCII"));
        }
        script.finish(1, "a", &text);
        let (out, _) = script.play(&mut Plain::new(Styles::NONE, true));
        let said: String = out
            .lines()
            .map(|l| format!("{}\n", l.strip_prefix("a | ").expect("a label")))
            .collect();
        assert_eq!(said, text);
    }

    #[test]
    fn an_answer_whose_final_text_is_another_is_written_whole() {
        let whole = "The answer is: take PostgreSQL, since two programs write.";
        for (streamed, wanted) in [
            // Nothing was written yet: only the final text.
            ("Take", "a | WHOLE\n"),
            // Its beginning was written: the rest.
            ("The answer is: take Post", "a | WHOLE\n"),
            // Other text was written.
            (
                "Take SQLite.\n\nNo, take",
                "a | Take SQLite.\na |\na | No,\na ! the answer was restated; the full text:\na | WHOLE\n",
            ),
        ] {
            let mut script = Script::open(&["a"]);
            script.queue(1, "a");
            script.text(1, streamed);
            script.restate(1, whole);
            script.finish(1, "a", whole);
            let (out, _) = script.play(&mut Plain::new(Styles::NONE, true));
            assert_eq!(out, wanted.replace("WHOLE", whole), "{streamed:?}");
        }
    }

    #[test]
    fn a_member_who_answers_alone_is_written_word_by_word() {
        let mut script = Script::open(&["a", "b"]);
        script.queue(1, "a");
        script.text(1, "I ask the other one. Wait");
        let (out, _) = script.play(&mut Plain::new(Styles::NONE, true));
        assert!(out.starts_with("a | I ask the other one."), "{out:?}");
        // Two at the same time: complete paragraphs.
        let mut script = Script::open(&["a", "b"]);
        script.queue(1, "a");
        script.queue(2, "b");
        script.text(1, "One two");
        script.text(2, "three four");
        script.text(1, " five\n\nsix seven");
        script.finish(2, "b", "three four");
        script.text(1, " eight nine");
        script.finish(1, "a", "One two five\n\nsix seven eight nine");
        let (out, _) = script.play(&mut Plain::new(Styles::NONE, true));
        assert_eq!(
            out,
            "a | One two five\na |\nb | three four\na | six seven eight nine\n"
        );
    }

    #[test]
    fn a_restated_answer_is_written_whole() {
        let mut script = Script::open(&["a"]);
        script.queue(1, "a");
        script.text(1, "first thought\n\nmore");
        script.finish(1, "a", "final words");
        let (out, _) = script.play(&mut Plain::new(Styles::NONE, true));
        assert_eq!(
            out,
            "a | first thought\na ! the answer was restated; the full text:\na | final words\n"
        );
    }
}
