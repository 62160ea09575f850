//! `kd trust`: show the settings this folder asks for, and allow them.

use clap::Args;
use std::path::PathBuf;

/// Show what the settings of this folder would do, and allow them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd trust                     list what the settings would do, and ask
  kd trust --yes               allow them without asking
  kd trust --list              list the folders you have decided about
  kd trust --revoke            revoke the decision about this folder
  kd trust --json | jq '.settings[] | select(.allowed | not)'

Lists a .kd folder of another user, settings that need consent, and files that
agent programs run or obey. Consent covers exactly these contents at this path:
when something changes, kd asks again. More: docs/trust.md")]
pub(crate) struct Trust {
    /// Allow without asking
    #[arg(long, short = 'y', conflicts_with_all = ["list", "revoke"])]
    pub(crate) yes: bool,
    /// List the folders you have decided about
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) list: bool,
    /// Revoke the decision about a folder [default: this one]
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    pub(crate) revoke: Option<Option<PathBuf>>,
    /// Print one JSON object, and ask nothing
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
