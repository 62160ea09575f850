//! CLI output: what a user or a script sees of a round. Takes engine records, folded into the [`View`]; writes results
//! to stdout and everything else to stderr. A `Face` knows no clock, terminal or engine.

pub(crate) mod batch;
pub(crate) mod chat;
pub(crate) mod deliberation;
pub(crate) mod document;
mod failures;
pub(crate) mod fleet;
pub(crate) mod frame;
pub(crate) mod json;
pub(crate) mod jsonl;
pub(crate) mod live;
pub(crate) mod page;
pub(crate) mod plain;
pub(crate) mod review;
pub(crate) mod thread;
pub(crate) mod value;
pub(crate) mod words;

#[cfg(test)]
pub(crate) mod script;

use jiff::Timestamp;
use kd_core::Record;
use kd_core::view::View;
use std::io::{self, Write};
use std::time::Duration;

/// The output streams.
pub(crate) struct Io<'a> {
    /// Results.
    pub(crate) out: &'a mut dyn Write,
    /// Progress and notices.
    pub(crate) err: &'a mut dyn Write,
}

/// Shows nothing.
pub(crate) struct Silent;

impl Face for Silent {
    fn hear(&mut self, _: &Record, _: &View, _: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    fn catch_up(&mut self, _: &View, _: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &View, _: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Shows a round as it happens.
pub(crate) trait Face {
    /// Handles an event that `view` already includes.
    fn hear(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()>;

    /// Handles a gap: records were missed because output was too slow; `view` is complete again.
    fn catch_up(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()>;

    /// Handles passed time or a new terminal size.
    fn tick(&mut self, _now: Timestamp, _view: &View, _io: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Returns the time until the next [`Face::tick`]; `None` means never.
    fn tick_in(&self, _now: Timestamp) -> Option<Duration> {
        None
    }

    /// Handles a new terminal size, in columns and rows.
    fn resize(&mut self, _columns: u16, _rows: u16) {}

    /// Removes what is not final, before other programs write to the terminal.
    fn hide(&mut self, _io: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Marks the terminal's content as unknown, after other programs may have written to it.
    fn repaint(&mut self) {}

    /// Writes a line for the user that is not part of the answers.
    fn notice(&mut self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        writeln!(io.err, "{}", crate::render::clean::line(line))
    }

    /// Handles the end of the round.
    fn end(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::style::Styles;
    use script::{Script, duet_round, full_round};

    /// Calls a check with every range of records that an output can miss.
    fn every_lag(script: &Script, check: impl Fn(std::ops::Range<usize>)) {
        for from in 0..script.records.len() {
            for to in from + 1..=script.records.len() {
                check(from..to);
            }
        }
    }

    #[test]
    fn after_a_lag_results_are_those_without_a_lag() {
        for script in [full_round(), duet_round()] {
            let faces: [fn() -> Box<dyn Face>; 2] = [
                || Box::new(json::Json::new(true).with_council(true)),
                || Box::new(page::Page::new(true)),
            ];
            for face in faces {
                let (whole, _) = script.play(face().as_mut());
                every_lag(&script, |missed| {
                    let (out, _) = script.play_missing(missed.clone(), face().as_mut());
                    assert_eq!(out, whole, "{missed:?}");
                });
            }
        }
    }

    #[test]
    fn after_a_lag_every_answer_and_every_message_between_members_is_shown() {
        let ends = |script: &Script| {
            let view = View::of(&script.records);
            let turns = view.turns.iter().map(|turn| turn.body().to_owned());
            let whispers = view.whispers.iter().map(|whisper| whisper.text.clone());
            let texts: Vec<String> = turns.chain(whispers).collect();
            let words = |text: &String| text.split_whitespace().last().map(str::to_owned);
            let words = texts.iter().filter_map(words);
            let words = words.map(|word| word.trim_matches(['*', '.']).to_owned());
            words
                .filter(|word| !word.contains('\u{1b}'))
                .collect::<Vec<_>>()
        };
        for script in [full_round(), duet_round()] {
            let faces: [fn() -> Box<dyn Face>; 2] = [
                || Box::new(plain::Plain::new(Styles::NONE, true).with_council(true)),
                || {
                    let live = live::Live::new(Styles::NONE, 80, 24, false, false);
                    Box::new(live.with_council(true))
                },
            ];
            for face in faces {
                every_lag(&script, |missed| {
                    let (out, _) = script.play_missing(missed.clone(), face().as_mut());
                    for word in ends(&script) {
                        assert!(out.contains(&word), "{missed:?}: {word:?} is not in {out}");
                    }
                });
            }
        }
    }
}
