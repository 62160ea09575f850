//! The spending account of one deliberation: each request is reserved at its worst case before it is made, and the
//! final answer is reserved from the beginning. No limit is exceeded, and a limit that cuts still leaves an answer.
//!
//! The transports reserve in their own account ([`crate::spending`]), including retries; the total usage of a turn is
//! reported at its end.

use super::plan::Plan;
use crate::failure::Failure;
use crate::ids::TurnId;
use crate::request::{Prompt, Request};
use crate::spending::Account;
pub use crate::spending::{Cut, Price, Spent};
use crate::usage::Usage;

/// Bytes that a transport adds around a prompt: field names, model, sampling.
const WIRE_BYTES: u64 = 1024;

/// Returns the bytes of a prompt.
pub(super) fn prompt_bytes(prompt: &Prompt) -> u64 {
    parts(prompt).map(|part| part.len() as u64 + 2).sum()
}

/// Returns an upper bound of the bytes sent for a prompt, as JSON.
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

/// Returns an upper bound of the bytes sent for a request, as JSON.
pub(crate) fn request_bytes(request: &Request) -> u64 {
    let schema = request.schema.as_ref().map(ToString::to_string);
    // A schema is sent beside the prompt or in it as text.
    wire_bytes(&request.prompt) + schema.map_or(0, |s| 2 * json_bytes(&s))
}

/// Returns the bytes of a text in JSON, with blank lines around it.
pub(crate) fn json_bytes(text: &str) -> u64 {
    let escaped = |b: u8| match b {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..32 => 6,
        _ => 1,
    };
    4 + text.bytes().map(escaped).sum::<u64>()
}

/// The amounts used, reserved and allowed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ledger {
    account: Account,
    /// Reserved for the final answer until it is requested.
    closing: Spent,
    /// Whether turns report their usage, including retries and failures.
    told: bool,
}

impl Ledger {
    /// Creates an empty account that reserves `closing` for the final answer.
    pub(super) fn new(plan: &Plan, closing: Spent) -> Self {
        Self {
            account: Account::new(plan.limits.ceiling()),
            closing,
            told: plan.spending > 0,
        }
    }

    /// Returns the usage so far.
    pub(super) fn used(&self) -> Spent {
        self.account.used()
    }

    /// Returns the reservation for the final answer.
    pub(super) fn closing(&self) -> Spent {
        self.closing
    }

    /// Checks that the limits allow at least the final answer.
    pub(super) fn affords_closing(&self) -> Result<(), Cut> {
        self.account.fits(self.closing)
    }

    /// Returns the tokens available for an answer if `among` requests share the rest; `None` means no limit. `last` is
    /// the final answer, which has its own reservation.
    pub(super) fn room(&self, input: u64, price: Price, last: bool, among: u64) -> Option<u64> {
        let keep = if last { Spent::default() } else { self.closing };
        self.account.room(input, price, keep, among)
    }

    /// Reserves a call. `last` takes it from the reservation for the final answer.
    pub(super) fn reserve(&mut self, turn: TurnId, most: Spent, last: bool) -> Result<(), Cut> {
        let keep = if last { Spent::default() } else { self.closing };
        self.account.fits(most + keep)?;
        self.closing = keep;
        self.account.hold(turn.number.into(), most);
        Ok(())
    }

    /// Replaces the reservation of a finished turn with its usage. Without reported usage, the full reservation counts.
    pub(super) fn settle(&mut self, turn: TurnId, usage: Option<&Usage>, price: Option<Price>) {
        let held = self.account.release(turn.number.into());
        let used = match usage.filter(|usage| usage.counts_tokens() || usage.repeats > 0) {
            Some(usage) if self.told => Spent::of_turn(usage.repeats + 1, usage, price),
            Some(usage) => Spent::of(usage.input_tokens, usage.output_tokens, price),
            None if self.told => held.bound(),
            None => held,
        };
        self.account.settle(turn.number.into(), used);
    }

    /// Books the usage of a failed turn. Without reported usage, the full reservation counts.
    pub(super) fn settle_failed(&mut self, turn: TurnId, failure: &Failure, price: Option<Price>) {
        match &failure.used {
            Some(used) => {
                let used = Spent::of_turn(used.requests, &used.usage, price);
                self.account.settle(turn.number.into(), used);
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
