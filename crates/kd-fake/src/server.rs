//! The server: accepts connections, reads requests, plays the script, counts connections and their ends.

use crate::reply::{Reply, Script, Step};
use crate::wire::Wire;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Maximum size of a request's head or body in bytes.
const REQUEST_MAX: usize = 64 << 20;

/// A received request.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `POST`, `GET` …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// `HTTP/1.1`, or `HTTP/1.0`, whose connection ends with the response.
    pub version: String,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
}

impl Seen {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Returns the body as JSON; `null` if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// A server that runs until this value is dropped.
pub struct Fake {
    addr: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

/// The numbers of connections that were opened and that have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    opened: usize,
    closed: usize,
}

/// Chooses the reply to a request, given the request and the number of earlier ones.
type Choose = dyn Fn(&Seen, usize) -> Option<(Wire, Reply)> + Send + Sync;

struct State {
    choose: Box<Choose>,
    seen: Mutex<Vec<Seen>>,
    counts: watch::Sender<Counts>,
}

impl Fake {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_at(script, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Listens on this address.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn start_at(script: Script, addr: SocketAddr) -> io::Result<Self> {
        let Script { wire, replies } = script;
        Self::choosing(addr, move |_, number| {
            let reply = replies.get(number).or(replies.last())?;
            Some((wire, reply.clone()))
        })
        .await
    }

    /// Listens on this address and replies as the function says; with `500` where it returns `None`.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn choosing(
        addr: SocketAddr,
        choose: impl Fn(&Seen, usize) -> Option<(Wire, Reply)> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let state = Arc::new(State {
            choose: Box::new(choose),
            seen: Mutex::default(),
            counts: watch::Sender::new(Counts::default()),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self {
            addr,
            state,
            accepting,
        })
    }

    /// Returns `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Returns the requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.state.seen).clone()
    }

    /// Returns the number of connections that were opened so far.
    pub fn opened(&self) -> usize {
        self.state.counts.borrow().opened
    }

    /// Returns the number of connections that have ended so far.
    pub fn closed(&self) -> usize {
        self.state.counts.borrow().closed
    }

    /// Waits until `count` connections have ended.
    pub async fn until_closed(&self, count: usize) {
        let mut counts = self.state.counts.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = counts.wait_for(|c| c.closed >= count).await;
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((socket, _)) = listener.accept().await {
        state.counts.send_modify(|c| c.opened += 1);
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            // Many scripts break the connection; the error does not matter.
            let _ = serve(socket, &state).await;
            state.counts.send_modify(|c| c.closed += 1);
        });
    }
}

/// Serves one connection, request after request, until a side closes it.
async fn serve(mut socket: TcpStream, state: &State) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut socket, &mut buffer).await? {
        let once = seen.version == "HTTP/1.0";
        let number = {
            let mut all = lock(&state.seen);
            all.push(seen.clone());
            all.len() - 1
        };
        let chosen = (state.choose)(&seen, number);
        let Some((wire, reply)) = chosen else {
            write_status(&mut socket, 500, &[], "no script").await?;
            continue;
        };
        if !answer(&mut socket, wire, &reply).await? || once {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads one request; `None` if the client closed the connection between two.
async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Seen>> {
    let head_len = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if buffer.len() > REQUEST_MAX || socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&buffer[..head_len]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let method = first.next().unwrap_or_default().to_owned();
    let path = first.next().unwrap_or_default().to_owned();
    let version = first.next().unwrap_or_default().trim().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(':'))
        .map(|(n, v)| (n.trim().to_ascii_lowercase(), v.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(n, _)| n == "content-length")
        .and_then(|(_, v)| v.parse::<usize>().ok())
        .unwrap_or(0)
        .min(REQUEST_MAX);
    while buffer.len() < head_len + length {
        if socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
    let body = String::from_utf8_lossy(&buffer[head_len..head_len + length]).into_owned();
    buffer.drain(..head_len + length);
    Ok(Some(Seen {
        method,
        path,
        version,
        headers,
        body,
    }))
}

/// Plays one reply; returns false if the connection must not be reused.
async fn answer(socket: &mut TcpStream, wire: Wire, reply: &Reply) -> io::Result<bool> {
    match reply {
        Reply::Status {
            code,
            headers,
            body,
        } => {
            let body = body
                .clone()
                .unwrap_or_else(|| wire.error_body(*code, "the fake server says no"));
            write_status(socket, *code, headers, &body).await?;
            Ok(true)
        }
        Reply::Body { mime, body } => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {mime}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            socket.write_all(head.as_bytes()).await?;
            socket.write_all(body).await?;
            Ok(true)
        }
        Reply::Silence => {
            until_gone(socket).await;
            Ok(false)
        }
        Reply::Hangup => Ok(false),
        Reply::Stream(steps) => stream(socket, wire, steps).await,
    }
}

async fn write_status(
    socket: &mut TcpStream,
    code: u16,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {code} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.push_str(body);
    socket.write_all(head.as_bytes()).await
}

async fn stream(socket: &mut TcpStream, wire: Wire, steps: &[Step]) -> io::Result<bool> {
    let came = tokio::time::Instant::now();
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    // A script that starts with raw bytes sends its own opening.
    if !matches!(steps.first(), Some(Step::Raw(_) | Step::Framed(_))) {
        chunk(socket, wire.opening().as_bytes()).await?;
    }
    let mut said = String::new();
    for step in steps {
        match step {
            Step::Text(text) => {
                said.push_str(text);
                chunk(socket, wire.text(text).as_bytes()).await?;
            }
            Step::Tool(name, input) => chunk(socket, wire.tool(name, input).as_bytes()).await?,
            Step::Calls(calls) => chunk(socket, wire.calls(calls).as_bytes()).await?,
            Step::Thinking(text) => chunk(socket, wire.thinking(text).as_bytes()).await?,
            Step::Raw(bytes) => chunk(socket, bytes).await?,
            Step::Framed(bytes) => socket.write_all(bytes).await?,
            Step::Pause(time) => tokio::time::sleep(*time).await,
            Step::Until(time) => tokio::time::sleep_until(came + *time).await,
            Step::End => chunk(socket, wire.ending(false, &said).as_bytes()).await?,
            Step::EndAtLength => chunk(socket, wire.ending(true, &said).as_bytes()).await?,
            Step::Overloaded => chunk(socket, wire.overloaded().as_bytes()).await?,
            Step::Refuse => chunk(socket, wire.refusal().as_bytes()).await?,
            Step::Cut => return Ok(false),
            Step::Stall => {
                until_gone(socket).await;
                return Ok(false);
            }
        }
    }
    socket.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

/// Sends a chunk of the chunked transfer coding, in a single write if it is small.
async fn chunk(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    if bytes.len() < 1 << 16 {
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        return socket.write_all(&framed).await;
    }
    socket.write_all(&framed).await?;
    socket.write_all(bytes).await?;
    socket.write_all(b"\r\n").await
}

/// Waits until the client has closed its side.
async fn until_gone(socket: &mut TcpStream) {
    let mut rest = [0_u8; 1024];
    while socket.read(&mut rest).await.is_ok_and(|n| n > 0) {}
}
