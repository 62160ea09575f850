//! The usage of a turn, and the precision of its amounts.

use serde::{Deserialize, Serialize};

/// The precision of an amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// As reported by the provider.
    #[default]
    Exact,
    /// An upper bound: a request ended without a count, and its whole reservation was booked. Shown as `≤`.
    AtMost,
    /// A lower bound: a request ended without a count, and nothing bounded it. Shown as `≥`.
    AtLeast,
    /// An estimate: a sum of upper and lower bounds. Shown as `≈`.
    About,
}

impl Certainty {
    /// Returns whether the provider reported all of it.
    pub fn is_exact(&self) -> bool {
        *self == Certainty::Exact
    }

    /// Returns the precision of the sum of two amounts.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (one, Certainty::Exact) => one,
            (Certainty::Exact, other) => other,
            (one, other) if one == other => one,
            _ => Certainty::About,
        }
    }

    /// Returns the sign before a number.
    pub fn sign(self) -> &'static str {
        match self {
            Certainty::Exact => "",
            Certainty::AtMost => "≤ ",
            Certainty::AtLeast => "≥ ",
            Certainty::About => "≈ ",
        }
    }
}

/// The usage of a turn, as reported by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the answer, including thinking.
    pub output_tokens: u64,
    /// Prompt tokens that the provider had cached.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Prompt tokens that the provider wrote to its cache, if it charges for that.
    #[serde(skip_serializing_if = "is_zero")]
    pub written_tokens: u64,
    /// Answer tokens spent on thinking.
    #[serde(skip_serializing_if = "is_zero")]
    pub thinking_tokens: u64,
    /// Price in US dollars, if known. Contains `login_usd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The part of the price that a login covers: the price of its tokens with a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login_usd: Option<f64>,
    /// Requests that are paid per token, at an unknown price.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// Requests beyond the first of each turn: retries, and answer formats that the service rejected.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: u64,
    /// The precision of the tokens and the price.
    #[serde(skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    /// Adds another call's usage. The sum of a known and an unknown price is the known one. Counts come from files and
    /// services: a sum beyond the largest number is that number.
    pub fn add(&mut self, other: &Usage) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cached_tokens, other.cached_tokens);
        add(&mut self.written_tokens, other.written_tokens);
        add(&mut self.thinking_tokens, other.thinking_tokens);
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (None, None) => None,
            (a, b) => Some(sane_usd(a) + sane_usd(b)),
        };
        self.login_usd = match (self.login_usd, other.login_usd) {
            (None, None) => None,
            (a, b) => Some(sane_usd(a) + sane_usd(b)),
        };
        add(&mut self.unpriced, other.unpriced);
        add(&mut self.repeats, other.repeats);
        self.certainty = self.certainty.and(other.certainty);
    }

    /// Returns the larger of two reports about one call: a service that reports less than before has lost something.
    #[must_use]
    pub fn larger(mut self, other: Usage) -> Self {
        let larger = |own: &mut u64, other: u64| *own = (*own).max(other);
        larger(&mut self.input_tokens, other.input_tokens);
        larger(&mut self.output_tokens, other.output_tokens);
        larger(&mut self.cached_tokens, other.cached_tokens);
        larger(&mut self.written_tokens, other.written_tokens);
        larger(&mut self.thinking_tokens, other.thinking_tokens);
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(own), Some(other)) => Some(own.max(other)),
            (own, other) => own.or(other),
        };
        self.certainty = self.certainty.and(other.certainty);
        self
    }

    /// Marks the total as a lower bound if some call did not report its usage. A total without tokens stays unchanged.
    pub fn with_uncounted(mut self, uncounted: bool) -> Self {
        if uncounted && self.counts_tokens() {
            self.certainty = self.certainty.and(Certainty::AtLeast);
        }
        self
    }

    /// Returns the usage of one request, with the price separated by who pays it. `priced`: whether the price of its
    /// model is known.
    #[must_use]
    pub fn billed(mut self, billing: Billing, priced: bool) -> Self {
        match billing {
            Billing::Login => self.login_usd = self.cost_usd,
            Billing::Free => {}
            Billing::Key | Billing::Unknown => {
                self.unpriced = u64::from(!priced && self.cost_usd.is_none());
            }
        }
        self
    }

    /// Returns the price that is paid, in US dollars, if any is known: without the part that a login covers.
    pub fn paid_usd(&self) -> Option<f64> {
        let paid = self.cost_usd? - self.login_usd.unwrap_or(0.0);
        // A sum of parts may end a rounding error below.
        (paid > 1e-9 || self.login_usd.is_none()).then_some(paid.max(0.0))
    }

    /// Describes the price: `$0.0123`, `≥ $0.0123` where a part is unknown, `price unknown`, and separately the price
    /// that the tokens of a login would have had: `≈ $0.0820 by login`. `None` if there is nothing to pay.
    pub fn price(&self) -> Option<String> {
        let paid = self.paid_usd().filter(|usd| *usd > 0.0);
        let mut parts = Vec::new();
        match (paid, self.unpriced) {
            (Some(usd), 0) => parts.push(money(usd, self.certainty)),
            (Some(usd), _) => parts.push(money(usd, self.certainty.and(Certainty::AtLeast))),
            (None, 0) => {}
            (None, _) => parts.push("price unknown".to_owned()),
        }
        if let Some(usd) = self.login_usd.filter(|usd| *usd > 0.0) {
            parts.push(format!("{} by login", money(usd, Certainty::About)));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the object for programs: counts that nobody reported are null, because no request uses none.
    pub fn to_json(&self) -> serde_json::Value {
        let mut value = serde_json::json!(self);
        if !self.counts_tokens() {
            value["input_tokens"] = serde_json::Value::Null;
            value["output_tokens"] = serde_json::Value::Null;
        }
        value
    }

    /// Returns the tokens of prompt and answer together.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns whether any token was counted: no request uses none.
    pub fn counts_tokens(&self) -> bool {
        self.input_tokens > 0 || self.output_tokens > 0
    }
}

/// Returns an amount of money that may be from a file: at most 1e6; 0 for negative, infinite and NaN values, which would
/// hide what other requests cost.
pub(crate) fn sane_usd(usd: Option<f64>) -> f64 {
    let usd = usd.unwrap_or(0.0);
    if usd.is_finite() {
        usd.clamp(0.0, 1e6)
    } else {
        0.0
    }
}

/// The way in which a member's backend is paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Billing {
    /// Per token, with an API key.
    Key,
    /// The login of an agent program pays: a subscription or other plan. A reported price is the price that the tokens
    /// would have with a key.
    Login,
    /// Free: runs on this machine.
    Free,
    /// Unknown.
    #[default]
    Unknown,
}

