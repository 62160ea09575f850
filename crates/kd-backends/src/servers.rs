//! Additional MCP servers that an agent may call when it visits a forum: the servers that the forum's owner named for
//! it, with the tools that the owner allowed.
//!
//! Input: `forum.servers` of the configuration, the agent's name, and its calls as `SERVER__tool`. Output: tools as the
//! model sees them, and answers as JSON with `success`. A failing server refuses the call and never ends the visit.
//! Everything a server sends is data: limited, cleaned, and without the keys that it was given.

use crate::Env;
use crate::keys::Key;
use crate::mcp::http::Http;
use crate::mcp::program::{Program, Start};
use crate::mcp::{CALL_LIMIT, Peer, cleaned, each_text};
use futures::future::join_all;
use kd_core::clean::{clean_line, clean_text};
use kd_core::config::ServerConfig;
use kd_core::request::ServerAnswer;
use kd_core::request::TOOL_SEPARATOR;
use kd_core::request::ToolSpec;
use kd_core::{Failure, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum characters of both names together: services accept 64, and agent programs add the name of kd's server in
/// front.
pub const NAME_MAX: usize = 52;
/// Maximum number of tools offered per server.
pub const TOOLS_MAX: usize = 32;
/// Maximum time until a server is ready and has listed its tools.
const OPEN_LIMIT: Duration = Duration::from_secs(10);
/// Maximum pages of a tool list.
const PAGES_MAX: usize = 8;
/// Maximum characters of a tool's description.
const DOC_CHARS: usize = 600;
/// Maximum bytes of a tool's schema; a longer one is omitted.
const SCHEMA_BYTES_MAX: usize = 8 << 10;
/// Maximum depth of a tool's schema.
const SCHEMA_DEPTH_MAX: usize = 8;
/// Maximum characters of an answer shown to an agent.
pub const ANSWER_CHARS_MAX: usize = 20_000;

/// Variables passed to every server program, as to agent programs; others only if they are named.
const SHARED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
];

/// A server that an agent may call, with everything needed for that. It contains keys: write it only to files that
/// nobody else can read.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// Its name in the configuration.
    pub name: String,
    /// The tools that may be called.
    pub tools: Vec<String>,
    program: Option<PathBuf>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    url: Option<String>,
    key: Option<String>,
    /// The values of the environment variables that its configuration names.
    secrets: Vec<String>,
    /// The reason why it cannot be called.
    fault: Option<String>,
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl Grant {
    /// Returns the servers that this agent may call. A configuration error shows when the server is opened.
    pub fn all(servers: &BTreeMap<String, ServerConfig>, agent: &str, env: &Env) -> Vec<Self> {
        let may = |server: &ServerConfig| server.agents.iter().any(|name| name == agent);
        servers
            .iter()
            .filter(|(_, server)| may(server))
            .map(|(name, server)| Self::new(name, server, env))
            .collect()
    }

    /// Creates a server from its configuration.
    pub fn new(name: &str, config: &ServerConfig, env: &Env) -> Self {
        let mut grant = Self {
            name: name.to_owned(),
            tools: config.tools.clone(),
            url: config.url.clone(),
            ..Self::default()
        };
        grant.fault = grant.fill(config, env).err();
        grant
    }

    fn fill(&mut self, config: &ServerConfig, env: &Env) -> Result<(), String> {
        let setting = format!("forum.servers.{}", self.name);
        if self.tools.is_empty() {
            return Err(format!(
                "no tool is allowed: name them in `{setting}.tools`"
            ));
        }
        match (config.command.split_first(), &config.url) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "a program and an address are set: set one of `{setting}.command` and `{setting}.url`"
                ));
            }
            (None, None) => {
                return Err(format!(
                    "neither a program nor an address is set: set `{setting}.command` or `{setting}.url`"
                ));
            }
            (None, Some(_)) => {
                if let Some(variable) = &config.key_env {
                    let key = env.get(variable).and_then(|text| Key::new(&text));
                    let none =
                        || format!("the variable {variable} (`{setting}.key_env`) is not set");
                    let key = key.ok_or_else(none)?.expose().to_owned();
                    self.secrets.push(key.clone());
                    self.key = Some(key);
                }
            }
            (Some((program, args)), None) => {
                self.program = Some(locate(program, env).ok_or_else(|| {
                    format!("the program {} is not found: correct `{setting}.command`, with an absolute path or a program of PATH", clean_line(program, 200))
                })?);
                self.args = args.to_vec();
                let shared = SHARED.iter().map(|name| (*name).to_owned());
                let named = config.env.iter().cloned();
                for name in shared.chain(named.clone()) {
                    self.env.extend(env.get(&name).map(|value| (name, value)));
                }
                self.secrets.extend(named.filter_map(|name| env.get(&name)));
            }
        }
        Ok(())
    }

    /// Returns the names under which its tools are offered.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let names = self.tools.iter().map(|tool| full(&self.name, tool));
        names.filter(|name| is_name(name)).take(TOOLS_MAX)
    }

    fn peer(&self) -> Peer {
        let setting = format!("forum.servers.{}", self.name);
        Peer {
            what: format!("the server `{}`", self.name),
            on_auth: format!("put a valid token into the variable of `{setting}.key_env`"),
            on_size: "ask it for less".into(),
            setting,
        }
    }

    /// Removes the server's keys from a text.
    fn redact(&self, text: &str) -> String {
        let keys = self.secrets.iter().filter_map(|secret| Key::new(secret));
        // A short value is not a secret, and occurs everywhere.
        let keys = keys.filter(|key| key.expose().len() >= 4);
        keys.fold(text.to_owned(), |text, key| key.redact(&text))
    }
}

