//! `--jsonl`: every record as one line, flushed as it happens. The schema is `docs/schemas/record.schema.json`.

#![deny(clippy::wildcard_enum_match_arm)]

use super::{Face, Io, json};
use kd_core::view::View;
use kd_core::{Event, Record};
use std::io;

/// The output of `--jsonl`.
pub(crate) struct JsonLines {
    quiet: bool,
    council: bool,
    last: u64,
}

impl JsonLines {
    /// Creates the output; `quiet` omits notices on stderr.
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            council: false,
            last: 0,
        }
    }

    /// Includes messages between members.
    pub(crate) fn with_council(mut self, council: bool) -> Self {
        self.council = council;
        self
    }
}

impl Face for JsonLines {
    fn hear(&mut self, record: &Record, _view: &View, io: &mut Io<'_>) -> io::Result<()> {
        self.last = record.seq;
        if let Event::CouncilSaid { .. } = record.event
            && !self.council
        {
            let mut told = record.clone();
            if let Event::CouncilSaid { text, .. } = &mut told.event {
                *text = None;
            }
            writeln!(io.out, "{}", json::text(&told, false)?)?;
        } else {
            writeln!(io.out, "{}", json::text(record, false)?)?;
        }
        io.out.flush()
    }

    fn catch_up(&mut self, _view: &View, io: &mut Io<'_>) -> io::Result<()> {
        writeln!(
            io.err,
            "warning: output was read too slowly; events after seq {} are missing (`kd show` has all)",
            self.last
        )
    }

    fn notice(&mut self, line: &str, io: &mut Io<'_>) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        writeln!(io.err, "{}", crate::render::clean::line(line))
    }

    fn end(&mut self, _view: &View, io: &mut Io<'_>) -> io::Result<()> {
        io.out.flush()
    }
}
