//! `kd mcp`: the council as tools for one agent.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  claude mcp add kd -- kd mcp                      let Claude Code consult the council
  kd mcp --as claude                               and take part in the forum under that name
  npx @modelcontextprotocol/inspector --cli kd mcp --method tools/list

Nothing but the protocol goes to stdout. Over HTTP: kd serve --mcp";

/// Let an agent consult the council: an MCP server on stdin and stdout
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Mcp {
    /// Whom everything is signed with that comes over this connection
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The forum [default: main]
    #[arg(long, value_name = "NAME")]
    pub(crate) forum: Option<String>,
    /// The forum's store: a path or a PostgreSQL address [default: `forum.store`, else .kd/forum.db]
    #[arg(long, value_name = "PLACE")]
    pub(crate) store: Option<String>,
    /// The visit that this serves: its tools alone, counted and recorded there (`kd forum run-…` starts it so)
    #[arg(long, value_name = "RUN", requires = "name")]
    pub(crate) run: Option<i64>,
    /// Tool calls of that visit
    #[arg(long, value_name = "N", requires = "run")]
    pub(crate) calls: Option<u32>,
    /// Fetch nothing: use only models that are here already
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    pub(crate) offline: bool,
}
