//! Output to a pipe of an answer in a JSON schema: nothing but the value. Progress is on stderr as in other outputs.

use super::{Face, Io, json};
use jiff::Timestamp;
use kd_core::Record;
use kd_core::view::View;
use std::io;
use std::time::Duration;

/// Output of the value alone.
pub(crate) struct ValueOnly {
    /// Writes to stderr.
    progress: Box<dyn Face>,
}

impl ValueOnly {
    /// Creates the output; `progress` shows the round, and what it writes to stdout is left out.
    pub(crate) fn new(progress: Box<dyn Face>) -> Self {
        Self { progress }
    }

    fn show(
        &mut self,
        io: &mut Io<'_>,
        act: impl FnOnce(&mut dyn Face, &mut Io<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut io = Io {
            out: &mut io::sink(),
            err: &mut *io.err,
        };
        act(self.progress.as_mut(), &mut io)
    }
}

impl Face for ValueOnly {
    fn hear(&mut self, record: &Record, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.show(io, |face, io| face.hear(record, view, io))
    }

    fn catch_up(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.show(io, |face, io| face.catch_up(view, io))
    }

    fn tick(&mut self, now: Timestamp, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.show(io, |face, io| face.tick(now, view, io))
    }

    fn tick_in(&self, now: Timestamp) -> Option<Duration> {
        self.progress.tick_in(now)
    }

    fn notice(&mut self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        self.show(io, |face, io| face.notice(line, io))
    }

    fn end(&mut self, view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.show(io, |face, io| face.end(view, io))?;
        if let Some(Ok(value)) = view.output() {
            writeln!(io.out, "{}", json::text(&value, true)?)?;
        }
        io.out.flush()
    }
}