/// Finds the program of a command: a path, or a name on the PATH. Ignores the working folder, which may be untrusted.
fn locate(program: &str, env: &Env) -> Option<PathBuf> {
    let at = env.expand(program);
    if at.components().count() > 1 {
        return Some(at).filter(|at| at.is_absolute() && at.is_file());
    }
    which::which_in(at, Some(env.search_path()), "/").ok()
}

/// Returns the name under which a tool is offered.
fn full(server: &str, tool: &str) -> String {
    format!("{server}{TOOL_SEPARATOR}{tool}")
}

/// Returns whether services and agent programs accept this as a tool name.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.len() <= NAME_MAX && name.chars().all(fits)
}

/// The servers of one visit. Opened when their tools are first needed, closed on drop.
#[derive(Default)]
pub struct Servers {
    all: Vec<Server>,
    /// The working folder of server programs.
    folder: PathBuf,
    limit: Option<Duration>,
}

struct Server {
    grant: Grant,
    state: State,
}

enum State {
    Unopened,
    Open(Wire, Vec<ToolSpec>),
    /// It failed, and is not called again during this visit.
    Gone(Failure),
}

enum Wire {
    Http(Http),
    Program(Box<Program>),
}

impl Wire {
    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        match self {
            Self::Http(http) => http.request(method, params).await,
            Self::Program(program) => program.request(method, params).await,
        }
    }
}

impl Servers {
    /// Creates the servers of a visit. `folder` is the working folder of programs: an empty one.
    pub fn new(grants: Vec<Grant>, folder: &Path) -> Self {
        let unopened = |grant| Server {
            grant,
            state: State::Unopened,
        };
        Self {
            all: grants.into_iter().map(unopened).collect(),
            folder: folder.to_owned(),
            limit: None,
        }
    }

    /// Sets another time limit, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }

    /// Returns the prefixes of their tool names.
    pub fn starts(&self) -> Vec<String> {
        let servers = self.all.iter();
        servers.map(|server| full(&server.grant.name, "")).collect()
    }

    /// Returns whether a name belongs to a tool of one of these servers, allowed or not.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the index of the server and the name of the tool.
    fn find<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let parts = |server: &Server| -> Option<&'n str> {
            name.strip_prefix(server.grant.name.as_str())?
                .strip_prefix(TOOL_SEPARATOR)
        };
        let all = self.all.iter().enumerate();
        let mut found = all.filter_map(|(at, server)| Some((at, server, parts(server)?)));
        // One server may be called `a` and another `a__b`.
        let allowed = found.clone().find(|(_, server, tool)| server.allows(tool));
        let (at, _, tool) = allowed.or_else(|| found.next())?;
        Some((at, tool))
    }

    /// Opens all servers that are not open yet, concurrently, and returns their tools.
    pub async fn tools(&mut self) -> Vec<ToolSpec> {
        let (folder, limit) = (&self.folder, self.limit);
        join_all(self.all.iter_mut().map(|server| server.open(folder, limit))).await;
        let open = self.all.iter().filter_map(|server| match &server.state {
            State::Open(_, tools) => Some(tools.clone()),
            _ => None,
        });
        open.flatten().collect()
    }

    /// Returns the servers that cannot be called and the allowed tools that do not exist, each with the reason.
    pub fn faults(&self) -> Vec<(String, String)> {
        self.all
            .iter()
            .flat_map(|server| {
                let name = server.grant.name.clone();
                server
                    .faults()
                    .into_iter()
                    .map(move |why| (name.clone(), why))
            })
            .collect()
    }

    /// Executes a call. `None` if the name belongs to none of these servers.
    pub async fn call(&mut self, name: &str, arguments: &Value) -> Option<ServerAnswer> {
        let (at, tool) = self.find(name)?;
        let (folder, limit) = (self.folder.clone(), self.limit);
        let server = self.all.get_mut(at)?;
        let done = server.call(tool, arguments, &folder, limit).await;
        let answer = done.unwrap_or_else(
            |why| json!({"success": false, "error": server.grant.redact(&why.to_string())}),
        );
        Some(ServerAnswer {
            server: server.grant.name.clone(),
            tool: clean_line(tool, NAME_MAX),
            answer,
        })
    }
}

