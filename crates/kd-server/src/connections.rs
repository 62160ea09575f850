//! Accepts HTTP connections: a limited number without an admitted request, each with a time limit for its headers.
//!
//! At the limit, the oldest connection without an admitted request is closed once it had time to send a head. A client
//! with a token gets in, however many connections others hold open. Admitted requests have [other
//! limits](crate::places).

use crate::places::Taken;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use axum::routing::future::RouteFuture;
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Pause after the system refused a connection because it is out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum bytes of a request head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum headers of a request; browsers send about 20.
const HEADERS_MAX: usize = 128;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum connections without an admitted request.
    pub(crate) idle: usize,
    /// How long such a connection is safe from newcomers: enough for a head that is on its way.
    pub(crate) grace: Duration,
    /// Time limit for the head of a request.
    pub(crate) head: Duration,
    /// Time limit for its body.
    pub(crate) body: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // More than clients that ask at once, whose heads a busy machine reads late.
            idle: 256,
            grace: Duration::from_millis(100),
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
        }
    }
}

/// Serves until `stop`, then until open requests are done.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: CancellationToken,
) {
    let open = Arc::new(Open::default());
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                open.make_room(limits).await;
                let place = open.enter();
                tasks.spawn(connection(
                    stream,
                    router.clone(),
                    limits,
                    place,
                    stop.clone(),
                ));
            }
            Err(e) if is_clients_fault(&e) => {}
            Err(_) => {
                open.close_oldest_idle(Duration::ZERO);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

async fn connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    place: Place,
    stop: CancellationToken,
) {
    let closed = place.closed.clone();
    let mark = place.mark.clone();
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), Marked { router, mark });
    tokio::pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => return,
        () = closed.cancelled() => return,
        () = stop.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

/// Passes the requests of one connection on, each with the mark of the connection. A layer of the router would copy all
/// its routes for each connection.
struct Marked {
    router: Router,
    mark: Mark,
}

impl hyper::service::Service<Request<Incoming>> for Marked {
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.mark.clone());
        // A router is always ready.
        tower_service::Service::call(&mut self.router.clone(), request)
    }
}

fn is_clients_fault(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        e.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// The open connections, oldest first.
#[derive(Default)]
struct Open {
    places: Mutex<(u64, BTreeMap<u64, Entry>)>,
}

struct Entry {
    since: Instant,
    mark: Mark,
    closed: CancellationToken,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Entry>)> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more connection without an admitted request may be open; closes old ones.
    async fn make_room(&self, limits: Limits) {
        while self.count_idle() >= limits.idle {
            if !self.close_oldest_idle(limits.grace) {
                tokio::time::sleep(limits.grace.min(PAUSE)).await;
            }
        }
    }

    fn count_idle(&self) -> usize {
        let places = self.lock();
        places.1.values().filter(|e| e.mark.is_idle()).count()
    }

    fn enter(self: &Arc<Self>) -> Place {
        let mut places = self.lock();
        places.0 += 1;
        let number = places.0;
        let mark = Mark::default();
        let closed = CancellationToken::new();
        places.1.insert(
            number,
            Entry {
                since: Instant::now(),
                mark: mark.clone(),
                closed: closed.clone(),
            },
        );
        drop(places);
        Place {
            open: self.clone(),
            number,
            mark,
            closed,
        }
    }

    /// Closes the oldest connection without an admitted request, if it is at least this old.
    fn close_oldest_idle(&self, age: Duration) -> bool {
        let mut places = self.lock();
        let idle = places.1.iter().find(|(_, entry)| entry.mark.is_idle());
        let idle = idle.filter(|(_, entry)| entry.since.elapsed() >= age);
        let Some(number) = idle.map(|(number, _)| *number) else {
            return false;
        };
        if let Some(entry) = places.1.remove(&number) {
            entry.closed.cancel();
        }
        true
    }
}

/// A connection's slot, freed when dropped.
struct Place {
    open: Arc<Open>,
    number: u64,
    mark: Mark,
    closed: CancellationToken,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.lock().1.remove(&self.number);
    }
}

/// Counts a connection's admitted requests: an extension of each request.
#[derive(Clone, Default)]
pub(crate) struct Mark(Arc<AtomicUsize>);

impl Mark {
    /// Keeps the connection open until this response is sent or dropped.
    pub(crate) fn hold(&self) -> Hold {
        self.0.fetch_add(1, Ordering::Relaxed);
        Hold {
            mark: self.clone(),
            taken: None,
        }
    }

    fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// One admitted request.
pub(crate) struct Hold {
    mark: Mark,
    taken: Option<Taken>,
}

impl Hold {
    /// Keeps these places too.
    pub(crate) fn with(self, taken: Taken) -> Self {
        let mut hold = self;
        hold.taken = Some(taken);
        hold
    }

