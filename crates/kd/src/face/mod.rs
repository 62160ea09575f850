//! CLI output: what a user or a script sees of a round. Takes engine records, folded into one [`Round`]; writes results
//! to stdout and everything else to stderr. A `Face` knows no clock, terminal or engine.

pub(crate) mod chat;
pub(crate) mod deliberation;
pub(crate) mod document;
pub(crate) mod frame;
pub(crate) mod json;
pub(crate) mod jsonl;
pub(crate) mod live;
pub(crate) mod page;
pub(crate) mod plain;
pub(crate) mod review;
pub(crate) mod round;
pub(crate) mod words;

#[cfg(test)]
pub(crate) mod script;

use jiff::Timestamp;
use kd_core::Record;
use round::Round;
use std::io::{self, Write};
use std::time::Duration;

/// The output streams.
pub(crate) struct Io<'a> {
    /// Results.
    pub(crate) out: &'a mut dyn Write,
    /// Progress and notices.
    pub(crate) err: &'a mut dyn Write,
}

/// Shows a round as it happens.
pub(crate) trait Face {
    /// Handles an event that `round` already includes.
    fn hear(&mut self, record: &Record, round: &Round, io: &mut Io<'_>) -> io::Result<()>;

    /// Handles a gap: records were missed because output was too slow; `round` is complete again.
    fn catch_up(&mut self, round: &Round, io: &mut Io<'_>) -> io::Result<()>;

    /// Handles passed time or a new terminal size.
    fn tick(&mut self, _now: Timestamp, _round: &Round, _io: &mut Io<'_>) -> io::Result<()> {
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
    fn end(&mut self, round: &Round, io: &mut Io<'_>) -> io::Result<()>;
}
