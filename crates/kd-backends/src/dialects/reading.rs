//! From bytes to deltas: cuts lines, feeds a decoder, ends turns. Comes in: bytes in any pieces, or a recorded stream.
//! Goes out: [`Delta`]s, each turn ended by [`Delta::Finished`] or a [`Failure`].

use super::parse::{notice, read};
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
        Self { lines: Lines::default(), decoder: dialect.decoder() }
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
        Line::TooLong(length) => vec![notice(format!("the agent printed a line of {length} bytes, which was passed over"))],
    }
}

/// A recorded stream, turn by turn. See [`decode_all`].
pub struct Decoded<R> {
    source: R,
    lines: Lines,
    decoder: Box<dyn Decoder>,
    ready: VecDeque<Result<Delta, Failure>>,
    /// Whether the last thing given out ended a turn.
    ended: bool,
    done: bool,
}

/// Reads a recorded stream to its end: every delta, and for each turn [`Delta::Finished`] or the failure that ends it.
/// At least one turn is ended. Recordings of both directions (`{"dir":"in"|"out","msg":…}` on each line) are understood.
pub fn decode_all<R: Read>(dialect: &Dialect, source: R) -> Decoded<R> {
    Decoded {
        source,
        lines: Lines::default(),
        decoder: dialect.decoder(),
        ready: VecDeque::new(),
        ended: false,
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
                    take(self.decoder.as_mut(), &mut self.ready, Line::Whole(&line));
                }
                let ended = self.ready.back().map_or(self.ended, ends);
                if !ended {
                    self.ready.push_back(self.decoder.end(&ExitSeen::default()));
                }
            }
            Ok(length) => {
                let (decoder, ready) = (self.decoder.as_mut(), &mut self.ready);
                self.lines.push(&chunk[..length], |line| take(decoder, ready, line));
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.done = true;
                let said = format!("the recording cannot be read: {error}");
                self.ready.push_back(Err(Failure::new(FailureKind::Crashed, said)));
            }
        }
    }
}

impl<R: Read> Iterator for Decoded<R> {
    type Item = Result<Delta, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.done {
            self.fill();
        }
        let next = self.ready.pop_front()?;
        self.ended = ends(&next);
        Some(next)
    }
}

fn ends(delta: &Result<Delta, Failure>) -> bool {
    matches!(delta, Err(_) | Ok(Delta::Finished { .. }))
}

/// One recorded line into a decoder; ends the turn when it is over.
fn take(decoder: &mut dyn Decoder, ready: &mut VecDeque<Result<Delta, Failure>>, line: Line<'_>) {
    let deltas = match line {
        Line::Whole(line) => match both_sides(line) {
            Some((true, message)) => decoder.line(&message),
            Some((false, message)) => {
                decoder.sent(&message);
                Vec::new()
            }
            None => decoder.line(line),
        },
        long => lines_deltas(decoder, long),
    };
    ready.extend(deltas.into_iter().map(Ok));
    if decoder.over() {
        ready.push_back(decoder.end(&ExitSeen::default()));
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
