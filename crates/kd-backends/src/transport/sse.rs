//! Parses server-sent events from bytes that are split anywhere.
//!
//! Supports every line ending of the standard (LF, CRLF, CR), comments, several data lines, and a byte order mark.
//! Invalid UTF-8 becomes the replacement character; a line or event over its limit is an error, so memory stays
//! bounded.

use memchr::memchr2;

/// Maximum length of an event, in bytes: well above the largest answer that arrives in one piece.
pub const EVENT_MAX: usize = 32 << 20;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name; empty where it has none.
    pub name: &'a str,
    /// Its data; empty for a comment, which is only a sign of life.
    pub data: &'a str,
}

/// An event is longer than [`EVENT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Splits a stream of bytes into events.
#[derive(Debug, Default)]
pub struct Splitter {
    /// The incomplete last line.
    line: Vec<u8>,
    name: String,
    data: String,
    /// Whether the event has a data line yet (an empty one counts).
    begun: bool,
    /// The last byte was CR: a following LF belongs to it.
    after_cr: bool,
    /// Input was read already, so a byte order mark is not special.
    started: bool,
}

impl Splitter {
    /// Takes more bytes and calls `each` for every complete event.
    ///
    /// # Errors
    /// If a line or an event is too long.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        each: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }
            let Some(at) = memchr2(b'\n', b'\r', bytes) else {
                if self.line.len() + bytes.len() > EVENT_MAX {
                    return Err(TooLong);
                }
                self.line.extend_from_slice(bytes);
                return Ok(());
            };
            self.after_cr = bytes[at] == b'\r';
            if self.line.is_empty() {
                self.take(&bytes[..at], each)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..at]);
                self.take(&line, each)?;
                // Reuses its memory, but not that of a giant line.
                line.clear();
                line.shrink_to(1 << 16);
                self.line = line;
            }
            bytes = &bytes[at + 1..];
        }
        Ok(())
    }

    /// Handles the end of input: an event without its closing empty line counts, since some servers omit it.
    ///
    /// # Errors
    /// If the last event is too long.
    pub fn end(&mut self, each: &mut dyn FnMut(Event<'_>)) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take(&line, each)?;
        }
        self.take(b"", each)
    }

    /// Parses one line without its line ending.
    fn take(&mut self, mut line: &[u8], each: &mut dyn FnMut(Event<'_>)) -> Result<(), TooLong> {
        if !self.started {
            self.started = true;
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            if self.begun {
                each(Event {
                    name: &self.name,
                    data: &self.data,
                });
                self.begun = false;
                self.data.clear();
                self.data.shrink_to(1 << 16);
            }
            self.name.clear();
            return Ok(());
        }
        if line[0] == b':' {
            each(Event { name: "", data: "" });
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.data.len() + value.len() > EVENT_MAX {
                    return Err(TooLong);
                }
                if self.begun {
                    self.data.push('\n');
                }
                self.begun = true;
                match std::str::from_utf8(value) {
                    Ok(text) => self.data.push_str(text),
                    Err(_) => self.data.push_str(&String::from_utf8_lossy(value)),
                }
            }
            b"event" => {
                self.name.clear();
                self.name.push_str(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Vec::new();
        let mut each = |e: Event<'_>| events.push((e.name.to_owned(), e.data.to_owned()));
        let mut splitter = Splitter::default();
        for piece in pieces {
            splitter.push(piece, &mut each).unwrap();
        }
        splitter.end(&mut each).unwrap();
        events
    }

    const STREAM: &[u8] = b"\xEF\xBB\xBFevent: a\ndata: {\"x\":1}\n\n: comment\r\n\r\ndata: two\r\ndata:lines\r\n\r\n\
        data: caf\xC3\xA9\rdata\r\rid: 7\nretry: 1\n\ndata: bad \xFF byte\n\nevent: lost\n\ndata: no end";

    #[test]
    fn every_form_of_the_standard_is_read() {
        let events = split(&[STREAM]);
        let of = |n: &str, d: &str| (n.to_owned(), d.to_owned());
        assert_eq!(
            events,
            [
                of("a", "{\"x\":1}"),
                of("", ""),
                of("", "two\nlines"),
                of("", "café\n"),
                of("", "bad \u{FFFD} byte"),
                of("", "no end"),
            ]
        );
    }

    #[test]
    fn the_events_are_the_same_wherever_the_bytes_are_cut() {
        let whole = split(&[STREAM]);
        for at in 0..=STREAM.len() {
            assert_eq!(split(&[&STREAM[..at], &STREAM[at..]]), whole, "cut at {at}");
        }
        let single: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(split(&single), whole);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut splitter = Splitter::default();
        let block = vec![b'x'; 1 << 20];
        let mut fed = 0;
        let refused = loop {
            match splitter.push(&block, &mut |_| {}) {
                Ok(()) => fed += block.len(),
                Err(error) => break error,
            }
            assert!(fed <= EVENT_MAX);
        };
        assert_eq!(refused, TooLong);
    }
}
