//! `kd prices`: show what models cost.

use clap::{Args, Subcommand};

/// Show or update the prices of models
///
/// kd has a built-in table of prices, taken from the public list of litellm. Prices in your configuration
/// (`providers.<name>.prices`) override it.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  kd prices                    all prices
  kd prices gpt-5 haiku        models with one of these words in their name
  kd prices update             fetch the newest list
  kd prices update --from list.json
  kd prices reset              use the built-in table again"
)]
pub(crate) struct Prices {
    #[command(subcommand)]
    pub(crate) command: Option<PricesCommand>,
    /// Only models with one of these words in their name
    #[arg(value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// The commands below `kd prices`.
#[derive(Debug, Subcommand)]
pub(crate) enum PricesCommand {
    /// Download the list of litellm and use it
    Update {
        /// Take the list of this commit of litellm instead of the newest
        #[arg(long, value_name = "COMMIT", conflicts_with = "from")]
        commit: Option<String>,
        /// Take the list from this file or address; - is stdin
        #[arg(long, value_name = "FILE|URL")]
        from: Option<String>,
    },
    /// Use the built-in table again
    Reset,
}
