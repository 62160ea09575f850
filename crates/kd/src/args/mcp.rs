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
    /// Fetch nothing: use only models that are here already
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    pub(crate) offline: bool,
}
