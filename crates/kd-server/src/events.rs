//! The events of a thread, live, for any program: the lines of its log, in the order in which all processes wrote them.
//! A reader that comes back continues after the last one it has.

use crate::blocking::off;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream;
use kd_app::host::{Followed, Following, Host};
use kd_core::Record;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Where the events of a thread are.
const PATH: &str = "/threads/{id}/events";
/// The header in which a browser names the last event that it has.
const LAST: &str = "last-event-id";
/// Maximum silence of a stream.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Changes buffered: more of them are one.
const CHANGES: usize = 64;

/// The route.
pub(crate) fn router(host: Arc<dyn Host>) -> Router {
    Router::new().route(PATH, get(events)).with_state(host)
}

/// Reads the id of the last event that the reader has.
fn after(uri: &Uri) -> Result<Option<u64>, std::num::ParseIntError> {
    let mut fields = uri.query().unwrap_or_default().split('&');
    let value = fields.find_map(|field| field.strip_prefix("after="));
    value.map(str::parse).transpose()
}

async fn events(
    State(host): State<Arc<dyn Host>>,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let after = match after(&uri) {
        Ok(after) => after,
        Err(_) => {
            let why = "`after` is the id of an event\n";
            return (StatusCode::BAD_REQUEST, why).into_response();
        }
    };
    let last = headers
        .get(LAST)
        .and_then(|id| id.to_str().ok()?.parse().ok());
    let at = last.or(after).unwrap_or(0);
    let (tell, told) = mpsc::channel(CHANGES);
    let named = id.clone();
    let follow = move |host: &dyn Host| {
        // Watching begins first, so that nothing is missed.
        let watch = host.follow(&named, tell)?;
        Ok((host.events(&named, at)?, watch))
    };
    let (first, watch) = match off(&host, follow).await {
        Ok(Ok((Some(first), watch))) => (first, watch),
        Ok(Ok((None, _))) => {
            let why =
                "the thread has no event with this id: it was rewritten; begin without `after`\n";
            return (StatusCode::GONE, why).into_response();
        }
        Ok(Err(refusal)) => {
            let refusal: kd_app::host::Refusal = refusal;
            return (StatusCode::NOT_FOUND, refusal.0 + "\n").into_response();
        }
        Err(why) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, why.to_string()).into_response();
        }
    };
    let feed = Feed {
        host,
        id,
        at,
        ready: first.into(),
        told,
        _watch: watch,
    };
    let body = stream::unfold(feed, |mut feed| async move {
        let text = feed.next().await?;
        Some((Ok::<_, Infallible>(text), feed))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(body)).into_response()
}

struct Feed {
    host: Arc<dyn Host>,
    id: String,
    /// The place after the last event that was read.
    at: u64,
    ready: VecDeque<(u64, Record)>,
    told: mpsc::Receiver<Followed>,
    _watch: Box<dyn Following>,
}

impl Feed {
    /// Returns the next events as text; `None` if the thread is gone or was rewritten.
    async fn next(&mut self) -> Option<String> {
        loop {
            if !self.ready.is_empty() {
                let mut text = String::new();
                for (end, record) in self.ready.drain(..) {
                    let record = serde_json::to_string(&record).ok()?;
                    let _ = write!(text, "id: {end}\ndata: {record}\n\n");
                    self.at = end;
                }
                // There may be more than one read returns.
                self.read().await?;
                return Some(text);
            }
            match tokio::time::timeout(SIGN_OF_LIFE, self.told.recv()).await {
                Err(_) => return Some(": the thread is quiet\n\n".to_owned()),
                Ok(None) => return None,
                Ok(Some(Followed::Changed | Followed::Ended(_))) => self.read().await?,
                // Pieces of answers are not events of the log.
                Ok(Some(Followed::Piece(..))) => {}
            }
        }
    }

    async fn read(&mut self) -> Option<()> {
        let (id, at) = (self.id.clone(), self.at);
        let read = off(&self.host, move |host| host.events(&id, at)).await;
        self.ready.extend(read.ok()?.ok()??);
        Some(())
    }
}
