//! Faces: what a person or a script sees of a round. Comes in: records of the engine, folded into one [`Round`]. Goes
//! out: bytes for stdout (results) and stderr (all else). A face knows no clock, no terminal and no engine.

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

/// Where a face writes.
pub(crate) struct Io<'a> {
    /// Results.
    pub(crate) out: &'a mut dyn Write,
    /// Progress and notices.
    pub(crate) err: &'a mut dyn Write,
}

/// Shows a round while it happens.
pub(crate) trait Face {
    /// A fact happened; `round` holds it already.
    fn hear(&mut self, record: &Record, round: &Round, io: &mut Io<'_>) -> io::Result<()>;

    /// Records were missed because we were too slow; `round` is whole again.
    fn catch_up(&mut self, round: &Round, io: &mut Io<'_>) -> io::Result<()>;

    /// Time passed, or the terminal has another size.
    fn tick(&mut self, _now: Timestamp, _round: &Round, _io: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    /// How long until the next [`Face::tick`] is wanted; none means never.
    fn tick_in(&self, _now: Timestamp) -> Option<Duration> {
        None
    }

    /// The terminal has another size, in columns and rows.
    fn resize(&mut self, _columns: u16, _rows: u16) {}

    /// Takes back what is not final, before others write to the terminal.
    fn hide(&mut self, _io: &mut Io<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Others may have written to the terminal: what stands there is not known any more.
    fn repaint(&mut self) {}

    /// A line for the person that is no part of the answers.
    fn notice(&mut self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        writeln!(io.err, "{}", crate::render::clean::line(line))
    }

    /// The round is over.
    fn end(&mut self, round: &Round, io: &mut Io<'_>) -> io::Result<()>;
}