impl Server {
    fn allows(&self, tool: &str) -> bool {
        is_name(&full(&self.grant.name, tool))
            && self.grant.tools.iter().take(TOOLS_MAX).any(|t| t == tool)
    }

    async fn open(&mut self, folder: &Path, limit: Option<Duration>) {
        if !matches!(self.state, State::Unopened) {
            return;
        }
        // Opening has its own limit, whose error says more about what went wrong.
        let within = limit.unwrap_or(OPEN_LIMIT) + Duration::from_secs(1);
        let opened = match tokio::time::timeout(within, self.greet(folder, limit)).await {
            Ok(opened) => opened,
            Err(_) => Err(self.grant.peer().too_late(within)),
        };
        self.state = match opened {
            Ok((wire, tools)) => State::Open(wire, tools),
            Err(why) => State::Gone(why),
        };
    }

    async fn greet(
        &self,
        folder: &Path,
        limit: Option<Duration>,
    ) -> Result<(Wire, Vec<ToolSpec>), Failure> {
        let (grant, peer) = (&self.grant, self.grant.peer());
        if let Some(fault) = &grant.fault {
            return Err(Failure::new(
                FailureKind::Invalid,
                format!("{}: {fault}", peer.what),
            ));
        }
        let limit = limit.unwrap_or(CALL_LIMIT);
        let mut wire = match (&grant.program, &grant.url) {
            (Some(program), _) => {
                let start = Start {
                    program: program.clone(),
                    args: grant.args.clone(),
                    env: grant.env.clone(),
                    folder: folder.to_owned(),
                    label: format!("server {}", grant.name),
                };
                let mut program = Program::start(peer, start)?;
                program.limit = limit.min(OPEN_LIMIT);
                program.greet().await?;
                program.limit = limit;
                Wire::Program(Box::new(program))
            }
            (None, url) => {
                let key = grant.key.as_deref().and_then(Key::new);
                let mut http = Http::new(peer, url.as_deref().unwrap_or_default(), key)?;
                http.limit = limit;
                Wire::Http(http)
            }
        };
        let tools = self.list(&mut wire).await?;
        Ok((wire, tools))
    }

    /// Returns the allowed tools, as the server describes them.
    async fn list(&self, wire: &mut Wire) -> Result<Vec<ToolSpec>, Failure> {
        let mut found: Vec<ToolSpec> = Vec::new();
        let mut params = json!({});
        for _ in 0..PAGES_MAX {
            let page = wire.request("tools/list", &params).await?;
            let Some(listed) = page["tools"].as_array() else {
                let what = "lists no tools";
                return Err(self.grant.peer().failure(FailureKind::Decode, what));
            };
            for tool in listed {
                let name = tool["name"].as_str().unwrap_or_default();
                let full = full(&self.grant.name, name);
                if self.allows(name) && !found.iter().any(|known| known.name == full) {
                    found.push(self.offered(full, tool));
                }
            }
            match page["nextCursor"].as_str() {
                Some(cursor) if cursor.len() <= 1024 => params = json!({"cursor": cursor}),
                _ => break,
            }
        }
        Ok(found)
    }

    /// Converts a tool to the description that the model sees.
    fn offered(&self, name: String, tool: &Value) -> ToolSpec {
        let doc = clean_line(tool["description"].as_str().unwrap_or_default(), DOC_CHARS);
        let schema = schema(&tool["inputSchema"], 0).unwrap_or_else(any_object);
        let schema =
            match schema.to_string().len() <= SCHEMA_BYTES_MAX && schema["type"] == "object" {
                true => schema,
                false => any_object(),
            };
        let text = format!("A tool of the server `{}`. It says: {doc}", self.grant.name);
        ToolSpec {
            name,
            doc: self.grant.redact(&text),
            schema: each_text(schema, &|text| self.grant.redact(text)),
        }
    }

