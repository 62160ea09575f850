//! An MCP server at an address: streamable HTTP. Redirects are not followed; remote servers need TLS.

use super::{
    ANSWER_BYTES_MAX, CALL_LIMIT, PROTOCOL, Peer, answers, cleaned, greeted, greeting, request,
    without,
};
use crate::keys::Key;
use crate::transport::client::{self, Certificates, is_loopback};
use kd_core::clean::clean_text;
use kd_core::{Failure, FailureKind};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use std::time::Duration;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// A server at an address. The first request opens its session.
pub(crate) struct Http {
    pub(crate) peer: Peer,
    pub(crate) url: String,
    pub(crate) key: Option<Key>,
    client: Client,
    session: Option<String>,
    is_greeted: bool,
    calls: u64,
    pub(crate) limit: Duration,
}

impl Http {
    /// Creates a client that uses this key. Sends nothing yet.
    pub(crate) fn new(peer: Peer, url: &str, key: Option<Key>) -> Result<Self, Failure> {
        let safe = url.starts_with("https://") || (is_loopback(url) && url.starts_with("http://"));
        if !safe {
            let said = match url {
                "" => format!("{} has no address", peer.what),
                url => format!("`{}` is not an https address", clean_text(url)),
            };
            return Err(Failure::new(FailureKind::Invalid, said).advise(format!(
                "set `{}.url` to https://HOST/mcp; plain http works only on this machine, for example behind `ssh -L`",
                peer.setting
            )));
        }
        // A redirect would send the token elsewhere.
        let stay = |builder: ClientBuilder| builder.redirect(reqwest::redirect::Policy::none());
        let client = client::create(url, Certificates::System, stay)
            .map_err(|why| Failure::new(FailureKind::Crashed, why.to_string()))?;
        Ok(Self {
            peer,
            url: url.to_owned(),
            key,
            client,
            session: None,
            is_greeted: false,
            calls: 0,
            limit: CALL_LIMIT,
        })
    }

    /// Sends a request and returns its result.
    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let limit = self.limit;
        match tokio::time::timeout(limit, self.in_session(method, params)).await {
            Ok(result) => result,
            Err(_) => Err(self.peer.too_late(limit)),
        }
    }

    async fn in_session(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let known = self.is_greeted;
        if !known {
            self.greet().await?;
        }
        let mut result = self.ask(method, params).await?;
        if result.is_none() && known {
            // The session has expired: open a new one, once.
            self.greet().await?;
            result = self.ask(method, params).await?;
        }
        let over = || {
            let what = "ends each session at once";
            self.peer.failure(FailureKind::Refused, what)
        };
        result.ok_or_else(over)
    }

    /// Opens a session.
    async fn greet(&mut self) -> Result<(), Failure> {
        (self.session, self.is_greeted) = (None, false);
        if self.ask("initialize", &greeting()).await?.is_none() {
            let what = "has no MCP server at this address";
            return Err(self.peer.failure(FailureKind::Missing, what));
        }
        self.send(&greeted()).await?;
        self.is_greeted = true;
        Ok(())
    }

    /// Sends one request and returns its result; `None` means that the session has expired.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Option<Value>, Failure> {
        self.calls += 1;
        let id = self.calls;
        let response = self.send(&request(id, method, params)).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if let Some(session) = response.headers().get(SESSION) {
            // It is sent back as a header, which allows only printable characters.
            self.session = session
                .to_str()
                .ok()
                .filter(|s| s.len() <= 256)
                .map(str::to_owned);
        }
        let message = self.read(response, id).await?;
        let key = self.key.as_ref().map(Key::expose).unwrap_or_default();
        self.peer.result(without(cleaned(message), key)).map(Some)
    }

    async fn send(&self, message: &Value) -> Result<Response, Failure> {
        let mut request: RequestBuilder = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        if let Some(session) = &self.session {
            request = request
                .header(SESSION, session)
                .header("mcp-protocol-version", PROTOCOL);
        }
        let sent = request.body(message.to_string()).send().await;
        let response = sent.map_err(|error| {
            // The library's error may contain the address twice; its cause is more useful.
            let why = std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), ToString::to_string);
            let what = format!("cannot be reached: {}", clean_text(&why));
            self.peer.failure(FailureKind::Overloaded, &what)
        })?;
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_FOUND {
            return Ok(response);
        }
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self
                .peer
                .failure(
                    FailureKind::Auth,
                    &format!("does not accept the token ({status})"),
                )
                .advise(self.peer.on_auth.clone()),
            status if status.is_redirection() => self
                .peer
                .failure(
                    FailureKind::Refused,
                    "redirects; kd sends the token nowhere else",
                )
                .advise("ask its owner for the right address"),
            status => self
                .peer
                .failure(FailureKind::Refused, &format!("answers {status}")),
        })
    }

    /// Returns the message with this id, from a JSON body or an event stream.
    async fn read(&self, mut response: Response, id: u64) -> Result<Value, Failure> {
        let of_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok());
        let streams = of_type.is_some_and(|of_type| of_type.starts_with("text/event-stream"));
        let mut body: Vec<u8> = Vec::new();
        let mut at = 0;
        loop {
            let chunk = response.chunk().await.map_err(|error| {
                let what = format!("broke off: {}", clean_text(&error.to_string()));
                self.peer.failure(FailureKind::Overloaded, &what)
            })?;
            let Some(chunk) = chunk else { break };
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(self.peer.too_long());
            }
            // The bytes before contain no line ending.
            let mut look = body.len();
            body.extend_from_slice(&chunk);
            while streams && let Some(end) = memchr::memchr(b'\n', &body[look..]) {
                let line = &body[at..look + end];
                look += end + 1;
                at = look;
                if let Some(message) = event(line).filter(|message| answers(message, id)) {
                    return Ok(message);
                }
            }
        }
        let message: Option<Value> = match streams {
            true => event(&body[at..]),
            false => serde_json::from_slice(&body).ok(),
        };
        message
            .filter(|message| answers(message, id))
            .ok_or_else(|| self.peer.not_mcp())
    }
}

/// Parses the message on a line of an event stream. MCP servers send each on one line.
fn event(line: &[u8]) -> Option<Value> {
    let data = std::str::from_utf8(line).ok()?.strip_prefix("data:")?;
    serde_json::from_str(data.trim()).ok()
}
