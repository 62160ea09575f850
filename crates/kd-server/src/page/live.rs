//! Streams a thread as lines of JSON objects: first the whole thread, both ends before the middle, then the changed
//! parts, interleaved with pieces of growing answers. Writes of this process and of others look the same.
//!
//! | line | means |
//! |---|---|
//! | `{"thread", "parts": [{"id", "html"}], "words": {...}, "more"}` | parts of the page, new or changed, the Markdown of their messages, and whether further ones follow at once |
//! | `{"seat", "text"}` | a piece of an answer |
//! | `{"seat", "state"}` | what a member is doing: `answering`, `reviewing`, `thinking`, `uses TOOL` |
//! | `{"ended": seat}` | its answer is in the thread, or will not come |
//! | an empty line | keep-alive |
//!
//! Reviews, ballots and other forms that the program reads are not shown as text. The purpose of a turn is in the
//! records: pieces of a member's answer wait until the thread has been read after they arrived.

use crate::blocking::off;
use axum::body::{Body, Bytes};
use futures::stream;
use kd_app::host::{Followed, Host, Refusal};
use kd_core::clean::clean_line;
use kd_core::{Delta, SeatName};
use kd_page::{Asked, Batch, Reader, Thread};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Maximum silence of a stream.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Writes buffered for a slow reader. When they are full, [`Feed::run`] waits for the reader.
const LINES: usize = 256;
/// Minimum time between two writes of pieces, of a few members and of more: a browser paints all of them after each.
const PIECES_EVERY: Duration = Duration::from_millis(50);
const MANY_PIECES_EVERY: Duration = Duration::from_millis(100);
const FEW: usize = 4;
/// Wait this many times as long as a read of the thread took before reading it again.
const REST: u32 = 4;
const REST_MIN: Duration = Duration::from_millis(80);
/// Maximum characters of a state.
const STATE_CHARS: usize = 80;

/// Returns the response body that streams a thread.
///
/// # Errors
/// If the thread does not exist or cannot be read.
pub(super) async fn stream(host: Arc<dyn Host>, id: String) -> Result<Body, Refusal> {
    let (tell, told) = mpsc::channel(LINES);
    let named = id.clone();
    let (first, watch) = off(&host, move |host| {
        // Start watching first, so that changes during the read are reported afterwards.
        let watch = host.follow(&named, tell)?;
        Ok((host.page(&named)?, watch))
    })
    .await
    .map_err(|why| Refusal(why.to_string()))??;
    let (lines, feed) = mpsc::channel(LINES);
    let mut work = Feed {
        host,
        id,
        reader: Reader::default(),
        asked: BTreeMap::new(),
        pieces: Pieces::default(),
        held: Vec::new(),
        lines,
    };
    tokio::spawn(async move {
        if work.send(Some(first)).await.is_some() {
            work.run(told).await;
        }
        drop(watch);
    });
    let lines = stream::unfold(feed, |mut feed| async move {
        let line: Bytes = feed.recv().await?;
        Some((Ok::<_, Infallible>(line), feed))
    });
    Ok(Body::from_stream(lines))
}

struct Feed {
    host: Arc<dyn Host>,
    id: String,
    reader: Reader,
    /// The members that are being asked, as the thread was last read.
    asked: BTreeMap<SeatName, Asked>,
    pieces: Pieces,
    /// Pieces of members whose request is not known yet.
    held: Vec<(SeatName, Delta)>,
    lines: mpsc::Sender<Bytes>,
}

impl Feed {
    /// Reports changes until the reader disconnects.
    async fn run(&mut self, mut told: mpsc::Receiver<Followed>) -> Option<()> {
        // When to read the thread again, and how long the last read took.
        let (mut due, mut took) = (None::<Instant>, Duration::ZERO);
        loop {
            let next = [due, self.pieces.due()].into_iter().flatten().min();
            let wait = next.map_or(SIGN_OF_LIFE, |next| {
                next.saturating_duration_since(Instant::now())
            });
            tokio::select! {
                followed = told.recv() => match followed? {
                    Followed::Changed => {
                        due.get_or_insert_with(|| Instant::now() + (took * REST).max(REST_MIN));
                    }
                    Followed::Ended(seat) => {
                        self.asked.remove(&seat);
                        self.held.retain(|(of, _)| *of != seat);
                        let last = self.pieces.take();
                        self.pieces.forget(&seat);
                        self.write(last).await?;
                        self.line(&json!({ "ended": seat })).await?;
                    }
                    Followed::Piece(seat, delta) => match self.asked.get(&seat) {
                        Some(asked) => self.pieces.add(seat, &delta, asked),
                        None => {
                            self.held.push((seat, delta));
                            due.get_or_insert_with(|| Instant::now() + REST_MIN.max(took));
                        }
                    },
                },
                () = self.lines.closed() => return None,
                () = tokio::time::sleep(wait) => {
                    let is_over = |at: Option<Instant>| at.is_some_and(|at| at <= Instant::now());
                    if next.is_none() {
                        self.line(&Value::Null).await?;
                    }
                    if is_over(self.pieces.due()) {
                        let pieces = self.pieces.take();
                        self.write(pieces).await?;
                    }
                    if is_over(due) {
                        due = None;
                        let began = Instant::now();
                        self.send(None).await?;
                        took = began.elapsed();
                    }
                }
            }
        }
    }

