//! Prices, limits, and the account that enforces them. Input: the worst case of a request before it is sent, and its
//! usage afterwards. Output: whether it may be sent, and the total.
//!
//! A token is at least one byte in every byte-based tokenizer, so the bytes of a request are an upper bound of its
//! prompt tokens. No smaller bound holds for every text and model.

use crate::usage::{Certainty, Usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{Add, AddAssign, Sub};

pub use crate::usage::money;

/// Tokens that a service adds around the parts of a prompt.
pub const FRAMING_TOKENS: u64 = 64;
/// Minimum limit for the tokens of an answer; fewer would be useless.
pub const ANSWER_TOKENS_MIN: u32 = 64;
/// Pico-dollars in a millionth of a dollar.
const PICO_IN_MICRO: u64 = 1_000_000;

/// The price of a token in pico-dollars: one US dollar per million tokens is a million of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Per prompt token.
    pub input: u64,
    /// Per answer token.
    pub output: u64,
}

impl Price {
    /// Converts from US dollars per million tokens, rounding up.
    pub fn per_million(input: f64, output: f64) -> Self {
        let pico = |usd: f64| (usd.clamp(0.0, 1e9) * 1e6).ceil() as u64;
        Self {
            input: pico(input),
            output: pico(output),
        }
    }
}

/// An amount spent or to be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Requests to models.
    pub calls: u64,
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// Money, in pico-dollars.
    pub pico_usd: u64,
    /// The precision of the amounts.
    #[serde(default, skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

impl Add for Spent {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            pico_usd: self.pico_usd.saturating_add(other.pico_usd),
            certainty: self.certainty.and(other.certainty),
        }
    }
}

impl Sub for Spent {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            pico_usd: self.pico_usd.saturating_sub(other.pico_usd),
            certainty: self.certainty,
        }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Spent {
    /// Returns the worst case of one request. An unknown price counts as zero: money is not limited then.
    pub fn at_most(prompt_bytes: u64, answer_tokens: u32, price: Option<Price>) -> Self {
        let input = prompt_bytes.saturating_add(FRAMING_TOKENS);
        Self::of(input, answer_tokens.into(), price)
    }

    /// Returns one request with this usage.
    pub fn of(input: u64, output: u64, price: Option<Price>) -> Self {
        let price = price.unwrap_or_default();
        Self {
            calls: 1,
            tokens: input.saturating_add(output),
            pico_usd: input
                .saturating_mul(price.input)
                .saturating_add(output.saturating_mul(price.output)),
            certainty: Certainty::Exact,
        }
    }

    /// Returns the usage of a turn, given the number of its requests. The provider's own price takes precedence over
    /// the table's.
    pub fn of_turn(requests: u64, usage: &Usage, price: Option<Price>) -> Self {
        let by_table = Self::of(usage.input_tokens, usage.output_tokens, price);
        Self {
            calls: requests,
            pico_usd: usage.cost_usd.map_or(by_table.pico_usd, pico),
            certainty: usage.certainty,
            ..by_table
        }
    }

    /// Returns this amount `n` times.
    #[must_use]
    pub fn times(self, n: u64) -> Self {
        Self {
            calls: self.calls.saturating_mul(n),
            tokens: self.tokens.saturating_mul(n),
            pico_usd: self.pico_usd.saturating_mul(n),
            certainty: self.certainty,
        }
    }

    /// Marks the amount as an upper bound.
    #[must_use]
    pub fn bound(mut self) -> Self {
        self.certainty = self.certainty.and(Certainty::AtMost);
        self
    }

    /// Describes requests, tokens and, if any, money. Bounds are marked.
    pub fn words(&self, between: &str) -> String {
        let plural = |n: u64, noun: &str| match n {
            1 => format!("1 {noun}"),
            n => format!("{n} {noun}s"),
        };
        let mut words = plural(self.calls, "call");
        words.push_str(between);
        words.push_str(self.certainty.sign());
        words.push_str(&plural(self.tokens, "token"));
        if self.pico_usd > 0 {
            words.push_str(between);
            words.push_str(&money(self.usd(), self.certainty));
        }
        words
    }

    /// Returns the money in US dollars, for display.
    pub fn usd(&self) -> f64 {
        self.pico_usd as f64 / 1e12
    }
}

