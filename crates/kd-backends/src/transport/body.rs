//! The body of a request to a model service. A long history is written while it is sent: all members of a round share
//! its text, and no copy of it is made for any of them.
//!
//! The body is first built with a short placeholder for each piece of the history. Where a placeholder stands in the
//! JSON, the piece is written, escaped as JSON, when the connection asks for more.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use kd_core::request::Starts;
use kd_core::text::Text;
use kd_core::{Prompt, Request};
use memchr::memmem;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Minimum bytes of a history that is written while it is sent.
const WRITTEN_FROM: usize = 256 << 10;
/// Maximum bytes of the history in one piece of the body.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// A body. Its length is known from the start.
#[derive(Debug, Default)]
pub(crate) struct Written {
    parts: VecDeque<Part>,
    /// Bytes that were not taken yet.
    left: u64,
}

#[derive(Debug)]
enum Part {
    Json(Bytes),
    /// A part of the history, to be escaped.
    Text(Text, Range<usize>),
}

impl Written {
    /// Builds the body of a request; `build` returns the JSON of a request.
    ///
    /// # Errors
    /// The JSON cannot be written.
    pub(crate) fn new(
        request: &Request,
        build: impl Fn(&Request) -> serde_json::Value,
    ) -> serde_json::Result<Self> {
        let Some(pieces) = Pieces::of(&request.prompt) else {
            let mut whole = Self::default();
            whole.push(Part::Json(serde_json::to_vec(&build(request))?.into()));
            return Ok(whole);
        };
        let short = Request {
            prompt: pieces.placeholders(&request.prompt),
            ..request.clone()
        };
        let json = serde_json::to_vec(&build(&short))?;
        Ok(pieces.put_into(json.into(), &request.prompt.history))
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    fn push(&mut self, part: Part) {
        self.left += match &part {
            Part::Json(json) => json.len() as u64,
            Part::Text(text, range) => {
                let pieces = Chunks(&text[range.clone()]);
                pieces.map(|piece| escaped_len(piece) as u64).sum()
            }
        };
        self.parts.push_back(part);
    }
}

impl From<Written> for reqwest::Body {
    fn from(mut body: Written) -> Self {
        match (body.parts.len(), body.parts.front_mut()) {
            (1, Some(Part::Json(json))) => std::mem::take(json).into(),
            _ => Self::wrap(body),
        }
    }
}

impl Body for Written {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = self.get_mut();
        let piece = match body.parts.pop_front() {
            None => return Poll::Ready(None),
            Some(Part::Json(json)) => json,
            Some(Part::Text(text, range)) => {
                let piece = Chunks(&text[range.clone()]).next().unwrap_or_default();
                let mut json = Vec::with_capacity(piece.len() + piece.len() / 16 + 2);
                escape(piece, &mut json);
                let rest = range.start + piece.len()..range.end;
                if !rest.is_empty() {
                    body.parts.push_front(Part::Text(text, rest));
                }
                json.into()
            }
        };
        body.left -= piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A text in chunks that end at the boundaries of characters.
struct Chunks<'t>(&'t str);

impl<'t> Iterator for Chunks<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let (chunk, rest) = self.0.split_at(self.0.floor_char_boundary(PIECE_BYTES_MAX));
        self.0 = rest;
        (!chunk.is_empty()).then_some(chunk)
    }
}

/// Writes a text as in a JSON string, without the quotes.
fn escape(text: &str, out: &mut Vec<u8>) {
    // A text that is written to memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, text);
    out.pop();
    out.remove(0);
}

/// Returns the length of a text in a JSON string.
fn escaped_len(text: &str) -> usize {
    /// Counts what is written.
    struct Count(usize);

    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    let _ = serde_json::to_writer(&mut count, text);
    count.0.saturating_sub(2)
}

/// Returns a cache key for the prompts of one member in one thread: a hash of their common beginning, up to the second
/// message. `None` if no other prompt shares it.
pub(crate) fn cache_key(prompt: &Prompt) -> Option<String> {
    let first = prompt.history.get(..*prompt.starts.first()?)?;
    let mut hash = Sha256::new();
    for part in [prompt.rules.as_str(), &prompt.persona, first] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digits = kd_core::hex::hex(&hash.finalize()[..16]);
    Some(format!("kd-{digits}"))
}

/// The pieces of a long history, and the mark of their placeholders: random, so that no text has it.
struct Pieces {
    spans: Vec<Range<usize>>,
    mark: String,
}

impl Pieces {
    /// Returns the pieces of a prompt's history; `None` if it is short, or if the positions in it are wrong.
    fn of(prompt: &Prompt) -> Option<Self> {
        let history = prompt.history.as_str();
        if history.len() < WRITTEN_FROM {
            return None;
        }
        let ends = prompt.starts.iter().copied().chain([history.len()]);
        let mut at = 0;
        let mut spans = Vec::with_capacity(prompt.starts.len() + 1);
        for end in ends {
            history.get(at..end)?;
            spans.push(at..end);
            at = end;
        }
        let random = || RandomState::new().build_hasher().finish();
        let mark = format!("kd-{:016x}{:016x}-", random(), random());
        Some(Self { spans, mark })
    }

    /// Returns the prompt with a placeholder for each piece.
    fn placeholders(&self, prompt: &Prompt) -> Prompt {
        let mut history = String::new();
        let mut starts = Vec::with_capacity(prompt.starts.len());
        for at in 0..self.spans.len() {
            if at > 0 {
                starts.push(history.len());
            }
            history.push_str(&format!("{}{at};", self.mark));
        }
        Prompt {
            rules: prompt.rules.clone(),
            persona: prompt.persona.clone(),
            history: history.into(),
            starts: Starts::from(starts),
            turn: prompt.turn.clone(),
        }
    }

    /// Puts the pieces where their placeholders are.
    fn put_into(&self, json: Bytes, history: &Text) -> Written {
        let mut body = Written::default();
        let mut from = 0;
        // The last piece, as long as the next may join it.
        let mut last: Option<Range<usize>> = None;
        for at in memmem::find_iter(&json, self.mark.as_bytes()) {
            let number = &json[at + self.mark.len()..];
            let digits = number.iter().take_while(|b| b.is_ascii_digit()).count();
            let number = std::str::from_utf8(&number[..digits]).ok();
            let span = number
                .and_then(|number| self.spans.get(number.parse::<usize>().ok()?))
                .cloned();
            let Some(span) = span else {
                continue;
            };
            last = match last {
                Some(before) if at == from && before.end == span.start => {
                    Some(before.start..span.end)
                }
                before => {
                    let before = before.map(|range| Part::Text(history.clone(), range));
                    before.into_iter().for_each(|part| body.push(part));
                    if from < at {
                        body.push(Part::Json(json.slice(from..at)));
                    }
                    Some(span)
                }
            };
            from = at + self.mark.len() + digits + 1;
        }
        if let Some(range) = last {
            body.push(Part::Text(history.clone(), range));
        }
        if from < json.len() {
            body.push(Part::Json(json.slice(from..)));
        }
        body
    }
}

#[cfg(test)]
mod tests;
