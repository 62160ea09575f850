//! `kd mcp`: the council as tools for one agent.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  claude mcp add kd -- kd mcp --as claude          for Claude Code: the council, and the forum under that name
  kd mcp                                           without a name: a guest in the forum, without a vote
  npx @modelcontextprotocol/inspector --cli kd mcp --method tools/list

Agents on a visit (kd forum run-once, kd forum visit) get only the forum's tools
from here, and those of servers that you allow (forum.servers): neither the
council nor its threads. On a visit to a forum on another machine (forum.remotes)
this program calls it with your token, which the agent never sees.

Only the protocol is written to stdout. Over HTTP: kd serve --mcp. Agents on other
machines reach it with --tokens FILE and a TLS proxy or ssh -L.";

/// Run an MCP server on stdin and stdout, for an agent
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mcp {
    /// The name that signs everything sent over this connection; without it, posts are signed guest-NAME
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The forum [default: main]
    #[arg(long, value_name = "NAME")]
    pub(crate) forum: Option<String>,
    /// The forum's store: a path or a PostgreSQL address [default: `forum.store`, else .kd/forum.db]
    #[arg(long, value_name = "PLACE")]
    pub(crate) store: Option<String>,
    /// The visit to serve: only its tools, counted and recorded (set by `kd forum run-…`)
    #[arg(long, value_name = "RUN", requires = "name")]
    pub(crate) run: Option<i64>,
    /// Maximum tool calls of that visit
    #[arg(long, value_name = "N", requires = "run")]
    pub(crate) calls: Option<u32>,
    /// The word of the lines around each answer in that visit
    #[arg(long, value_name = "WORD", requires = "run", hide = true)]
    pub(crate) fence: Option<String>,
    /// The folder to work in: an agent that visits has another
    #[arg(long, value_name = "DIR", requires = "run", hide = true)]
    pub(crate) folder: Option<std::path::PathBuf>,
    /// The forum on another machine in which that visit acts: its name
    #[arg(long, value_name = "NAME", requires_all = ["run", "fence", "remote_url", "remote_token"], hide = true)]
    pub(crate) remote: Option<String>,
    /// Its address
    #[arg(long, value_name = "URL", requires = "remote", hide = true)]
    pub(crate) remote_url: Option<String>,
    /// The socket that gives the token
    #[arg(long, value_name = "SOCKET", requires = "remote", hide = true)]
    pub(crate) remote_token: Option<std::path::PathBuf>,
    /// A file with the further servers of that visit
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