    /// Reports the changes in the thread; reads it if `page` is `None`. Ends the stream if the thread is gone.
    async fn send(&mut self, page: Option<Thread>) -> Option<()> {
        let (id, lines) = (self.id.clone(), self.lines.clone());
        let mut reader = std::mem::take(&mut self.reader);
        let work = off(&self.host, move |host| {
            let page = page.map_or_else(|| host.page(&id), Ok).ok()?;
            let is_open = reader.update(&page, |batch| {
                let line = format!("{}\n", shown(&page.id.0, batch));
                lines.blocking_send(line.into()).is_ok()
            });
            is_open.then_some((reader, page.asked))
        });
        let (reader, asked) = work.await.ok()??;
        self.reader = reader;
        self.ask(asked).await
    }

    /// Notes who is being asked, reports what changed, and passes on the pieces that waited for it.
    async fn ask(&mut self, asked: Vec<Asked>) -> Option<()> {
        let named = |one: Asked| Some((SeatName::sender(&one.seat).ok()?, one));
        let asked: BTreeMap<SeatName, Asked> = asked.into_iter().filter_map(named).collect();
        let before = std::mem::replace(&mut self.asked, asked);
        for seat in before.keys().filter(|seat| !self.asked.contains_key(*seat)) {
            self.pieces.forget(seat);
            self.line(&json!({ "ended": seat })).await?;
        }
        for (seat, asked) in self
            .asked
            .iter()
            .filter(|(seat, asked)| before.get(*seat) != Some(*asked))
        {
            let doing = kd_page::doing(asked.purpose);
            self.line(&json!({ "seat": seat, "state": doing })).await?;
        }
        for (seat, delta) in std::mem::take(&mut self.held) {
            // Without an entry its turn is over: the thread has what it said.
            if let Some(asked) = self.asked.get(&seat) {
                self.pieces.add(seat, &delta, asked);
            }
        }
        Some(())
    }

    async fn write(&self, text: String) -> Option<()> {
        match text.is_empty() {
            true => Some(()),
            false => self.lines.send(Bytes::from(text)).await.ok(),
        }
    }

    async fn line(&self, line: &Value) -> Option<()> {
        let mut text = match line {
            Value::Null => String::new(),
            line => line.to_string(),
        };
        text.push('\n');
        self.write(text).await
    }
}

/// Formats parts of the page as a line.
fn shown(thread: &str, batch: Batch) -> Value {
    let (mut parts, mut words) = (Vec::new(), Map::new());
    for part in batch.parts {
        parts.push(json!({ "id": part.id, "html": part.html }));
        words.extend(part.words.into_iter().map(|(id, words)| (id, words.into())));
    }
    json!({ "thread": thread, "parts": parts, "words": words, "more": batch.more })
}

/// Pieces of growing answers that are not written yet: a member's text in between is one.
#[derive(Default)]
struct Pieces {
    waiting: Vec<(SeatName, Value)>,
    /// The last state of each member that fills in a form.
    states: BTreeMap<SeatName, Value>,
    /// When they may be written.
    due: Option<Instant>,
    /// The earliest time for the next ones.
    rested: Option<Instant>,
}

impl Pieces {
    fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Forgets a member whose turn has ended.
    fn forget(&mut self, seat: &SeatName) {
        self.states.remove(seat);
    }

    fn add(&mut self, seat: SeatName, delta: &Delta, asked: &Asked) {
        let Some(line) = piece(seat.as_str(), delta, asked) else {
            return;
        };
        // The text of a form comes in many pieces, which say the same to readers.
        if asked.is_form && self.states.insert(seat.clone(), line.clone()).as_ref() == Some(&line) {
            return;
        }
        self.due.get_or_insert_with(|| {
            // The first piece after a pause does not wait.
            let now = Instant::now();
            self.rested.map_or(now, |at| now.max(at))
        });
        let own = self.waiting.iter_mut().rev().find(|(of, _)| *of == seat);
        match (own, delta) {
            (Some((_, last)), Delta::Text { text })
                if last["text"].is_string() && !asked.is_form =>
            {
                if let Some(Value::String(known)) = last.get_mut("text") {
                    known.push_str(text);
                }
            }
            (Some((_, last)), _) if *last == line => {}
            _ => self.waiting.push((seat, line)),
        }
    }

