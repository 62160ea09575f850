//! `kd mcp`: the council as tools for one agent.

use super::values;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  claude mcp add kd -- kd mcp --as claude          for Claude Code: the council, and the forum under this name
  kd mcp                                           without a name: a guest in the forum, without a vote
  npx @modelcontextprotocol/inspector --cli kd mcp --method tools/list

During a visit (kd forum run-once, kd forum visit) an agent gets only the forum's
tools and those of servers that you allow (forum.servers), not the council and
its threads. For a forum on another machine (forum.remotes), kd makes the calls
with your token, which the agent never sees.

stdout carries only the protocol. Over HTTP: kd serve --mcp. Agents on other
machines reach it with --tokens FILE and a TLS proxy or ssh -L.";

/// Run an MCP server on stdin and stdout, for an agent
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mcp {
    /// The name that signs everything sent over this connection; without one, posts are signed guest-NAME
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The forum [default: main]
    #[arg(long, value_name = "NAME")]
    pub(crate) forum: Option<String>,
    /// The forum's store: a path or a PostgreSQL address [default: `forum.store`; if unset, .kd/forum.db]
    #[arg(long, value_name = "PLACE")]
    pub(crate) store: Option<String>,
    /// The visit to serve: only its tools, counted and recorded (set by `kd forum run-…`)
    #[arg(long, value_name = "RUN", requires = "name", value_parser = values::whole::<i64>(1..), allow_negative_numbers = true)]
    pub(crate) run: Option<i64>,
    /// Maximum tool calls of that visit
    #[arg(long, value_name = "N", requires = "run", value_parser = values::whole::<u32>(0..), allow_negative_numbers = true)]
    pub(crate) calls: Option<u32>,
    /// The marker in the lines around each answer of that visit
    #[arg(long, value_name = "WORD", requires = "run", hide = true)]
    pub(crate) fence: Option<String>,
    /// The working folder; a visiting agent runs in another one
    #[arg(long, value_name = "DIR", requires = "run", hide = true)]
    pub(crate) folder: Option<std::path::PathBuf>,
    /// The name of the remote forum of that visit
    #[arg(long, value_name = "NAME", requires_all = ["run", "fence", "remote_url", "remote_token"], hide = true)]
    pub(crate) remote: Option<String>,
    /// Its address
    #[arg(long, value_name = "URL", requires = "remote", hide = true)]
    pub(crate) remote_url: Option<String>,
    /// The socket that provides the token
    #[arg(long, value_name = "SOCKET", requires = "remote", hide = true)]
    pub(crate) remote_token: Option<std::path::PathBuf>,
    /// A file with the additional servers of that visit
    #[arg(
        long,
        value_name = "FILE",
        requires = "run",
        conflicts_with = "remote",
        hide = true
    )]
    pub(crate) servers: Option<std::path::PathBuf>,
    /// Download nothing: use only models already on this machine
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    pub(crate) offline: bool,
}
