//! `kd serve`: the council for other programs on this machine.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  kd serve --mcp                                   prints the address and a new token
  KD_SERVE_TOKEN=… kd serve --mcp --listen 127.0.0.1:7777
  kd serve --mcp --tokens tokens.txt               one line for each caller: NAME TOKEN

Only programs on this machine that present a token are admitted; web pages are not.";

/// Run an MCP server over HTTP for programs on this machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The Model Context Protocol, under /mcp
    #[arg(long)]
    pub(crate) mcp: bool,
    /// The loopback address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7717")]
    pub(crate) listen: SocketAddr,
    /// A file of tokens, one per line, each after the name of its owner if it has one
    /// [default: KD_SERVE_TOKEN, else a new token is printed]
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// The name of callers whose token has no name
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Download nothing: use only models already on this machine
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    pub(crate) offline: bool,
}
