//! `kd acp`: the council as an agent of an editor.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  kd acp            started by an editor, in \"agent_servers\" of its settings:
                    {\"Kingdom\": {\"command\": \"kd\", \"args\": [\"acp\"]}}
                    Zed: settings.json; JetBrains: ~/.jetbrains/acp.json

A session is a thread of the folder that the editor names. Its modes are ask,
think and deliberate. The editor shows the stages as a plan, each member's turn
as a card, and the answer as the message.

stdout carries only the protocol (Agent Client Protocol, version 1).";

/// Run an agent for editors on stdin and stdout (Agent Client Protocol)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Acp {
    /// Download nothing: use only models already on this machine
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue)]
    pub(crate) offline: bool,
}
