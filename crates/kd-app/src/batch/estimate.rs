//! Estimates what a batch will spend.

use super::how::{How, plain};
use crate::deliberation;
use crate::error::UserError;
use crate::kingdom::Kingdom;
use kd_core::Member;
use kd_core::batch::{ANSWER_TOKENS_HIGH, ANSWER_TOKENS_LOW, Estimate};
use kd_core::config::Config;
use kd_core::cost::Cost;
use kd_core::deliberation::with_answers;
use kd_core::duet::DuetLimits;
use kd_core::spending::{Price, Spent};
use kd_sql::batch::Asked;
use std::collections::HashSet;

/// Estimates the questions that would be asked: not those whose key `knows` knows.
pub(super) fn of(
    kingdom: &Kingdom,
    how: &How,
    questions: &[Asked],
    fresh: bool,
    provider: bool,
    knows: impl Fn(&str) -> Result<bool, UserError>,
) -> Result<Estimate, UserError> {
    let mut estimate = Estimate {
        questions: questions.len() as u64,
        usd: Some(kd_core::batch::Range::default()),
        ..Estimate::default()
    };
    let one = Each::of(kingdom, how, provider)?;
    let mut seen = HashSet::new();
    for question in questions {
        if !fresh && (!seen.insert(question.key.as_str()) || knows(&question.key)?) {
            continue;
        }
        let (low, high, known) = one.question(kingdom, &question.text)?;
        estimate.add(low, high, known);
    }
    Ok(estimate)
}

/// The spending of one question.
enum Each<'h> {
    /// The members, each asked once, and the chair that concludes, if any.
    Ask(Vec<Seat>, Option<Seat>),
    /// The two members and the arbiter, and the maximum of their messages.
    Think([Seat; 3], u64),
    /// The members, and whether they are asked through provider batches.
    Deliberate(&'h [String], bool),
}

/// A member's price and its longest answer.
#[derive(Clone, Copy)]
struct Seat {
    price: Option<Price>,
    longest: u64,
}

impl Seat {
    fn of(config: &Config, member: &Member, provider: bool) -> Self {
        let price = Cost::of(config, member).price();
        Self {
            price: match provider {
                true => super::provider::price(config, &member.backend, price),
                false => price,
            },
            longest: member
                .sampling
                .max_tokens
                .map_or(ANSWER_TOKENS_HIGH, u64::from),
        }
    }

    fn call(&self, bytes: u64, others: u64, answer: u64) -> Spent {
        Estimate::call(bytes, others, answer.min(self.longest), self.price)
    }

    fn is_priced(&self) -> bool {
        self.price.is_some()
    }
}

impl<'h> Each<'h> {
    fn of(kingdom: &Kingdom, how: &'h How, provider: bool) -> Result<Self, UserError> {
        let config = kingdom.config();
        let seat = |member: &Member| Seat::of(config, member, provider);
        Ok(match how {
            How::Ask(ask) => {
                let prepared = kingdom.council(ask.clone())?.asked(plain("?"))?;
                let roster = prepared.roster();
                let members = roster.members().iter();
                let members: Vec<Seat> = members.map(seat).collect();
                let concludes = config.council.conclude && !ask.no_conclusion && members.len() > 1;
                let chair = roster.chair().or_else(|| roster.members().first());
                let chair = chair.filter(|_| concludes);
                Each::Ask(members, chair.map(seat))
            }
            How::Think(think) => {
                let debate = kingdom.debate(think.clone())?;
                let [fast, rigorous, arbiter] = debate.members();
                let limits = DuetLimits::default();
                let most = think.messages_max.unwrap_or(limits.exchanges_max);
                Each::Think([seat(fast), seat(rigorous), seat(arbiter)], most.into())
            }
            How::Deliberate(deliberate) => Each::Deliberate(&deliberate.members, provider),
        })
    }

    /// Returns what a question spends at least and at most, and whether all prices are known.
    fn question(&self, kingdom: &Kingdom, text: &str) -> Result<(Spent, Spent, bool), UserError> {
        let bytes = text.len() as u64;
        let (short, long) = (ANSWER_TOKENS_LOW, ANSWER_TOKENS_HIGH);
        Ok(match self {
            Each::Ask(members, chair) => {
                let sum = |answer: u64| {
                    let each = members.iter().map(|seat| seat.call(bytes, 0, answer));
                    let read: u64 = members.iter().map(|seat| seat.longest.min(answer)).sum();
                    let last = chair.iter().map(|seat| seat.call(bytes, read, answer));
                    each.chain(last)
                        .fold(Spent::default(), |sum, one| sum + one)
                };
                let known = members.iter().chain(chair).all(Seat::is_priced);
                (sum(short), sum(long), known)
            }
            Each::Think(seats, most) => {
                let [fast, rigorous, arbiter] = seats;
                let low = fast.call(bytes, 0, short) + rigorous.call(bytes, short, short);
                let mut high = Spent::default();
                for message in 0..*most {
                    let seat = if message % 2 == 0 { fast } else { rigorous };
                    high += seat.call(bytes, message * seat.longest, long);
                }
                high += arbiter.call(bytes, most * arbiter.longest, long);
                (low, high, seats.iter().all(Seat::is_priced))
            }
            Each::Deliberate(members, provider) => {
                let env = kingdom.env().quiet(true);
                let mut planned = {
                    let layout = kingdom.layout();
                    deliberation::plan(kingdom.config(), layout.as_ref(), text, members, &env)?
                };
                for seat in planned.plan.seats.iter_mut().filter(|_| *provider) {
                    let backend = &seat.member.backend;
                    seat.price = super::provider::price(kingdom.config(), backend, seat.price);
                }
                let longest = u64::from(planned.plan.limits.answer_tokens);
                let (low, known) = with_answers(&planned.plan, short.min(longest));
                let (high, _) = with_answers(&planned.plan, longest);
                (low, high, known)
            }
        })
    }
}
