//! What the deliberation may still use up. A call is reserved at the most that it can cost before it is made, and so is
//! the final answer from the beginning: no limit is ever passed, and a limit that cuts still leaves an answer.
//!
//! A token is at least one byte, whatever the tokenizer: the bytes of a prompt bound its tokens from above.

use super::plan::Limits;
use crate::ids::TurnId;
use crate::request::{Prompt, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{Add, AddAssign};

/// Tokens that wires add around the parts of a prompt.
const FRAMING_TOKENS: u64 = 64;
/// Pico-dollars in a millionth of a dollar.
const PICO_IN_MICRO: u64 = 1_000_000;

/// What a token costs, in millionths of a millionth of a US dollar: a dollar for a million tokens is a million of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Of a prompt.
    pub input: u64,
    /// Of an answer.
    pub output: u64,
}

impl Price {
    /// From US dollars for a million tokens, rounded up.
    pub fn per_million(input: f64, output: f64) -> Self {
        let pico = |usd: f64| (usd.clamp(0.0, 1e9) * 1e6).ceil() as u64;
        Self {
            input: pico(input),
            output: pico(output),
        }
    }
}

/// What was, or may be, used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Calls of models.
    pub calls: u64,
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// Money, in pico-dollars.
    pub pico_usd: u64,
}

impl Add for Spent {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            pico_usd: self.pico_usd.saturating_add(other.pico_usd),
        }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Spent {
    /// The most that one call can use up. An unknown price counts as nothing: the planner refuses a limit of money then.
    pub fn at_most(prompt_bytes: u64, answer_tokens: u32, price: Option<Price>) -> Self {
        let input = prompt_bytes.saturating_add(FRAMING_TOKENS);
        Self::of(input, answer_tokens.into(), price)
    }

    /// What one call used up.
    pub fn of(input: u64, output: u64, price: Option<Price>) -> Self {
        let price = price.unwrap_or_default();
        Self {
            calls: 1,
            tokens: input.saturating_add(output),
            pico_usd: input
                .saturating_mul(price.input)
                .saturating_add(output.saturating_mul(price.output)),
        }
    }

    /// Money in US dollars, for showing.
    pub fn usd(&self) -> f64 {
        self.pico_usd as f64 / 1e12
    }
}

/// The bytes of a prompt.
pub(super) fn prompt_bytes(prompt: &Prompt) -> u64 {
    [
        &prompt.rules,
        &prompt.persona,
        &prompt.history,
        &prompt.turn,
    ]
    .iter()
    .map(|part| part.len() as u64 + 2)
    .sum()
}

/// Which limit does not allow a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// Calls.
    Calls,
    /// Tokens.
    Tokens,
    /// Money.
    Money,
    /// Time.
    Time,
}

impl Cut {
    /// The limit in words.
    pub fn words(self) -> &'static str {
        match self {
            Cut::Calls => "the limit of calls",
            Cut::Tokens => "the limit of tokens",
            Cut::Money => "the limit of money",
            Cut::Time => "the limit of time",
        }
    }
}

/// What was used up, what is promised, and what may be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ledger {
    limits: Limits,
    used: Spent,
    held: BTreeMap<TurnId, Spent>,
    /// Kept back for the final answer until it is asked for.
    closing: Spent,
}

impl Ledger {
    /// An empty ledger that keeps back `closing` for the final answer.
    pub(super) fn new(limits: Limits, closing: Spent) -> Self {
        Self {
            limits,
            used: Spent::default(),
            held: BTreeMap::new(),
            closing,
        }
    }

    /// What was used up so far.
    pub(super) fn used(&self) -> Spent {
        self.used
    }

    /// Everything that is used up or promised, the final answer included.
    pub(super) fn committed(&self) -> Spent {
        self.held
            .values()
            .fold(self.used + self.closing, |sum, held| sum + *held)
    }

    /// Whether the limits allow even the final answer.
    pub(super) fn affords_closing(&self) -> Result<(), Cut> {
        self.within(self.committed())
    }

    /// Reserves a call. `last` takes it out of what was kept back for the final answer.
    pub(super) fn reserve(&mut self, turn: TurnId, most: Spent, last: bool) -> Result<(), Cut> {
        let kept = self.closing;
        if last {
            self.closing = Spent::default();
        }
        if let Err(cut) = self.within(self.committed() + most) {
            self.closing = kept;
            return Err(cut);
        }
        self.held.insert(turn, most);
        Ok(())
    }

    /// A call is over: what it used takes the place of what was promised. Where nobody says what it used, and where it
    /// failed, it counts in full. Returns what it used.
    pub(super) fn settle(
        &mut self,
        turn: TurnId,
        usage: Option<&Usage>,
        price: Option<Price>,
    ) -> Spent {
        let held = self.held.remove(&turn).unwrap_or_default();
        let used = match usage {
            Some(usage) if usage.input_tokens + usage.output_tokens > 0 => {
                Spent::of(usage.input_tokens, usage.output_tokens, price)
            }
            _ => held,
        };
        self.used += used;
        used
    }

    fn within(&self, all: Spent) -> Result<(), Cut> {
        let over = |limit: Option<u64>, n: u64| limit.is_some_and(|most| n > most);
        if over(self.limits.calls, all.calls) {
            return Err(Cut::Calls);
        }
        if over(self.limits.tokens, all.tokens) {
            return Err(Cut::Tokens);
        }
        let most = self
            .limits
            .micro_usd
            .map(|m| m.saturating_mul(PICO_IN_MICRO));
        if most.is_some_and(|most| all.pico_usd > most) {
            return Err(Cut::Money);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_answer_stays_affordable() {
        let limits = Limits {
            calls: Some(3),
            tokens: Some(1000),
            ..Limits::default()
        };
        let closing = Spent::at_most(200, 100, None);
        let mut ledger = Ledger::new(limits, closing);
        assert_eq!(ledger.affords_closing(), Ok(()));
        let call = Spent::at_most(100, 100, None);
        assert_eq!(ledger.reserve(TurnId(1), call, false), Ok(()));
        assert_eq!(ledger.reserve(TurnId(2), call, false), Ok(()));
        assert_eq!(ledger.reserve(TurnId(3), call, false), Err(Cut::Calls));
        ledger.settle(TurnId(1), None, None);
        let used = Usage {
            input_tokens: 20,
            output_tokens: 30,
            ..Usage::default()
        };
        assert_eq!(ledger.settle(TurnId(2), Some(&used), None).tokens, 50);
        assert_eq!(ledger.reserve(TurnId(4), closing, true), Ok(()));
        assert_eq!(ledger.used().tokens, 264 + 50);
    }

    #[test]
    fn prices_are_whole_and_rounded_up() {
        let price = Price::per_million(0.15, 0.0375);
        assert_eq!((price.input, price.output), (150_000, 37_500));
        let call = Spent::of(1_000_000, 0, Some(price));
        assert_eq!(call.pico_usd, 150_000 * 1_000_000);
        assert!((call.usd() - 0.15).abs() < 1e-12);
        assert_eq!(Price::per_million(1e-7, 0.0).input, 1);
    }
}
