//! The baseline: the same calls over raw sockets and nothing else. No files, prompts, events or retries.
//!
//! Takes an address; returns the answers' text, joined in memory. Uses HTTP/1.1 keep-alive, decodes chunks, and reads
//! each event as typed JSON that borrows.

use serde::Deserialize;
use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Idle connections, kept for the next call.
#[derive(Clone)]
pub(crate) struct Floor {
    address: String,
    request: Rc<str>,
    idle: Rc<RefCell<Vec<TcpStream>>>,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Piece<'a>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

/// An answer and when its text began.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) text: String,
    /// From the request to the first piece of text.
    pub(crate) first: Option<Duration>,
}

impl Floor {
    pub(crate) fn new(url: &str) -> Self {
        Self::asking(url, "fake-1", "")
    }

    /// Asks a model of a server. `headers` are further lines, each with its end.
    pub(crate) fn asking(url: &str, model: &str, headers: &str) -> Self {
        let address = url.trim_start_matches("http://").to_owned();
        let body = format!(
            r#"{{"model":"{model}","messages":[{{"role":"user","content":"Which way?"}}],"stream":true}}"#
        );
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             {headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        Self {
            address,
            request: request.into(),
            idle: Rc::default(),
        }
    }

    /// Asks one question with `calls` concurrent calls. Returns the total length of all answers.
    pub(crate) async fn question(&self, calls: usize) -> io::Result<usize> {
        let answers = (0..calls).map(|_| self.call());
        let answers = futures::future::try_join_all(answers).await?;
        Ok(answers.iter().map(|heard| heard.text.len()).sum())
    }

    /// Makes one call, on a connection that is kept. A connection that the server has closed is replaced, as HTTP
    /// clients do.
    pub(crate) async fn call(&self) -> io::Result<Heard> {
        let began = Instant::now();
        loop {
            let kept = self.idle.borrow_mut().pop();
            let socket = match kept {
                Some(socket) => socket,
                None => TcpStream::connect(&self.address).await?,
            };
            socket.set_nodelay(true)?;
            match self.call_on(socket, began).await {
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
                heard => return heard,
            }
        }
    }

    async fn call_on(&self, mut socket: TcpStream, began: Instant) -> io::Result<Heard> {
        let mut first = None;
        socket.write_all(self.request.as_bytes()).await?;
        let (mut bytes, mut answer) = (Vec::with_capacity(16 << 10), String::new());
        let mut at = loop {
            more(&mut socket, &mut bytes).await?;
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break end + 4;
            }
        };
        // `at` is the offset of the next chunk's length.
        loop {
            let Some(end) = find(&bytes[at..], b"\r\n") else {
                at = shift(&mut bytes, at);
                more(&mut socket, &mut bytes).await?;
                continue;
            };
            let length = std::str::from_utf8(&bytes[at..at + end])
                .ok()
                .and_then(|hex| usize::from_str_radix(hex, 16).ok())
                .ok_or(io::ErrorKind::InvalidData)?;
            let start = at + end + 2;
            while bytes.len() < start + length + 2 {
                more(&mut socket, &mut bytes).await?;
            }
            if length == 0 {
                break;
            }
            hear(&bytes[start..start + length], &mut answer)?;
            if first.is_none() && !answer.is_empty() {
                first = Some(began.elapsed());
            }
            at = start + length + 2;
        }
        self.idle.borrow_mut().push(socket);
        Ok(Heard {
            text: answer,
            first,
        })
    }
}

async fn more(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.reserve(4 << 10);
    match socket.read_buf(bytes).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn shift(bytes: &mut Vec<u8>, at: usize) -> usize {
    bytes.drain(..at);
    0
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|w| w == what)
}

/// Reads complete events: the server sends each as its own chunk.
fn hear(events: &[u8], answer: &mut String) -> io::Result<()> {
    for line in events.split(|b| *b == b'\n') {
        let Some(data) = line.strip_prefix(b"data: ") else {
            continue;
        };
        if data == b"[DONE]" {
            continue;
        }
        let chunk: Chunk<'_> = serde_json::from_slice(data)?;
        for choice in chunk.choices {
            answer.push_str(&choice.delta.content.unwrap_or_default());
        }
    }
    Ok(())
}
