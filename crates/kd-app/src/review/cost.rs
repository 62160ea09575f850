//! Estimates the cost of a review before any member is asked.

use kd_core::config::Config;
use kd_core::cost::Cost;
use kd_core::review::{JUDGES_MAX, OpenReview};
use kd_core::spending::Price;
use serde::Serialize;

/// Tokens of an answer without findings, and of a long one if the member has no limit.
const ANSWER_TOKENS: (u64, u64) = (60, 2500);
/// Tokens of a prompt with findings to vote on or compare, and of its answer.
const VOTE_TOKENS: (u64, u64) = (6000, 800);

/// The expected range: from no findings to many. Excludes retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Requests.
    pub calls: (u64, u64),
    /// Tokens of prompts and answers.
    pub tokens: (u64, u64),
    /// US dollars; `None` if a price is unknown.
    pub usd: Option<(f64, f64)>,
}

impl Estimate {
    pub(super) fn of(config: &Config, opening: &OpenReview) -> Self {
        let members = &opening.members;
        let mut estimate = Self {
            usd: Some((0.0, 0.0)),
            ..Self::default()
        };
        for (at, member) in members.iter().enumerate() {
            let price = Cost::of(config, member).price();
            let answer = member
                .sampling
                .max_tokens
                .map_or(ANSWER_TOKENS.1, u64::from);
            for part in 0..opening.parts.len() {
                let (texts, all) = opening.request_bytes(at, part);
                estimate.add(
                    price,
                    (texts / 5, all / 3),
                    (ANSWER_TOKENS.0.min(answer), answer),
                    1,
                );
            }
            if members.len() > 1 {
                // Up to three members also decide whether unclear pairs of others' findings are the same.
                let judges = at < JUDGES_MAX && members.len() >= JUDGES_MAX;
                for _ in 0..=usize::from(judges) {
                    estimate.add(price, (0, VOTE_TOKENS.0), (0, VOTE_TOKENS.1.min(answer)), 0);
                }
            }
        }
        estimate
    }

    /// Adds a request: prompt and answer tokens as ranges.
    fn add(&mut self, price: Option<Price>, prompt: (u64, u64), answer: (u64, u64), least: u64) {
        self.calls.0 += least;
        self.calls.1 += 1;
        self.tokens.0 += prompt.0 + answer.0;
        self.tokens.1 += prompt.1 + answer.1;
        self.usd = self.usd.zip(price).map(|((low, high), price)| {
            let usd = |prompt: u64, answer: u64| {
                (prompt as f64 * price.input as f64 + answer as f64 * price.output as f64) / 1e12
            };
            (
                low + usd(prompt.0, answer.0),
                high + usd(prompt.1, answer.1),
            )
        });
    }
}
