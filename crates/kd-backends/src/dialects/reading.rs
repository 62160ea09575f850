//! Converts bytes to deltas: splits lines, feeds a decoder, ends turns.
//!
//! Input: bytes in any pieces, or a recorded stream. Output: [`Delta`]s, with [`Delta::Finished`] or a [`Failure`] at
//! the end of each turn.

use super::parse::read;
use super::{Decoder, Dialect, ExitSeen};
use crate::transport::lines::{Line, Lines};
use kd_core::{Delta, Failure, FailureKind};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::Read;

/// Feeds one agent's output through a decoder.
pub struct Reading {
    lines: Lines,
    decoder: Box<dyn Decoder>,
}

impl Reading {
    /// Creates a reader for this dialect.
    pub fn new(dialect: &Dialect) -> Self {
        Self {
            lines: Lines::default(),
            decoder: dialect.decoder(),
        }
    }

    /// Takes bytes, returns their deltas. Keeps reading after the end of the turn until [`Reading::end`]; output after
    /// the terminal event yields nothing.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Delta> {
        let mut out = Vec::new();
        let decoder = &mut self.decoder;
        self.lines.push(bytes, |line| {
            if !decoder.over() {
                out.extend(lines_deltas(decoder.as_mut(), line));
            }
        });
        out
    }

    /// Handles the end of the stream: decodes an unterminated last line.
    pub fn finish(&mut self) -> Vec<Delta> {
        match self.lines.finish() {
            Some(line) if !self.decoder.over() => self.decoder.line(&line),
            _ => Vec::new(),
        }
    }

    /// Returns whether the terminal event has arrived.
    pub fn over(&self) -> bool {
        self.decoder.over()
    }

    /// Ends the turn.
    ///
    /// # Errors
    /// If the program reported a failure, or ended before its answer was complete.
    pub fn end(&mut self, exit: &ExitSeen) -> Result<Delta, Failure> {
        self.decoder.end(exit)
    }
}

fn lines_deltas(decoder: &mut dyn Decoder, line: Line<'_>) -> Vec<Delta> {
    match line {
        Line::Whole(line) => decoder.line(line),
        Line::TooLong(length) => vec![super::too_long(length)],
    }
}

/// The deltas of a recorded stream, turn by turn; see [`decode_all`].
pub struct Decoded<R> {
    source: R,
    lines: Lines,
    decoder: Box<dyn Decoder>,
    /// The dialect for recordings of both directions, if it is a different one; taken at the first such line.
    dialog: Option<&'static Dialect>,
    ready: VecDeque<Result<Delta, Failure>>,
    /// Whether a turn has to be ended when the recording ends.
    open: bool,
    /// The end of the finished turn. Held back, so that later notices come before it and the end is last.
    end: Option<Result<Delta, Failure>>,
    done: bool,
}

/// Decodes a whole recorded stream: every delta, and for each turn [`Delta::Finished`] or the failure that ended it.
/// Ends at least one turn. Recordings of both directions (`{"dir":"in"|"out","msg":…}` on each line) are read with the
/// program's two-way dialect.
pub fn decode_all<R: Read>(dialect: &Dialect, source: R) -> Decoded<R> {
    Decoded {
        source,
        lines: Lines::default(),
        decoder: dialect.decoder(),
        dialog: dialect.dialog.and_then(super::named),
        ready: VecDeque::new(),
        open: true,
        end: None,
        done: false,
    }
}

impl<R: Read> Decoded<R> {
    fn fill(&mut self) {
        let mut chunk = vec![0; 64 * 1024];
        match self.source.read(&mut chunk) {
            Ok(0) => {
                self.done = true;
                if let Some(line) = self.lines.finish() {
                    self.take(Line::Whole(&line));
                }
                self.flush();
                if self.open {
                    let end = self.decoder.end(&ExitSeen::default());
                    self.ready.push_back(end);
                }
            }
            Ok(length) => {
                let mut lines = std::mem::take(&mut self.lines);
                lines.push(&chunk[..length], |line| self.take(line));
                self.lines = lines;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.done = true;
                let said = format!("the recording cannot be read: {error}");
                self.ready
                    .push_back(Err(Failure::new(FailureKind::Crashed, said)));
            }
        }
    }

    /// Decodes one recorded line; ends the turn when it is over.
    fn take(&mut self, line: Line<'_>) {
        let deltas = match line {
            Line::Whole(line) => match both_sides(line) {
                Some((agent, message)) => {
                    if let Some(dialog) = self.dialog.take() {
                        self.decoder = dialog.decoder();
                    }
                    if agent {
                        self.decoder.line(&message)
                    } else {
                        self.decoder.sent(&message);
                        Vec::new()
                    }
                }
                None => self.decoder.line(line),
            },
            long => lines_deltas(self.decoder.as_mut(), long),
        };
        // A notice after the end of a turn does not start a new one.
        if deltas
            .iter()
            .any(|delta| !matches!(delta, Delta::Notice { .. }))
        {
            self.flush();
            self.open = true;
        }
        self.ready.extend(deltas.into_iter().map(Ok));
        if self.decoder.over() {
            self.flush();
            self.open = false;
            self.end = Some(self.decoder.end(&ExitSeen::default()));
        }
    }

    fn flush(&mut self) {
        self.ready.extend(self.end.take());
    }
}

impl<R: Read> Iterator for Decoded<R> {
    type Item = Result<Delta, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.done {
            self.fill();
        }
        self.ready.pop_front()
    }
}

/// Splits a line of a two-way recording: whether the agent sent it, and the message.
fn both_sides(line: &[u8]) -> Option<(bool, Vec<u8>)> {
    // No agent's own line has both members; searching for the bytes first avoids parsing every line twice.
    let has = |name: &[u8]| line.windows(name.len()).any(|w| w == name);
    if !has(b"\"dir\"") || !has(b"\"msg\"") {
        return None;
    }
    let recorded = read(line)?;
    let out = match recorded["dir"].as_str()? {
        "out" => true,
        "in" => false,
        _ => return None,
    };
    let message = match recorded.get("msg")? {
        Value::String(raw) => raw.clone().into_bytes(),
        message => message.to_string().into_bytes(),
    };
    Some((out, message))
}