impl Billing {
    /// Returns the description "billed to …".
    pub fn words(self) -> &'static str {
        match self {
            Billing::Key => "key",
            Billing::Login => "login",
            Billing::Free => "free",
            Billing::Unknown => "unknown",
        }
    }
}

/// Formats `$0.0123`, with its mark if it is a bound. A bound is rounded away from the exact value.
pub fn money(usd: f64, certainty: Certainty) -> String {
    let shown = match certainty {
        Certainty::Exact | Certainty::About => usd,
        Certainty::AtMost => (usd * 1e4 - 1e-6).ceil() / 1e4,
        Certainty::AtLeast => (usd * 1e4 + 1e-6).floor() / 1e4,
    };
    format!("{}${shown:.4}", certainty.sign())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_file_never_overflow() {
        let most = Usage {
            input_tokens: u64::MAX,
            output_tokens: u64::MAX - 1,
            cached_tokens: u64::MAX,
            written_tokens: u64::MAX,
            thinking_tokens: u64::MAX,
            unpriced: u64::MAX,
            repeats: u64::MAX,
            ..Usage::default()
        };
        let mut sum = most;
        sum.add(&most);
        assert_eq!((sum.output_tokens, sum.repeats), (u64::MAX, u64::MAX));
        assert_eq!(sum.tokens(), u64::MAX);
    }

    #[test]
    fn no_amount_of_a_file_hides_another() {
        for wrong in [-5.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let call = |usd| Usage {
                cost_usd: Some(usd),
                login_usd: Some(usd),
                ..Usage::default()
            };
            let mut sum = call(0.25);
            sum.add(&call(wrong));
            assert_eq!((sum.cost_usd, sum.login_usd), (Some(0.25), Some(0.25)));
        }
    }

    #[test]
    fn the_price_tells_keys_logins_and_unknown_prices_apart() {
        let call = |billing, usd, priced| {
            let usage = Usage {
                input_tokens: 9,
                cost_usd: usd,
                ..Usage::default()
            };
            usage.billed(billing, priced)
        };
        let key = call(Billing::Key, Some(0.0114), true);
        let unknown = call(Billing::Key, None, false);
        let login = call(Billing::Login, Some(0.082), false);
        let codex = call(Billing::Login, None, false);
        let free = call(Billing::Free, None, false);
        for (calls, price, paid) in [
            (vec![key], Some("$0.0114"), Some(0.0114)),
            (vec![key, key], Some("$0.0228"), Some(0.0228)),
            (vec![key, unknown], Some("≥ $0.0114"), Some(0.0114)),
            (vec![unknown], Some("price unknown"), None),
            (vec![login], Some("≈ $0.0820 by login"), None),
            (vec![login, codex], Some("≈ $0.0820 by login"), None),
            (
                vec![key, login],
                Some("$0.0114, ≈ $0.0820 by login"),
                Some(0.0114),
            ),
            (
                vec![unknown, login],
                Some("price unknown, ≈ $0.0820 by login"),
                None,
            ),
            (vec![codex], None, None),
            (vec![free], None, None),
        ] {
            let mut sum = Usage::default();
            calls.iter().for_each(|call| sum.add(call));
            assert_eq!(sum.price().as_deref(), price, "{sum:?}");
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            match (sum.paid_usd(), paid) {
                (None, None) => {}
                (Some(a), Some(b)) => assert!(near(a, b), "{sum:?}"),
                other => panic!("{other:?} of {sum:?}"),
            }
        }
    }
}
