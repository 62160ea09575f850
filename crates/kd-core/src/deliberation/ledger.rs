//! The account of one deliberation: each request is reserved at its worst case before it is made, and so is the final
//! answer from the beginning. No limit is passed, and a limit that cuts still leaves an answer.
//!
//! The wires reserve in an account of their own ([`crate::spending`]), retries included; what a turn used in all comes
//! back with its end.

use super::plan::Plan;
use crate::failure::Failure;
use crate::ids::TurnId;
use crate::request::{Prompt, Usage};
use crate::spending::Account;
pub use crate::spending::{Cut, Price, Spent};

/// Bytes that a wire adds around a prompt: the names of its fields, the model, the sampling.
const WIRE_BYTES: u64 = 1024;

/// The bytes of a prompt.
pub(super) fn prompt_bytes(prompt: &Prompt) -> u64 {
    parts(prompt).map(|part| part.len() as u64 + 2).sum()
}

/// An upper bound of the bytes that a wire sends for a prompt, as JSON.
pub(crate) fn wire_bytes(prompt: &Prompt) -> u64 {
    WIRE_BYTES + parts(prompt).map(json_bytes).sum::<u64>()
}

fn parts(prompt: &Prompt) -> impl Iterator<Item = &str> {
    [
        prompt.rules.as_str(),
        &prompt.persona,
        &prompt.history,
        &prompt.turn,
    ]
    .into_iter()
}

/// The bytes of a text in JSON, with blank lines around it.
pub(crate) fn json_bytes(text: &str) -> u64 {
    let escaped = |b: u8| match b {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..32 => 6,
        _ => 1,
    };
    4 + text.bytes().map(escaped).sum::<u64>()
}

/// What was used up, what is promised, and what may be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ledger {
    account: Account,
    /// Kept back for the final answer until it is asked for.
    closing: Spent,
    /// Whether turns tell what they used, repeats and failures included.
    told: bool,
}

impl Ledger {
    /// An empty ledger that keeps back `closing` for the final answer.
    pub(super) fn new(plan: &Plan, closing: Spent) -> Self {
        Self {
            account: Account::new(plan.limits.ceiling()),
            closing,
            told: plan.spending > 0,
        }
    }

    /// What was used up so far.
    pub(super) fn used(&self) -> Spent {
        self.account.used()
    }

    /// What is kept back for the final answer.
    pub(super) fn closing(&self) -> Spent {
        self.closing
    }

    /// Whether the limits allow even the final answer.
    pub(super) fn affords_closing(&self) -> Result<(), Cut> {
        self.account.fits(self.closing)
    }

    /// The tokens that an answer may have when `among` requests share what is left; `None` means no limit. `last` is the
    /// final answer, for which some is kept back.
    pub(super) fn room(&self, input: u64, price: Price, last: bool, among: u64) -> Option<u64> {
        let keep = if last { Spent::default() } else { self.closing };
        self.account.room(input, price, keep, among)
    }

    /// Reserves a call. `last` takes it out of what was kept back for the final answer.
    pub(super) fn reserve(&mut self, turn: TurnId, most: Spent, last: bool) -> Result<(), Cut> {
        let keep = if last { Spent::default() } else { self.closing };
        self.account.fits(most + keep)?;
        self.closing = keep;
        self.account.hold(turn.0, most);
        Ok(())
    }

    /// A turn is over: what it used takes the place of what was reserved. Where nobody says what it used, it counts in
    /// full.
    pub(super) fn settle(&mut self, turn: TurnId, usage: Option<&Usage>, price: Option<Price>) {
        let held = self.account.release(turn.0);
        let used = match usage.filter(|usage| usage.counts_tokens() || usage.repeats > 0) {
            Some(usage) if self.told => Spent::of_turn(usage.repeats + 1, usage, price),
            Some(usage) => Spent::of(usage.input_tokens, usage.output_tokens, price),
            None if self.told => held.bound(),
            None => held,
        };
        self.account.settle(turn.0, used);
    }

    /// A turn failed: what it used all the same is booked. Where nobody says what that is, it counts in full.
    pub(super) fn settle_failed(&mut self, turn: TurnId, failure: &Failure, price: Option<Price>) {
        match &failure.used {
            Some(used) => {
                let used = Spent::of_turn(used.requests, &used.usage, price);
                self.account.settle(turn.0, used);
            }
            None => self.settle(turn, None, price),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_json_are_counted_right() {
        for text in [
            "",
            "plain",
            "a \"b\" \\ \n\r\t\u{8}\u{c}\u{1}\u{1f}",
            "é€😀",
        ] {
            let json = serde_json::to_string(text).expect("text is JSON");
            assert_eq!(json_bytes(text), json.len() as u64 + 2, "{text:?}");
        }
    }
}
