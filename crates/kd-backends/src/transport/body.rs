//! The body of a request to a model service. A long history is written while it is sent: all members of a round share
//! its text, and no copy of it is made for any of them.
//!
//! The body is first built with a short placeholder for each piece of the history. When the connection asks for more,
//! the piece is written in place of its placeholder, escaped as JSON.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use kd_core::request::Starts;
use kd_core::text::Text;
use kd_core::{Prompt, Request};
use memchr::memmem;
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Minimum bytes of a history that is written while it is sent.
const WRITTEN_FROM: usize = 256 << 10;
/// Bytes of the history, before they are escaped, and of the JSON in one piece of the body.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// Bytes of the history that are always written: a character has at most four.
const MINIMUM: usize = 4;

/// A body. Its length is known from the start.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The JSON around the pieces of the history, without them.
    json: Bytes,
    history: Text,
    /// The position of the history in the JSON.
    cuts: Vec<Cut>,
    /// The next cut, and how much of the JSON and of the history is written before it.
    next: usize,
    json_at: usize,
    text_at: usize,
    /// Bytes that were not taken yet.
    left: u64,
}

/// A position in the JSON where a part of the history is inserted and escaped. Small: a long history has thousands,
/// for each member.
#[derive(Clone, Copy, Debug)]
struct Cut {
    json: u32,
    from: u32,
    to: u32,
}

impl Cut {
    /// Returns the cut at a position; `None` beyond 4 GiB.
    fn at(json: usize, text: &Range<usize>) -> Option<Self> {
        let small = |at: usize| u32::try_from(at).ok();
        Some(Self {
            json: small(json)?,
            from: small(text.start)?,
            to: small(text.end)?,
        })
    }
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
        let pieces = Pieces::of(&request.prompt);
        let split = pieces.map(|pieces| {
            let short = Request {
                prompt: pieces.placeholders(&request.prompt),
                ..request.clone()
            };
            let json = serde_json::to_vec(&build(&short))?;
            Ok(pieces.put_into(&json, &request.prompt.history))
        });
        if let Some(written) = split.transpose()?.flatten() {
            return Ok(written);
        }
        let json: Bytes = serde_json::to_vec(&build(request))?.into();
        Ok(Self {
            left: json.len() as u64,
            json,
            ..Self::default()
        })
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.left
    }

    /// Returns the next bytes; empty at the end.
    fn take(&mut self) -> Bytes {
        let mut piece = Vec::new();
        while piece.len() < PIECE_BYTES_MAX {
            let Some(cut) = self.cuts.get(self.next).copied() else {
                let rest = self.json.split_off(self.json_at.min(self.json.len()));
                self.json = Bytes::new();
                self.json_at = 0;
                if piece.is_empty() {
                    return rest;
                }
                piece.extend_from_slice(&rest);
                break;
            };
            let at = cut.json as usize;
            piece.extend_from_slice(&self.json[self.json_at..at]);
            self.json_at = at;
            let from = self.text_at.max(cut.from as usize);
            let text = &self.history[from..cut.to as usize];
            let room = PIECE_BYTES_MAX.saturating_sub(piece.len()).max(MINIMUM);
            let text = &text[..text.floor_char_boundary(room)];
            escape(text, &mut piece);
            self.text_at = from + text.len();
            if self.text_at == cut.to as usize {
                self.next += 1;
                self.text_at = 0;
            }
        }
        piece.into()
    }
}

impl From<Written> for reqwest::Body {
    fn from(body: Written) -> Self {
        match body.cuts.is_empty() {
            true => body.json.into(),
            false => Self::wrap(body),
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
        if body.left == 0 {
            return Poll::Ready(None);
        }
        let piece = body.take();
        body.left -= piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
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

/// Appends a text as in a JSON string, without the quotes.
fn escape(text: &str, out: &mut Vec<u8>) {
    // A text always becomes JSON.
    let json = serde_json::to_vec(text).unwrap_or_default();
    out.extend_from_slice(
        json.get(1..json.len().saturating_sub(1))
            .unwrap_or_default(),
    );
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

    /// Puts the pieces where their placeholders are. `None` if they are too far apart.
    fn put_into(&self, json: &[u8], history: &Text) -> Option<Written> {
        let mut rest = Vec::with_capacity(json.len() / 2);
        let mut cuts: Vec<Cut> = Vec::with_capacity(self.spans.len());
        let mut left = 0;
        let mut from = 0;
        for at in memmem::find_iter(json, self.mark.as_bytes()) {
            let number = &json[at + self.mark.len()..];
            let digits = number.iter().take_while(|b| b.is_ascii_digit()).count();
            let number = std::str::from_utf8(&number[..digits]).ok();
            let span = number.and_then(|number| self.spans.get(number.parse::<usize>().ok()?));
            let Some(span) = span else {
                continue;
            };
            rest.extend_from_slice(&json[from..at]);
            let cut = Cut::at(rest.len(), span)?;
            match cuts.last_mut() {
                Some(last) if last.json == cut.json && last.to == cut.from => last.to = cut.to,
                _ => cuts.push(cut),
            }
            let pieces = Chunks(&history[span.clone()]);
            left += pieces.map(|piece| escaped_len(piece) as u64).sum::<u64>();
            from = at + self.mark.len() + digits + 1;
        }
        rest.extend_from_slice(&json[from..]);
        rest.shrink_to_fit();
        cuts.shrink_to_fit();
        Some(Written {
            left: left + rest.len() as u64,
            json: rest.into(),
            history: history.clone(),
            cuts,
            ..Written::default()
        })
    }
}

#[cfg(test)]
mod tests;