/// The reserve that a turn must leave for a later request: the conclusion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The part of its worst case that does not depend on this turn.
    pub fixed: Spent,
    /// The cost per token of this turn's answer, which is part of its prompt.
    pub each_token: Spent,
    /// Number of turns of the same round still to come, which share the rest.
    pub others: u64,
}

impl From<Spent> for Keep {
    fn from(fixed: Spent) -> Self {
        Self {
            fixed,
            ..Self::default()
        }
    }
}

impl Keep {
    /// Returns whether nothing is reserved.
    pub fn is_nothing(&self) -> bool {
        *self == Keep::default()
    }

    /// Returns the additional cost of an answer, given the number of its tokens.
    pub fn echo(&self, tokens: u64) -> Spent {
        Spent {
            calls: 0,
            tokens: self.each_token.tokens.saturating_mul(tokens),
            pico_usd: self.each_token.pico_usd.saturating_mul(tokens),
            certainty: Certainty::Exact,
        }
    }
}

/// Converts a limit in US dollars to millionths, rounding down.
pub fn micro_usd(usd: f64) -> u64 {
    (usd.clamp(0.0, 1e9) * 1e6 + 1e-6).floor() as u64
}

/// Converts US dollars to pico-dollars, rounded.
pub fn pico(usd: f64) -> u64 {
    (usd.clamp(0.0, 1e6) * 1e12).round() as u64
}

/// The limit that prevents a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// Requests.
    Calls,
    /// Tokens.
    Tokens,
    /// Money.
    Money,
    /// Time.
    Time,
}

impl Cut {
    /// Returns the name of the limit.
    pub fn words(self) -> &'static str {
        match self {
            Cut::Calls => "the limit of calls",
            Cut::Tokens => "the limit of tokens",
            Cut::Money => "the limit of money",
            Cut::Time => "the limit of time",
        }
    }
}

/// Spending limits. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Requests to models.
    pub calls: Option<u64>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub micro_usd: Option<u64>,
}

impl Ceiling {
    /// Returns the money limit in pico-dollars.
    fn pico_usd(&self) -> Option<u64> {
        self.micro_usd.map(|m| m.saturating_mul(PICO_IN_MICRO))
    }

    /// Returns whether the limits depend on the length of an answer.
    pub fn bounds_answers(&self) -> bool {
        self.tokens.is_some() || self.micro_usd.is_some()
    }
}

/// The amounts spent, reserved and allowed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    ceiling: Ceiling,
    /// The original money limit, if it was lowered meanwhile.
    own: Option<Option<u64>>,
    used: Spent,
    held: BTreeMap<u64, Spent>,
}

impl Account {
    /// Creates an empty account with these limits.
    pub fn new(ceiling: Ceiling) -> Self {
        Self {
            ceiling,
            ..Self::default()
        }
    }

    /// Returns the limits.
    pub fn ceiling(&self) -> Ceiling {
        self.ceiling
    }

    /// Lowers the money limit so that only `pico_usd` can still be spent. Never raises it above the original limit.
    pub fn leave_money(&mut self, pico_usd: u64) {
        let own = *self.own.get_or_insert(self.ceiling.micro_usd);
        let most = self.used.pico_usd.saturating_add(pico_usd) / PICO_IN_MICRO;
        self.ceiling.micro_usd = Some(own.map_or(most, |own| own.min(most)));
    }

    /// Returns whether the money limit was lowered.
    pub fn is_lowered(&self) -> bool {
        self.own.is_some_and(|own| own != self.ceiling.micro_usd)
    }

    /// Returns the amount spent.
    pub fn used(&self) -> Spent {
        self.used
    }

    /// Returns the amount spent and reserved.
    pub fn committed(&self) -> Spent {
        self.held.values().fold(self.used, |sum, held| sum + *held)
    }

