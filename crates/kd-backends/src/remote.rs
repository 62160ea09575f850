//! A forum on another machine: its MCP server, called over streamable HTTP with a named token.
//!
//! Input: a tool of `kd_forum::tools` and its arguments. Output: the answer as JSON, cleaned. The server's own
//! lists of tools and schemas are never requested.

use crate::Env;
use crate::keys::{Key, KeySource};
pub use crate::mcp::ANSWER_BYTES_MAX;
use crate::mcp::http::Http;
use crate::mcp::{Peer, cleaned, without};
use kd_core::config::RemoteConfig;
use kd_core::{Failure, FailureKind};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Maximum bytes of a key.
const KEY_BYTES_MAX: u64 = 8192;
/// Maximum time to wait for the key.
const KEY_LIMIT: Duration = Duration::from_secs(10);

/// A forum on another machine.
pub struct RemoteForum {
    name: String,
    http: Http,
    key: Key,
}

impl std::fmt::Debug for RemoteForum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteForum")
            .field("name", &self.name)
            .field("url", &self.http.url)
            .finish_non_exhaustive()
    }
}

impl RemoteForum {
    /// Creates a client from the configuration, and gets its key. Sends nothing yet.
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

    /// Creates a client for this address, with the key read from the socket of a process that holds it.
    ///
    /// # Errors
    /// The address is not safe, or there is no key.
    pub fn with_key_socket(name: &str, url: &str, socket: &Path) -> Result<Self, Failure> {
        let read = || -> io::Result<String> {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(KEY_LIMIT))?;
            let mut text = String::new();
            stream.take(KEY_BYTES_MAX).read_to_string(&mut text)?;
            Ok(text)
        };
        let failed = |why: String| {
            Failure::new(
                FailureKind::Auth,
                format!("the token cannot be read: {why}"),
            )
            .advise("the visit that this serves is over: end it")
        };
        let text = read().map_err(|why| failed(why.to_string()))?;
        let key = Key::new(&text).ok_or_else(|| failed("it is empty".into()))?;
        Self::with_key(name, url, key)
    }

    fn with_key(name: &str, url: &str, key: Key) -> Result<Self, Failure> {
        let peer = Peer {
            what: format!("the forum `{name}`"),
            setting: format!("forum.remotes.{name}"),
            on_auth: "ask its owner for a token with your name (`kd serve --mcp --tokens`)".into(),
            on_size: "ask for less: a smaller `limit`, or `after_post_id` with the last post that you read"
                .into(),
        };
        Ok(Self {
            name: name.to_owned(),
            http: Http::new(peer, url, Some(key.clone()))?,
            key,
        })
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.http.url
    }

    /// Writes the key for a process that calls the forum on our behalf.
    ///
    /// # Errors
    /// Writing fails.
    pub fn save_key(&self, to: &mut impl Write) -> io::Result<()> {
        writeln!(to, "{}", self.key.expose())
    }

    /// Sets another time limit, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.http.limit = limit;
        self
    }

    /// Calls a tool of the forum.
    ///
    /// # Errors
    /// The server does not answer, or its answer is not valid MCP.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.http.request("tools/call", &params).await?;
        let text = || result["content"][0]["text"].as_str();
        let answer = match &result["structuredContent"] {
            object @ Value::Object(_) => object.clone(),
            _ => text()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or(Value::Null),
        };
        match without(cleaned(answer), self.key.expose()) {
            Value::Object(answer) if answer.get("success").is_some_and(Value::is_boolean) => {
                Ok(Value::Object(answer))
            }
            _ => Err(self
                .http
                .peer
                .failure(FailureKind::Decode, "does not answer like a forum")),
        }
    }
}