    /// Takes them, as lines.
    fn take(&mut self) -> String {
        if self.due.take().is_some() {
            let seats: BTreeSet<&SeatName> = self.waiting.iter().map(|(seat, _)| seat).collect();
            let pause = match seats.len() > FEW {
                true => MANY_PIECES_EVERY,
                false => PIECES_EVERY,
            };
            self.rested = Some(Instant::now() + pause);
        }
        let lines = self.waiting.drain(..);
        lines.map(|(_, line)| format!("{line}\n")).collect()
    }
}

/// Formats a piece of an answer as a line, if it is visible to readers.
#[deny(clippy::wildcard_enum_match_arm)]
fn piece(seat: &str, delta: &Delta, asked: &Asked) -> Option<Value> {
    let doing = kd_page::doing(asked.purpose);
    Some(match delta {
        Delta::Text { .. } if asked.is_form => json!({ "seat": seat, "state": doing }),
        Delta::Text { text } => json!({ "seat": seat, "text": text }),
        Delta::Thinking { .. } => json!({ "seat": seat, "state": "thinking" }),
        Delta::Tool { name, .. } => {
            json!({ "seat": seat, "state": clean_line(&format!("uses {name}"), STATE_CHARS) })
        }
        // The text so far is void: the answer starts again.
        Delta::Retrying { .. } => json!({ "seat": seat, "again": true }),
        // The page shows the message as it is on disk once it has ended.
        Delta::Started { .. }
        | Delta::Notice { .. }
        | Delta::Call { .. }
        | Delta::Finished { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::event::Purpose;

    fn seat(name: &str) -> SeatName {
        SeatName::new(name).unwrap()
    }

    fn text(text: &str) -> Delta {
        Delta::Text { text: text.into() }
    }

    fn answer() -> Asked {
        asked(Purpose::Answer, false)
    }

    fn asked(purpose: Purpose, is_form: bool) -> Asked {
        Asked {
            seat: "ann".into(),
            purpose,
            is_form,
        }
    }

    #[test]
    fn a_form_is_a_state_once_and_never_text() {
        let mut pieces = Pieces::default();
        let vote = asked(Purpose::Vote, true);
        let thinking = Delta::Thinking { text: "?".into() };
        for piece in [text("{\"choice\":"), text("\"A\"}"), thinking, text("{}")] {
            pieces.add(seat("ann"), &piece, &vote);
        }
        let lines = pieces.take();
        let states: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let state = |word: &str| json!({"seat": "ann", "state": word});
        assert_eq!(
            states,
            [state("voting"), state("thinking"), state("voting")]
        );
        // Other pieces of the same form add nothing, whenever they come.
        pieces.add(seat("ann"), &text("}"), &vote);
        assert_eq!(pieces.take(), "");
        pieces.forget(&seat("ann"));
        pieces.add(seat("ann"), &text("{"), &vote);
        assert!(pieces.take().contains("voting"));
    }

    #[test]
    fn text_of_a_member_is_joined_and_stays_in_order_with_its_other_pieces() {
        let mut pieces = Pieces::default();
        pieces.add(seat("ann"), &text("a"), &answer());
        pieces.add(seat("bob"), &text("x"), &answer());
        pieces.add(seat("ann"), &text("b\n"), &answer());
        pieces.add(
            seat("ann"),
            &Delta::Thinking { text: "?".into() },
            &answer(),
        );
        pieces.add(
            seat("ann"),
            &Delta::Thinking { text: "!".into() },
            &answer(),
        );
        pieces.add(seat("ann"), &text("c"), &answer());
        pieces.add(seat("bob"), &text("y"), &answer());
        let lines = pieces.take();
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            lines,
            [
                json!({"seat": "ann", "text": "ab\n"}),
                json!({"seat": "bob", "text": "xy"}),
                json!({"seat": "ann", "state": "thinking"}),
                json!({"seat": "ann", "text": "c"}),
            ]
        );
        assert_eq!(pieces.take(), "");
    }

    #[test]
    fn the_first_piece_does_not_wait_and_the_next_ones_do() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.due(), None);
        pieces.add(seat("ann"), &text("a"), &answer());
        assert!(pieces.due().unwrap() <= Instant::now());
        let before = Instant::now();
        pieces.take();
        assert_eq!(pieces.due(), None);
        pieces.add(seat("ann"), &text("b"), &answer());
        assert!(pieces.due().unwrap() >= before + PIECES_EVERY);
        // Restarts of an answer are pieces, too.
        pieces.add(
            seat("ann"),
            &Delta::Started {
                model: None,
                version: None,
                session: None,
            },
            &answer(),
        );
        assert_eq!(pieces.take(), "{\"seat\":\"ann\",\"text\":\"b\"}\n");
        // Of many members, they are written less often.
        for name in ["a", "b", "c", "d", "e"] {
            pieces.add(seat(name), &text("x"), &answer());
        }
        let before = Instant::now();
        pieces.take();
        pieces.add(seat("a"), &text("y"), &answer());
        assert!(pieces.due().unwrap() >= before + MANY_PIECES_EVERY);
    }
}