    fn faults(&self) -> Vec<String> {
        let tools = match &self.state {
            State::Unopened => return Vec::new(),
            State::Gone(why) => return vec![self.grant.redact(&why.to_string())],
            State::Open(_, tools) => tools,
        };
        let (name, setting) = (
            &self.grant.name,
            format!("forum.servers.{}.tools", self.grant.name),
        );
        let is_there = |tool: &str| tools.iter().any(|t| t.name == full(name, tool));
        let missing = self.grant.tools.iter().filter(|tool| !is_there(tool));
        missing
            .map(|tool| {
                let tool = clean_line(tool, 64);
                match is_name(&full(name, &tool)) {
                    true => format!("the server `{name}` offers no tool `{tool}`: correct `{setting}`"),
                    false => format!(
                        "the tool `{tool}` cannot be offered: `{name}{TOOL_SEPARATOR}{tool}` may have {NAME_MAX} letters, digits, `_` and `-`"
                    ),
                }
            })
            .collect()
    }

    async fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        folder: &Path,
        limit: Option<Duration>,
    ) -> Result<Value, Failure> {
        let (peer, name) = (self.grant.peer(), self.grant.name.clone());
        if !self.allows(tool) {
            let allowed: Vec<String> = self.grant.names().collect();
            let what = format!(
                "is not allowed to be asked for `{}`; allowed: {}",
                clean_line(tool, 64),
                allowed.join(", ")
            );
            return Err(peer.failure(FailureKind::Refused, &what));
        }
        self.open(folder, limit).await;
        let wire = match &mut self.state {
            State::Open(wire, tools) if tools.iter().any(|t| t.name == full(&name, tool)) => wire,
            State::Open(..) => {
                let what = format!("has no tool `{tool}`");
                return Err(peer.failure(FailureKind::Refused, &what));
            }
            State::Gone(why) => return Err(why.clone()),
            State::Unopened => return Err(peer.failure(FailureKind::Missing, "is not open")),
        };
        let arguments = match arguments {
            Value::Object(_) => arguments.clone(),
            _ => json!({}),
        };
        let params = json!({"name": tool, "arguments": arguments});
        let result = wire.request("tools/call", &params).await;
        let is_program = matches!(wire, Wire::Program(_));
        match result.and_then(|result| self.answer(&result)) {
            Ok(answer) => Ok(answer),
            Err(why) => {
                // Later output of the program would belong to no call; a refusal is a regular answer.
                if is_program && why.kind != FailureKind::Refused {
                    let said = format!("{}; it is not called again in this visit", why.message);
                    let mut gone = Failure::new(why.kind, said);
                    gone.advice.clone_from(&why.advice);
                    self.state = State::Gone(gone);
                }
                Err(why)
            }
        }
    }

    /// Returns a tool's answer as the agent gets it: cleaned, without keys, truncated if long.
    fn answer(&self, result: &Value) -> Result<Value, Failure> {
        let content = result["content"].as_array();
        let data = result
            .get("structuredContent")
            .filter(|data| data.is_object());
        if content.is_none() && data.is_none() {
            let what = "does not answer like an MCP server";
            return Err(self.grant.peer().failure(FailureKind::Decode, what));
        }
        let parts = content.map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        let text = match (texts.is_empty(), data) {
            (true, Some(data)) => cleaned(data.clone()).to_string(),
            _ => texts.join("\n"),
        };
        let text = self.grant.redact(&clean_text(&text));
        let cut = text.char_indices().nth(ANSWER_CHARS_MAX).map(|(at, _)| at);
        let failed = result["isError"] == true;
        let field = if failed { "error" } else { "text" };
        let mut answer = json!({"success": !failed, field: &text[..cut.unwrap_or(text.len())]});
        if cut.is_some() {
            answer["cut_after_characters"] = ANSWER_CHARS_MAX.into();
        }
        let others = parts.len() - texts.len();
        if others > 0 {
            answer["parts_without_text_left_out"] = others.into();
        }
        Ok(answer)
    }
}

fn any_object() -> Value {
    json!({"type": "object"})
}

/// Returns a schema reduced to the keywords that services know, without references. `None` if it is too deep or not an
/// object.
fn schema(value: &Value, depth: usize) -> Option<Value> {
    let fields = value.as_object().filter(|_| depth < SCHEMA_DEPTH_MAX)?;
    let mut kept = Map::new();
    for (key, value) in fields {
        let value = match key.as_str() {
            "type" if value.is_string() => value.clone(),
            "description" => clean_line(value.as_str()?, DOC_CHARS).into(),
            "enum" | "required" if value.is_array() => cleaned(value.clone()),
            "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems"
                if value.is_number() =>
            {
                value.clone()
            }
            "items" => schema(value, depth + 1)?,
            "anyOf" => {
                let each = value.as_array()?.iter().map(|one| schema(one, depth + 1));
                each.collect::<Option<Vec<_>>>()?.into()
            }
            "properties" => {
                let mut named = Map::new();
                for (name, one) in value.as_object()? {
                    named.insert(clean_line(name, 64), schema(one, depth + 1)?);
                }
                named.into()
            }
            _ => continue,
        };
        kept.insert(key.clone(), value);
    }
    Some(kept.into())
}
