//! `kd serve`: the council for other programs on this machine.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  kd serve --mcp                                   shows the address and a fresh token
  KD_SERVE_TOKEN=… kd serve --mcp --listen 127.0.0.1:7777
  kd serve --mcp --tokens tokens.txt               one line for each caller: NAME TOKEN

Only programs on this machine that have a token get in; a web page does not.";

/// Serve other programs on this machine over HTTP
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The Model Context Protocol, under /mcp
    #[arg(long)]
    pub(crate) mcp: bool,
    /// The address, of this machine only; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7717")]
    pub(crate) listen: SocketAddr,
    /// A file of tokens, each on a line, after the name of its owner if it has one
    /// [default: KD_SERVE_TOKEN, else a fresh one is made and shown]
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// Whom callers are whose token has no name
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Fetch nothing: use only models that are here already
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    pub(crate) offline: bool,
}
