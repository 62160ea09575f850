//! The price of a member's words, by the settings.

use crate::config::{self, Config};
use crate::roster::Member;
use crate::spending::Price;

/// The price of a member's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// At most this, per token.
    Known(Price),
    /// Depends on the agent program, up to the budget it is given.
    Budget,
    /// Depends on the agent program.
    Program,
    /// A service charges for it, but its price is neither configured nor listed.
    Unknown,
}

impl Cost {
    /// Returns the price of a member's answers with these settings.
    pub fn of(config: &Config, member: &Member) -> Self {
        match config.tariff(member) {
            Some(tariff) => Cost::Known(tariff.worst(false)),
            None if is_free(&member.backend) => Cost::Known(Price::default()),
            None if config::keeps_budget(&member.backend) => Cost::Budget,
            None if config::is_program(&member.backend) => Cost::Program,
            None => Cost::Unknown,
        }
    }

    /// Returns the price, if known.
    pub fn price(self) -> Option<Price> {
        match self {
            Cost::Known(price) => Some(price),
            Cost::Budget | Cost::Program | Cost::Unknown => None,
        }
    }
}

/// Returns the warning for a money limit with agent programs.
pub fn program_warning(names: &[&str]) -> String {
    format!(
        "the cost limit is not exact for agent programs ({}): one question may cost more than is left",
        names.join(", ")
    )
}

/// Returns whether a backend runs models on this machine for free.
pub fn is_free(backend: &str) -> bool {
    matches!(backend, "local" | "scripted" | "ollama")
}
