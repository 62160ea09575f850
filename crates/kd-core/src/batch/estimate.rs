//! The estimate of a batch before it runs: calls, tokens and money, each with its interval.

use crate::spending::{Price, Spent};
use serde::{Deserialize, Serialize};

/// Tokens of a prompt besides the question and the texts of others.
const FRAME_TOKENS: u64 = 300;
/// Tokens of a short answer: the lower end of the interval.
pub const ANSWER_TOKENS_LOW: u64 = 50;
/// Tokens of a long answer where none is set: the upper end.
pub const ANSWER_TOKENS_HIGH: u64 = 4096;

/// An amount with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Range<T> {
    /// With short answers and nothing beyond the first pass.
    pub low: T,
    /// With long answers and everything that the protocol may ask for. Retries are not included.
    pub high: T,
}

/// The estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Questions in the file.
    pub questions: u64,
    /// Questions that are asked: the others are equal to one of these, or were answered before.
    pub asked: u64,
    /// Requests to models.
    pub calls: Range<u64>,
    /// Tokens of prompts and answers.
    pub tokens: Range<u64>,
    /// US dollars; `None` if the price of a member is unknown.
    pub usd: Option<Range<f64>>,
}

impl Estimate {
    /// Adds a question with its minimum and maximum spending; `known` says that all prices are known.
    pub fn add(&mut self, low: Spent, high: Spent, known: bool) {
        if self.asked == 0 {
            self.usd = Some(Range::default());
        }
        self.asked += 1;
        self.calls.low += low.calls;
        self.calls.high += high.calls;
        self.tokens.low += low.tokens;
        self.tokens.high += high.tokens;
        self.usd = match (self.usd, known) {
            (Some(usd), true) => Some(Range {
                low: usd.low + low.usd(),
                high: usd.high + high.usd(),
            }),
            _ => None,
        };
    }

    /// Returns the spending of a call whose prompt has a question of `question_bytes` bytes, and `others` tokens of
    /// other texts.
    pub fn call(question_bytes: u64, others: u64, answer: u64, price: Option<Price>) -> Spent {
        Spent::of(question_bytes / 4 + FRAME_TOKENS + others, answer, price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_price_leaves_the_money_open_and_counts_the_rest() {
        let price = Price::per_million(1.0, 5.0);
        let low = Estimate::call(400, 0, 50, Some(price));
        let high = Estimate::call(400, 1000, 4096, Some(price));
        assert_eq!((low.tokens, high.tokens), (450, 5496));
        let mut estimate = Estimate::default();
        estimate.add(low, high, true);
        estimate.add(low, high, true);
        let usd = estimate.usd.unwrap();
        assert!((usd.low - 0.0013).abs() < 1e-9, "{usd:?}");
        assert!((usd.high - 0.04376).abs() < 1e-9, "{usd:?}");
        estimate.add(low, high, false);
        assert_eq!(
            (estimate.usd, estimate.asked, estimate.calls.high),
            (None, 3, 3)
        );
    }
}
