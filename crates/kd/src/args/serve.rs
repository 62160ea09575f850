//! `kd serve`: serve the council to other programs, on this machine or beyond it.

use super::batch::Store;
use clap::Args;
use kd_server::http::HostName;
use std::net::SocketAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  kd serve                                  prints addresses and a new token
  kd serve --models                         only the council as a model
  kd serve --page                           only the page for a browser
  KD_SERVE_TOKEN=… kd serve --listen 127.0.0.1:7777
  kd serve --tokens tokens.txt              one line per caller: NAME TOKEN
  kd serve --listen 0.0.0.0:7717 --host kd.example.org
                                            also for other machines
  kd serve --store postgresql://kd@db.example.org/kd
                                            with the batches of a fleet
  kd serve --health                         whether a server is running

Give any program for the OpenAI API the address that ends in /v1 and the token;
give one for the Anthropic API the address without /v1. The models are kd/ask,
kd/think and kd/deliberate; kd/ask:claude,codex chooses members.

Only programs on this machine with a token are admitted; web pages are not.
With --host, other machines with a token are, under these names alone, and no
agent program answers. There is no TLS: put a proxy in front.";

/// Serve the council to programs: as a model, over MCP, and as a page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Only the Model Context Protocol, under /mcp
    #[arg(long)]
    pub(crate) mcp: bool,
    /// Only the council as a model (the APIs of OpenAI and Anthropic), under /v1
    #[arg(long)]
    pub(crate) models: bool,
    /// Only the page for a browser, under /
    #[arg(long)]
    pub(crate) page: bool,
    /// The address to listen on; port 0 picks a free one. Beyond this machine
    /// only with --host
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7717")]
    pub(crate) listen: SocketAddr,
    /// A name by which other machines reach this one, with the port if it is
    /// another than that of --listen; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<HostName>,
    /// Ask the server at the address whether it works, and exit
    #[arg(long, conflicts_with_all = ["mcp", "models", "page", "host", "tokens", "name", "store"])]
    pub(crate) health: bool,
    /// A file of tokens, one per line: NAME TOKEN, or only TOKEN
    /// [default: KD_SERVE_TOKEN, else a new token is printed]
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// The name of callers whose token has no name
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) store: Store,
    /// Download nothing: use only models already on this machine
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    pub(crate) offline: bool,
}
