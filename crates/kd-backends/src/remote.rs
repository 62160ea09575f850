//! A forum on another machine: its MCP server, called over streamable HTTP with a named token.
//!
//! Input: a tool of [`kd_core::forum::tools`] and its arguments. Output: the answer as JSON. Whatever the other side sends
//! is data: its size and time are bounded, control characters are removed, redirects are not followed, and its lists of
//! tools and schemas are never asked for. Beyond this machine only TLS is spoken.

use crate::Env;
use crate::keys::{Key, KeySource};
use crate::providers::is_loopback;
use kd_core::clean::clean_text;
use kd_core::config::RemoteConfig;
use kd_core::{Failure, FailureKind};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Maximum bytes of one answer.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of a key.
const KEY_BYTES_MAX: u64 = 8192;
/// Maximum time for one call, however slowly the answer comes.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// Maximum time to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The version of the protocol that is spoken.
const PROTOCOL: &str = "2025-06-18";
/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// Maximum characters of what the other side says about an error.
const ERROR_CHARS: usize = 300;

/// A forum on another machine.
pub struct RemoteForum {
    name: String,
    url: String,
    key: Key,
    client: Client,
    session: Option<String>,
    calls: u64,
    limit: Duration,
}

impl std::fmt::Debug for RemoteForum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteForum")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl RemoteForum {
    /// A forum as configured, with its key. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is missing or not safe, or there is no key.
    pub async fn open(name: &str, config: &RemoteConfig, env: &Env) -> Result<Self, Failure> {
        let url = config.url.clone().unwrap_or_default();
        let mut sources = Vec::new();
        sources.extend(
            config
                .key_env
                .clone()
                .map(|name| KeySource::Env(vec![name])),
        );
        sources.extend(
            config
                .key_file
                .as_deref()
                .map(|at| KeySource::File(env.expand(at))),
        );
        if !config.key_command.is_empty() {
            sources.push(KeySource::Command(config.key_command.clone()));
        }
        for source in sources {
            if let Some(key) = source.key(env).await? {
                return Self::with_key(name, &url, key);
            }
        }
        let said = format!("there is no token for the forum `{name}`");
        Err(Failure::new(FailureKind::Auth, said).advise(format!(
            "set `forum.remotes.{name}.key_env`, `key_file` or `key_command` in your own configuration"
        )))
    }

    /// A forum at this address, with the key that a socket gives: that of a process which holds it.
    ///
    /// # Errors
    /// The address is not safe, or there is no key.
    pub fn with_key_socket(name: &str, url: &str, socket: &Path) -> Result<Self, Failure> {
        let read = || -> io::Result<String> {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(CONNECT_LIMIT))?;
            let mut text = String::new();
            stream.take(KEY_BYTES_MAX).read_to_string(&mut text)?;
            Ok(text)
        };
        let failed = |why: String| {
            Failure::new(FailureKind::Auth, format!("the token cannot be had: {why}"))
                .advise("the visit that this serves is over: end it")
        };
        let text = read().map_err(|why| failed(why.to_string()))?;
        let key = Key::new(&text).ok_or_else(|| failed("it is empty".into()))?;
        Self::with_key(name, url, key)
    }

    fn with_key(name: &str, url: &str, key: Key) -> Result<Self, Failure> {
        let near = is_loopback(url);
        let safe = url.starts_with("https://") || (near && url.starts_with("http://"));
        if !safe {
            let said = match url {
                "" => format!("the forum `{name}` has no address"),
                url => format!("`{}` is not an https address", clean_text(url)),
            };
            return Err(Failure::new(FailureKind::Invalid, said).advise(format!(
                "set `forum.remotes.{name}.url` to https://HOST/mcp; plain http is for this machine alone, for example behind `ssh -L`"
            )));
        }
        let mut builder = Client::builder()
            .user_agent(concat!("kd/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_LIMIT)
            // A redirect would carry the token to another place.
            .redirect(reqwest::redirect::Policy::none());
        if near {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| {
            Failure::new(
                FailureKind::Crashed,
                format!("no HTTPS client can be made: {error}"),
            )
        })?;
        Ok(Self {
            name: name.to_owned(),
            url: url.to_owned(),
            key,
            client,
            session: None,
            calls: 0,
            limit: CALL_LIMIT,
        })
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Writes the key for a process that calls in our place.
    ///
    /// # Errors
    /// It cannot be written there.
    pub fn save_key(&self, to: &mut impl Write) -> io::Result<()> {
        writeln!(to, "{}", self.key.expose())
    }

    /// The same with another limit of time, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Calls a tool of the forum.
    ///
    /// # Errors
    /// The other side does not answer, or not as an MCP server does.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        let limit = self.limit;
        match tokio::time::timeout(limit, self.answer(tool, arguments)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.failure(
                FailureKind::Timeout,
                format!("did not answer within {} s", limit.as_secs_f32()),
            )),
        }
    }

    async fn answer(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        let params = json!({"name": tool, "arguments": arguments});
        let known = self.session.is_some();
        if !known {
            self.greet().await?;
        }
        let mut result = self.ask("tools/call", &params).await?;
        if result.is_none() && known {
            // The session is over: once, a new one.
            self.greet().await?;
            result = self.ask("tools/call", &params).await?;
        }
        let Some(result) = result else {
            let what = "ends each session at once".to_owned();
            return Err(self.failure(FailureKind::Refused, what));
        };
        let text = || result["content"][0]["text"].as_str();
        let answer = match &result["structuredContent"] {
            object @ Value::Object(_) => object.clone(),
            _ => text()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or(Value::Null),
        };
        match cleaned(answer, self.key.expose()) {
            Value::Object(answer) if answer.get("success").is_some_and(Value::is_boolean) => {
                Ok(Value::Object(answer))
            }
            _ => Err(self.failure(
                FailureKind::Decode,
                "does not answer as a forum does".into(),
            )),
        }
    }

    /// Opens a session.
    async fn greet(&mut self) -> Result<(), Failure> {
        self.session = None;
        let client = json!({"name": "kd", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client});
        if self.ask("initialize", &params).await?.is_none() {
            return Err(self.failure(
                FailureKind::Missing,
                "has no MCP server at this address".into(),
            ));
        }
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send(&done).await.map(drop)
    }

    /// One request and its result; `None` means that the session is over.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Option<Value>, Failure> {
        self.calls += 1;
        let id = self.calls;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = self.send(&message).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if let Some(session) = response.headers().get(SESSION) {
            // Sent back as a header, which takes nothing but printable characters.
            self.session = session
                .to_str()
                .ok()
                .filter(|s| s.len() <= 256)
                .map(str::to_owned);
        }
        let mut message = self.read(response, id).await?;
        if let Some(error) = message.get("error") {
            let said = error["message"].as_str().unwrap_or("an error");
            let said = redacted(clean_text(said).into_owned(), self.key.expose());
            let said = kd_core::clean::clean_line(&said, ERROR_CHARS);
            return Err(self.failure(FailureKind::Refused, format!("refuses: {said}")));
        }
        Ok(Some(message["result"].take()))
    }

    async fn send(&self, message: &Value) -> Result<Response, Failure> {
        let mut request: RequestBuilder = self
            .client
            .post(&self.url)
            .bearer_auth(self.key.expose())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request
                .header(SESSION, session)
                .header("mcp-protocol-version", PROTOCOL);
        }
        let sent = request.body(message.to_string()).send().await;
        let response = sent.map_err(|error| {
            // The error of the library may hold the address twice; its cause is what helps.
            let why = std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), ToString::to_string);
            self.failure(
                FailureKind::Overloaded,
                format!("cannot be reached: {}", clean_text(&why)),
            )
        })?;
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_FOUND {
            return Ok(response);
        }
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self
                .failure(
                    FailureKind::Auth,
                    format!("does not accept the token ({status})"),
                )
                .advise("ask its owner for a token with your name (`kd serve --mcp --tokens`)"),
            status if status.is_redirection() => self
                .failure(
                    FailureKind::Refused,
                    "redirects; a token goes nowhere else".into(),
                )
                .advise("ask its owner for the right address"),
            status => self.failure(FailureKind::Refused, format!("answers {status}")),
        })
    }

    /// The message with this number, from a JSON body or a stream of events.
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
                self.failure(
                    FailureKind::Overloaded,
                    format!("broke off: {}", clean_text(&error.to_string())),
                )
            })?;
            let Some(chunk) = chunk else { break };
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(self
                    .failure(
                        FailureKind::Decode,
                        format!("sends more than {} MiB", ANSWER_BYTES_MAX >> 20),
                    )
                    .advise("ask for less: a smaller `limit`, or `after_post_id` with the last post that you read"));
            }
            // What came before has no end of a line.
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
            .ok_or_else(|| {
                self.failure(
                    FailureKind::Decode,
                    "does not answer as an MCP server does".into(),
                )
            })
    }

    fn failure(&self, kind: FailureKind, what: String) -> Failure {
        Failure::new(kind, format!("the forum `{}` {what}", self.name))
    }
}

/// Whether this is the answer to a request. A request of the other side has numbers of its own.
fn answers(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}

/// The message of a line of a stream of events. MCP servers send each in one line.
fn event(line: &[u8]) -> Option<Value> {
    let data = std::str::from_utf8(line).ok()?.strip_prefix("data:")?;
    serde_json::from_str(data.trim()).ok()
}

/// The same JSON without control characters and without the token, in texts and names: a server that repeats the token
/// would hand it on to the agent's model provider.
fn cleaned(value: Value, token: &str) -> Value {
    // First the characters: one in the middle of the token would hide it.
    let clean = |text: &str| redacted(clean_text(text).into_owned(), token);
    match value {
        Value::String(text) => clean(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| cleaned(item, token)).collect(),
        Value::Object(fields) => {
            let each = |(name, value): (String, Value)| (clean(&name), cleaned(value, token));
            Value::Object(fields.into_iter().map(each).collect::<Map<_, _>>())
        }
        other => other,
    }
}

fn redacted(text: String, token: &str) -> String {
    match text.contains(token) && !token.is_empty() {
        true => text.replace(token, "[token]"),
        false => text,
    }
}