    /// Returns the ids of the reservations, in order.
    pub fn held(&self) -> impl Iterator<Item = u64> {
        self.held.keys().copied()
    }

    /// Checks whether an additional amount fits.
    ///
    /// # Errors
    /// The limit that prevents it.
    pub fn fits(&self, more: Spent) -> Result<(), Cut> {
        // The account of a server without limits holds a reservation for each of a thousand requests.
        if self.ceiling == Ceiling::default() {
            return Ok(());
        }
        let all = self.committed() + more;
        let over = |limit: Option<u64>, n: u64| limit.is_some_and(|most| n > most);
        if over(self.ceiling.calls, all.calls) {
            return Err(Cut::Calls);
        }
        if over(self.ceiling.tokens, all.tokens) {
            return Err(Cut::Tokens);
        }
        match over(self.ceiling.pico_usd(), all.pico_usd) {
            true => Err(Cut::Money),
            false => Ok(()),
        }
    }

    /// Returns the maximum answer tokens that keep a request within an equal share of the rest without `keep`, if
    /// `among` requests share it. `input` is the maximum of its prompt. `None` means no limit.
    pub fn room(&self, input: u64, price: Price, keep: impl Into<Keep>, among: u64) -> Option<u64> {
        if !self.ceiling.bounds_answers() {
            return None;
        }
        let keep = keep.into();
        let all = self.committed() + keep.fixed;
        let among = among.max(1);
        let share = |limit: u64, used: u64| limit.saturating_sub(used) / among;
        let tokens = self.ceiling.tokens.map(|most| {
            let left = share(most, all.tokens).saturating_sub(input);
            left / keep.each_token.tokens.saturating_add(1)
        });
        let money = self.ceiling.pico_usd().and_then(|most| {
            let left = share(most, all.pico_usd).checked_sub(input.saturating_mul(price.input));
            match (left, price.output.saturating_add(keep.each_token.pico_usd)) {
                (None, _) => Some(0),
                (Some(_), 0) => None,
                (Some(left), output) => Some(left / output),
            }
        });
        match (tokens, money) {
            (Some(tokens), Some(money)) => Some(tokens.min(money)),
            (tokens, money) => tokens.or(money),
        }
    }

    /// Returns the money left without `keep`, in pico-dollars. `None` means no limit.
    pub fn left_pico_usd(&self, keep: Spent) -> Option<u64> {
        let used = (self.committed() + keep).pico_usd;
        self.ceiling
            .pico_usd()
            .map(|most| most.saturating_sub(used))
    }

    /// Reserves an amount under an id.
    ///
    /// # Errors
    /// The limit that prevents it; nothing is reserved then.
    pub fn reserve(&mut self, id: u64, most: Spent) -> Result<(), Cut> {
        self.fits(most)?;
        self.hold(id, most);
        Ok(())
    }

    /// Reserves without checking the limits.
    pub fn hold(&mut self, id: u64, most: Spent) {
        self.held.insert(id, most);
    }

    /// Releases a reservation and returns it.
    pub fn release(&mut self, id: u64) -> Spent {
        self.held.remove(&id).unwrap_or_default()
    }

