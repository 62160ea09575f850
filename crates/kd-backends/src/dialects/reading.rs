//! From bytes to deltas: cuts lines, feeds a decoder, ends turns. Comes in: bytes in any pieces, or a recorded stream.
//! Goes out: [`Delta`]s, each turn ended by [`Delta::Finished`] or a [`Failure`].

use super::parse::read;
use super::{Decoder, Dialect, ExitSeen};
use crate::transport::lines::{Line, Lines};
use kd_core::{Delta, Failure, FailureKind};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::Read;

/// One agent's output on its way through a decoder.
pub struct Reading {
    lines: Lines,
    decoder: Box<dyn Decoder>,
}

impl Reading {
    /// Reads this dialect.
    pub fn new(dialect: &Dialect) -> Self {
        Self {
            lines: Lines::default(),
            decoder: dialect.decoder(),
        }
    }

    /// Takes bytes, gives what they mean. Reads on after the turn's end until told to [`Reading::end`]; what an agent
    /// prints after its terminal event yields nothing.
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

    /// The stream ended: what stands on an unfinished last line.
    pub fn finish(&mut self) -> Vec<Delta> {
        match self.lines.finish() {
            Some(line) if !self.decoder.over() => self.decoder.line(&line),
            _ => Vec::new(),
        }
    }

    /// Whether the terminal event has come.
    pub fn over(&self) -> bool {
        self.decoder.over()
    }

    /// Ends the turn.
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

/// A recorded stream, turn by turn. See [`decode_all`].
pub struct Decoded<R> {
    source: R,
    lines: Lines,
    decoder: Box<dyn Decoder>,
    /// Who reads a recording of both directions, if another; taken at its first line.
    dialog: Option<&'static Dialect>,
    ready: VecDeque<Result<Delta, Failure>>,
    /// Whether a turn is to be ended when the recording ends.
    open: bool,
    /// The end of the turn that is over. What is noticed after it is said before it, so that an end stands last.
    end: Option<Result<Delta, Failure>>,
    done: bool,
}

/// Reads a recorded stream to its end: every delta, and for each turn [`Delta::Finished`] or the failure that ends it.
/// At least one turn is ended. Recordings of both directions (`{"dir":"in"|"out","msg":…}` on each line) are understood, and
/// read in the form of the dialect that speaks in both.
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

    /// Takes one recorded line; ends the turn when it is over.
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
        // A notice after the end of a turn begins no other.
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

/// A line of a recording of both directions: whether the agent said it, and what.
fn both_sides(line: &[u8]) -> Option<(bool, Vec<u8>)> {
    // No agent's own line has both members; looking for the bytes first spares parsing every line twice.
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
