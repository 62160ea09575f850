//! Estimates the cost of a plan before it runs. Input: a plan. Output: calls, tokens and price of one pass.

use super::answer::AnswerKind;
use super::count::{Source, rule_of};
use super::ledger::Spent;
use super::plan::{MemberCounts, Plan};
use super::protocols::{self, Step};
use super::stages;
use super::stages::sameness::{READINGS, STAGE, judges};
use crate::ids::SeatName;
use crate::roles::Duty;
use serde::Serialize;

impl MemberCounts {
    /// Returns the counts for the first pass of a plan.
    pub fn of(plan: &Plan) -> Self {
        let at_the_table = plan.at_the_table();
        let with = |duty| {
            let has = |s: &&usize| plan.seats[**s].has(duty);
            at_the_table.iter().filter(has).count() as u64
        };
        let everybody = at_the_table.len() as u64;
        let voting = stages::calls_of_a_vote(plan);
        let open = stages::needs_ballots(plan);
        Self {
            // If no role gives opinions, all members do.
            opining: match with(Duty::Opine) {
                0 => everybody,
                some => some,
            },
            reviewing: with(Duty::Review),
            voting,
            open_voting: if open { voting } else { 0 },
            attacking: everybody.saturating_sub(1),
            arbiter: u64::from(!plan.with(Duty::Arbitrate).is_empty()),
            judge: match plan.answers {
                _ if plan.judged && plan.answers.is_comparable() => READINGS as u64,
                AnswerKind::Judged => 1,
                _ => 0,
            },
            rounds: plan.rounds.max(1).into(),
            samples: plan.samples.max(1).into(),
        }
    }
}

/// The estimated cost of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Calls if none fails: the maximum of the protocol.
    pub calls: u64,
    /// Tokens: prompts at four bytes per token, answers at half their maximum.
    pub tokens: u64,
    /// US dollars; `None` if the price of a member is unknown.
    pub usd: Option<f64>,
    /// Maximum US dollars that the limits allow; `None` if there is no limit.
    pub usd_max: Option<f64>,
}

/// Tokens of a prompt besides the question and the text of others.
const FRAME_TOKENS: u64 = 300;

/// Estimates the cost of one pass of a plan.
pub fn forecast(plan: &Plan) -> Forecast {
    let (spent, known) = with_answers(plan, u64::from(plan.limits.answer_tokens) / 2);
    let calls = spent.calls;
    Forecast {
        calls,
        tokens: spent.tokens,
        usd: known.then(|| spent.usd()),
        usd_max: usd_max(plan),
    }
}

/// Returns what one pass spends if every answer has this many tokens, and whether all prices are known.
pub fn with_answers(plan: &Plan, answer: u64) -> (Spent, bool) {
    let counts = MemberCounts::of(plan);
    let calls = protocols::find(&plan.protocol).map_or(1, |p| (p.calls)(&counts));
    let calls = calls + u64::from(plan.ask_back.is_some());
    let prompt = plan.question.len() as u64 / 4 + FRAME_TOKENS;
    // Later stages read the output of earlier ones.
    let read = answer * counts.opining / 2;
    let mut spent = Spent::default();
    let mut known = true;
    for at in 0..calls {
        let seat = &plan.seats[at as usize % plan.seats.len().max(1)];
        known &= seat.price.is_some();
        let more = if at < counts.opining { 0 } else { read };
        spent += Spent::of(prompt + more, answer, seat.price);
    }
    (spent, known)
}

/// Returns the members that compare open answers under a plan, once per reading; empty if its answers have keys or its
/// protocol does not compare.
pub fn compared_by(plan: &Plan) -> Vec<SeatName> {
    let compares = |step: &Step| matches!(step, Step::Ask(stage) if stage.name == STAGE.name);
    let protocol = protocols::find(&plan.protocol);
    let comparable = plan.answers.is_comparable() && plan.judged;
    match protocol.is_some_and(|p| p.steps.iter().any(compares)) && comparable {
        true => judges(plan)
            .into_iter()
            .map(|seat| plan.seats[seat].name().clone())
            .collect(),
        false => Vec::new(),
    }
}

/// Returns the name of the rule that decides under a plan; `None` if no rule does, but the middle of the estimates.
pub fn counted_by(plan: &Plan) -> Option<&'static str> {
    let steps = protocols::find(&plan.protocol).map_or(&[][..], |protocol| protocol.steps);
    let counts = |step: &Step| match step {
        Step::Count(source) => Some(*source),
        _ => None,
    };
    match steps
        .iter()
        .rev()
        .find_map(counts)
        .unwrap_or(Source::Ballots)
    {
        Source::Estimates => None,
        source => Some(rule_of(plan, source).name),
    }
}

/// Returns the money limit, or the price of all tokens at the highest rate if that is less.
fn usd_max(plan: &Plan) -> Option<f64> {
    let highest = plan.seats.iter().map(|seat| seat.price);
    let highest = highest.map(|price| price.map(|p| p.input.max(p.output)));
    let highest: Option<Vec<u64>> = highest.collect();
    let by_tokens = highest.and_then(|prices| {
        let most = prices.into_iter().max()?;
        Some(plan.limits.tokens?.saturating_mul(most) as f64 / 1e12)
    });
    let limit = plan.limits.micro_usd.map(|micro| micro as f64 / 1e6);
    match (limit, by_tokens) {
        (Some(limit), Some(tokens)) => Some(limit.min(tokens)),
        (limit, tokens) => limit.or(tokens),
    }
}