    /// Replaces a reservation with the amount spent.
    pub fn settle(&mut self, id: u64, used: Spent) {
        self.release(id);
        self.used += used;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_whole_and_rounded_up() {
        let price = Price::per_million(0.15, 0.0375);
        assert_eq!((price.input, price.output), (150_000, 37_500));
        let call = Spent::of(1_000_000, 0, Some(price));
        assert_eq!(call.pico_usd, 150_000 * 1_000_000);
        assert!((call.usd() - 0.15).abs() < 1e-12);
        assert_eq!(Price::per_million(1e-7, 0.0).input, 1);
    }

    #[test]
    fn a_sum_is_no_bound_that_its_parts_do_not_make() {
        use Certainty::{About, AtLeast, AtMost, Exact};
        for (one, two, sum) in [
            (Exact, Exact, Exact),
            (Exact, AtMost, AtMost),
            (Exact, AtLeast, AtLeast),
            (Exact, About, About),
            (AtMost, AtMost, AtMost),
            (AtLeast, AtLeast, AtLeast),
            (AtMost, AtLeast, About),
            (About, AtMost, About),
            (About, AtLeast, About),
        ] {
            let spent = |certainty| Spent {
                calls: 1,
                tokens: 20,
                pico_usd: pico(0.01),
                certainty,
            };
            let used = |certainty| Usage {
                certainty,
                ..Usage::default()
            };
            for (a, b) in [(one, two), (two, one)] {
                assert_eq!((spent(a) + spent(b)).certainty, sum);
                let mut usage = used(a);
                usage.add(&used(b));
                assert_eq!(usage.certainty, sum);
            }
        }
        let both = Spent {
            tokens: 20,
            certainty: AtMost.and(AtLeast),
            ..Spent::default()
        };
        assert_eq!(both.words(", "), "0 calls, ≈ 20 tokens");
        assert_eq!(money(0.01, About), "≈ $0.0100");
    }

    #[test]
    fn an_answer_is_given_what_is_left_of_each_limit() {
        let price = Price {
            input: 1_000_000,
            output: 2_000_000,
        };
        let ceiling = |tokens, micro_usd| Ceiling {
            calls: None,
            tokens,
            micro_usd,
        };
        let none = Spent::default();
        for (limits, input, keep, among, room) in [
            (ceiling(None, None), 100, none, 1, None),
            (ceiling(Some(1000), None), 100, none, 1, Some(900)),
            (ceiling(Some(1000), None), 100, none, 2, Some(400)),
            (ceiling(Some(50), None), 100, none, 1, Some(0)),
            (ceiling(None, Some(1100)), 100, none, 1, Some(500)),
            (ceiling(Some(300), Some(1100)), 100, none, 1, Some(200)),
            (ceiling(None, Some(99)), 100, none, 1, Some(0)),
            (
                ceiling(Some(1000), None),
                100,
                Spent::of(300, 0, None),
                1,
                Some(600),
            ),
        ] {
            let account = Account::new(limits);
            assert_eq!(account.room(input, price, keep, among), room, "{limits:?}");
            let free = Price::default();
            let money = Account::new(ceiling(None, limits.micro_usd));
            assert_eq!(money.room(input, free, keep, among), None);
        }
    }

    #[test]
    fn what_others_spend_lowers_the_money_and_never_raises_it() {
        for (own, spent, left, most, lowered) in [
            (None, 0, 5, 5, true),
            (None, 3, 5, 8, true),
            (Some(7), 3, 5, 7, false),
            (Some(7), 3, 2, 5, true),
            (Some(7), 0, 0, 0, true),
        ] {
            let mut account = Account::new(Ceiling {
                micro_usd: own,
                ..Ceiling::default()
            });
            let used = Spent {
                pico_usd: spent * PICO_IN_MICRO,
                ..Spent::default()
            };
            account.settle(1, used);
            account.leave_money(0);
            account.leave_money(left * PICO_IN_MICRO);
            assert_eq!(
                account.ceiling().micro_usd,
                Some(most),
                "{own:?} {spent} {left}"
            );
            assert_eq!(account.is_lowered(), lowered, "{own:?} {spent} {left}");
        }
    }

    #[test]
    fn what_is_reserved_counts_until_it_is_settled() {
        let mut account = Account::new(Ceiling {
            calls: Some(2),
            tokens: Some(1000),
            micro_usd: None,
        });
        assert_eq!(account.reserve(1, Spent::of(600, 0, None)), Ok(()));
        assert_eq!(
            account.reserve(2, Spent::of(600, 0, None)),
            Err(Cut::Tokens)
        );
        account.settle(1, Spent::of(10, 5, None));
        assert_eq!(account.reserve(2, Spent::of(600, 0, None)), Ok(()));
        assert_eq!(account.reserve(3, Spent::of(1, 0, None)), Err(Cut::Calls));
        account.release(2);
        assert_eq!(account.used().tokens, 15);
        assert_eq!(account.committed(), account.used());
    }
}