    /// Ties the request to the body of its response.
    pub(crate) fn until_sent(self, response: Response) -> Response {
        response.map(|body| Body::new(Held { body, _hold: self }))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.mark.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response body, together with the request it answers.
struct Held {
    body: Body,
    _hold: Hold,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::Request;
    use axum::routing::get;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Long enough that no test waits for it.
    const NEVER: Duration = Duration::from_secs(3600);

    /// Starts a server that admits requests with a `token` and hangs on `/hang`.
    async fn server(limits: Limits) -> (SocketAddr, CancellationToken) {
        async fn answer(request: Request) -> Response {
            let mark = request
                .extensions()
                .get::<Mark>()
                .cloned()
                .unwrap_or_default();
            if !request.headers().contains_key("token") {
                return Response::new("no\n".into());
            }
            let hold = mark.hold();
            if request.uri().path() == "/hang" {
                let endless = futures::stream::pending::<io::Result<Bytes>>();
                return hold.until_sent(Response::new(Body::from_stream(endless)));
            }
            hold.until_sent(Response::new("yes\n".into()))
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let router = Router::new()
            .route("/", get(answer))
            .route("/hang", get(answer));
        tokio::spawn(serve(listener, router, limits, stop.clone()));
        (address, stop)
    }

    async fn send(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A rejected connection may be closed already.
        let _ = stream.write_all(text.as_bytes()).await;
        stream
    }

    /// Reads until the server closes the connection.
    async fn rest(mut stream: TcpStream) -> String {
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text).await;
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn a_head_that_does_not_come_is_not_waited_for() {
        let limits = Limits {
            head: Duration::from_millis(50),
            ..Limits::default()
        };
        let (address, _) = server(limits).await;
        for text in [
            "",
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n",
        ] {
            rest(send(address, text).await).await;
        }
    }

    #[tokio::test]
    async fn connections_that_say_nothing_keep_nobody_out() {
        let limits = Limits {
            idle: 4,
            grace: Duration::from_millis(5),
            head: NEVER,
            ..Limits::default()
        };
        let (address, _) = server(limits).await;
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(send(address, "GET / HTTP/1.1\r\nHost:").await);
            // Refused with a complete response, then silent.
            silent.push(send(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await);
        }
        let valid = "GET / HTTP/1.1\r\nHost: x\r\ntoken: t\r\nConnection: close\r\n\r\n";
        let answer = rest(send(address, valid).await).await;
        assert!(answer.ends_with("yes\n"), "{answer}");
        // The oldest was closed.
        rest(silent.remove(0)).await;
    }

    #[tokio::test]
    async fn a_head_on_its_way_is_waited_for_when_many_come_at_once() {
        let limits = Limits {
            idle: 4,
            grace: NEVER,
            ..Limits::default()
        };
        let (address, _) = server(limits).await;
        let valid = "GET / HTTP/1.1\r\nHost: x\r\ntoken: t\r\nConnection: close\r\n\r\n";
        let mut streams = Vec::new();
        for _ in 0..40 {
            streams.push(TcpStream::connect(address).await.unwrap());
        }
        for mut stream in streams {
            stream.write_all(valid.as_bytes()).await.unwrap();
            let answer = rest(stream).await;
            assert!(answer.ends_with("yes\n"), "{answer}");
        }
    }

    #[tokio::test]
    async fn connections_of_many_clients_are_kept_between_their_requests() {
        let limits = Limits {
            grace: Duration::ZERO,
            ..Limits::default()
        };
        let (address, _) = server(limits).await;
        let mut streams = Vec::new();
        for _ in 0..128 {
            streams.push(TcpStream::connect(address).await.unwrap());
        }
        for _ in 0..2 {
            for stream in &mut streams {
                let valid = "GET / HTTP/1.1\r\nHost: x\r\ntoken: t\r\n\r\n";
                stream.write_all(valid.as_bytes()).await.unwrap();
                let mut answer = Vec::new();
                while !answer.ends_with(b"yes\n") {
                    assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "closed");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_request_at_work_is_not_closed_for_newcomers() {
        let limits = Limits {
            idle: 2,
            grace: Duration::from_millis(5),
            head: NEVER,
            ..Limits::default()
        };
        let (address, stop) = server(limits).await;
        let hang = "GET /hang HTTP/1.1\r\nHost: x\r\ntoken: t\r\n\r\n";
        let mut busy = [send(address, hang).await, send(address, hang).await];
        for stream in &mut busy {
            // The head of the response: the request is admitted.
            stream.read_exact(&mut [0; 8]).await.unwrap();
        }
        let mut silent = Vec::new();
        for _ in 0..5 {
            silent.push(send(address, "GET").await);
        }
        assert_eq!(rest(silent.remove(0)).await, "");
        for stream in &mut busy {
            let mut rest = [0; 4096];
            while let Ok(n) = stream.try_read(&mut rest) {
                assert!(n > 0, "closed");
            }
        }
        stop.cancel();
    }
}
