//! Streams a thread as lines of JSON objects: first the whole thread, then the changed parts, interleaved with pieces
//! of growing answers. Writes of this process and of others look the same.
//!
//! | line | means |
//! |---|---|
//! | `{"parts": [{"id", "html"}], "words": {...}}` | parts of the page, new or changed, and the Markdown of their messages |
//! | `{"seat", "text"}` | a piece of an answer |
//! | `{"seat", "state"}` | what a member is doing: `thinking`, `uses TOOL` |
//! | `{"ended": seat}` | its answer is in the thread, or will not come |
//! | an empty line | keep-alive |

use crate::blocking::off;
use axum::body::{Body, Bytes};
use futures::stream;
use kd_app::host::{Followed, Host, Refusal};
use kd_core::Delta;
use kd_core::clean::clean_line;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Maximum silence of a stream.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Lines buffered for a slow reader. When they are full, [`Feed::run`] waits for the reader.
const LINES: usize = 256;
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
    .map_err(Refusal)??;
    let (lines, feed) = mpsc::channel(LINES);
    let mut work = Feed {
        host,
        id,
        sent: BTreeMap::new(),
        lines,
    };
    tokio::spawn(async move {
        if work.send(&first).await.is_some() {
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
    /// The parts the reader has, with their hashes.
    sent: BTreeMap<String, u64>,
    lines: mpsc::Sender<Bytes>,
}

impl Feed {
    /// Reports changes until the reader disconnects.
    async fn run(&mut self, mut told: mpsc::Receiver<Followed>) -> Option<()> {
        // When to read the thread again, and how long the last read took.
        let (mut due, mut took) = (None::<Instant>, Duration::ZERO);
        loop {
            let wait = due.map_or(SIGN_OF_LIFE, |due| {
                due.saturating_duration_since(Instant::now())
            });
            let followed = tokio::select! {
                followed = told.recv() => followed?,
                () = self.lines.closed() => return None,
                () = tokio::time::sleep(wait) => {
                    match due.take() {
                        None => self.line(&Value::Null).await?,
                        Some(_) => {
                            let began = Instant::now();
                            self.read().await?;
                            took = began.elapsed();
                        }
                    }
                    continue;
                }
            };
            match followed {
                Followed::Changed => {
                    due.get_or_insert_with(|| Instant::now() + (took * REST).max(REST_MIN));
                }
                Followed::Ended(seat) => self.line(&json!({ "ended": seat })).await?,
                Followed::Piece(seat, delta) => {
                    if let Some(line) = piece(seat.as_str(), &delta) {
                        self.line(&line).await?;
                    }
                }
            }
        }
    }

    /// Reads the thread again and reports what changed. Ends the stream if the thread is gone.
    async fn read(&mut self) -> Option<()> {
        let id = self.id.clone();
        let read = off(&self.host, move |host| host.page(&id)).await;
        let page = read.ok()?.ok()?;
        self.send(&page).await
    }

    async fn send(&mut self, page: &kd_page::Thread) -> Option<()> {
        let mut parts = Vec::new();
        for part in kd_page::parts(page) {
            let mut hasher = DefaultHasher::new();
            part.html.hash(&mut hasher);
            let hash = hasher.finish();
            if self.sent.insert(part.id.clone(), hash) != Some(hash) {
                parts.push(part);
            }
        }
        if parts.is_empty() {
            return Some(());
        }
        let words: Map<String, Value> = parts
            .iter_mut()
            .flat_map(|part| part.words.drain(..))
            .map(|(id, words)| (id, words.into()))
            .collect();
        let parts: Vec<Value> = parts
            .into_iter()
            .map(|part| json!({ "id": part.id, "html": part.html }))
            .collect();
        self.line(&json!({ "thread": page.id, "parts": parts, "words": words }))
            .await
    }

    async fn line(&self, line: &Value) -> Option<()> {
        let mut text = match line {
            Value::Null => String::new(),
            line => line.to_string(),
        };
        text.push('\n');
        self.lines.send(Bytes::from(text)).await.ok()
    }
}

/// Formats a piece of an answer as a line, if it is visible to readers.
#[deny(clippy::wildcard_enum_match_arm)]
fn piece(seat: &str, delta: &Delta) -> Option<Value> {
    Some(match delta {
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
