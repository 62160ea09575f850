//! Plans a review within its limits, before any member is asked.
//!
//! Input: the change, the members, their prices and the limits. Output: how much of the findings one request may show,
//! and what requests for findings must leave for votes, comparisons and second requests, so that reviews do not use up
//! the limit. If even the smallest votes do not fit, the plan says what would do.

use super::{OpenReview, ask, counted};
use crate::deliberation::hide::Hidden;
use crate::deliberation::request_bytes;
use crate::request::Request;
use crate::spending::{Account, Ceiling, Spent, money};
use crate::usage::Certainty;

/// Tried in this order: bytes of findings in one request, and tokens of one answer.
const SIZES: [(u64, u32); 5] = [
    (48 << 10, 4096),
    (24 << 10, 4096),
    (12 << 10, 4096),
    (6 << 10, 4096),
    LEAST,
];
/// The smallest plan: a few findings, and answers that are long enough for them.
const LEAST: (u64, u32) = (6 << 10, 1024);

/// Maximum number of judges: of any three members, one made neither finding of a pair.
pub const JUDGES_MAX: usize = 3;

/// The reserves of a review.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// Maximum bytes of findings in one request for votes or comparisons.
    pub(super) bytes: u64,
    /// The reserve for the votes of each member.
    votes: Vec<Spent>,
    /// Maximum number of members asked about unclear findings.
    pub(super) judges: usize,
    /// The reserve for them.
    judge: Spent,
    /// The reserve for a second request to each member whose reply cannot be parsed.
    repairs: Vec<Spent>,
    /// Why votes or reviews may be missing.
    pub(super) shortage: Option<String>,
}

/// The worst cases of the requests of one size.
struct Costs {
    reviews: Spent,
    votes: Vec<Spent>,
    /// One comparison, by the most expensive member.
    judge: Spent,
    repairs: Vec<Spent>,
}

impl Plan {
    pub(super) fn of(open: &OpenReview) -> Self {
        let none = vec![Spent::default(); open.members.len()];
        let account = Account::new(open.ceiling);
        // With two members, both made the findings of every unclear pair.
        let judges = match open.judged && open.members.len() >= JUDGES_MAX {
            true => JUDGES_MAX,
            false => 0,
        };
        let all = Self {
            bytes: SIZES[0].0,
            judges,
            votes: none.clone(),
            repairs: none.clone(),
            ..Self::default()
        };
        if open.ceiling == Ceiling::default() {
            return all;
        }
        // Given up in this order: all comparisons but one, second requests, and comparisons, which the rules decide.
        let steps = [
            (true, judges),
            (true, 1),
            (false, judges),
            (false, 1),
            (false, 0),
        ];
        for (repaired, judges) in steps.map(|(repaired, most)| (repaired, most.min(judges))) {
            for size in SIZES {
                let costs = Costs::of(open, size);
                let plan = Self {
                    bytes: size.0,
                    judges,
                    judge: (0..judges).fold(Spent::default(), |sum, _| sum + costs.judge),
                    votes: costs.votes,
                    repairs: if repaired {
                        costs.repairs
                    } else {
                        none.clone()
                    },
                    shortage: None,
                };
                let reserves = sum(&plan.votes) + plan.judge + sum(&plan.repairs);
                if account.fits(costs.reviews + reserves).is_ok() {
                    return plan;
                }
            }
        }
        // A spare request goes to votes.
        Self {
            bytes: LEAST.0,
            judges: 0,
            shortage: Some(shortage(open, &account, &Costs::of(open, LEAST))),
            ..all
        }
    }

    /// Returns the reserve that a request for findings must leave for others. If nothing is set aside for second
    /// requests, a member that was asked again has used the amount set aside for its own votes: a review is worth more.
    pub(super) fn after_review(&self, repaired: &[bool]) -> Spent {
        let mut keep = self.judge;
        for (at, repaired) in repaired.iter().enumerate() {
            if !repaired {
                keep += self.repairs[at];
            }
            if !repaired || self.has_repairs() {
                keep += self.votes[at];
            }
        }
        keep
    }

    /// Returns whether second requests have something of their own.
    pub(super) fn has_repairs(&self) -> bool {
        self.votes.iter().all(|votes| *votes == Spent::default())
            || self.repairs.iter().any(|one| *one != Spent::default())
    }

    /// Returns the reserve that the comparison must leave for votes.
    pub(super) fn after_judge(&self) -> Spent {
        sum(&self.votes)
    }
}

impl Costs {
    fn of(open: &OpenReview, (bytes, answer): (u64, u32)) -> Self {
        let several = open.members.len() > 1;
        let nothing = Hidden::default();
        let at_most = |member: usize, request: &Request, more: u64| {
            let member = &open.members[member];
            let answer = member.sampling.max_tokens.unwrap_or(answer).min(answer);
            let price = open.prices.get(&member.name).copied();
            Spent::at_most(request_bytes(request) + more, answer, price)
        };
        let mut reviews = Spent::default();
        let mut judge = Spent::default();
        let mut repairs = Vec::new();
        let mut votes = Vec::new();
        for member in 0..open.members.len() {
            let mut longest = Spent::default();
            for part in 0..open.parts.len() {
                let cost = at_most(member, &ask::findings(open, member, part), 0);
                reviews += cost;
                if cost.tokens > longest.tokens {
                    longest = cost;
                }
            }
            repairs.push(longest);
            votes.push(match several {
                true => at_most(
                    member,
                    &ask::votes(open, &nothing, member, &[], &[], 0).0,
                    bytes,
                ),
                false => Spent::default(),
            });
            let one = at_most(
                member,
                &ask::pairs(open, &nothing, member, &[], &[], 0).0,
                bytes,
            );
            judge.calls = judge.calls.max(one.calls);
            judge.tokens = judge.tokens.max(one.tokens);
            judge.pico_usd = judge.pico_usd.max(one.pico_usd);
            judge.certainty = judge.certainty.and(one.certainty);
        }
        Self {
            reviews,
            votes,
            judge,
            repairs,
        }
    }
}

impl OpenReview {
    /// Returns the bytes of a request for findings: of its texts, and at most with everything around them.
    pub fn request_bytes(&self, member: usize, part: usize) -> (u64, u64) {
        let request = ask::findings(self, member, part);
        let prompt = &request.prompt;
        let texts = [&prompt.rules, &prompt.persona, &prompt.turn];
        let texts = texts.map(String::len).iter().sum::<usize>() + prompt.history.len();
        (texts as u64, request_bytes(&request))
    }

    /// Returns why the limits are too low for the reviews and votes of all members, and what would do; `None` if they
    /// are not.
    pub fn shortage(&self) -> Option<String> {
        Plan::of(self).shortage
    }
}

fn sum(all: &[Spent]) -> Spent {
    all.iter().fold(Spent::default(), |sum, one| sum + *one)
}

/// Describes the limits that are too low, and the least that would do.
fn shortage(open: &OpenReview, account: &Account, costs: &Costs) -> String {
    let votes = sum(&costs.votes);
    let what = match account.fits(costs.reviews) {
        Ok(()) => "votes",
        Err(_) if votes.calls > 0 => "reviews by all members and their votes",
        Err(_) => "a review of the whole change",
    };
    let least = costs.reviews + votes;
    let limits = open.ceiling;
    let mut lines = Vec::new();
    if let Some(most) = limits.calls.filter(|most| least.calls > *most) {
        lines.push(format!(
            "the limit of {} is too low for {what}: {} would do",
            counted(most, "call"),
            least.calls
        ));
    }
    if let Some(most) = limits.tokens.filter(|most| least.tokens > *most) {
        lines.push(format!(
            "the limit of {} is too low for {what}: {} would do",
            counted(most, "token"),
            least.tokens
        ));
    }
    let pico = |micro: u64| micro.saturating_mul(1_000_000);
    if let Some(most) = limits.micro_usd.filter(|most| least.pico_usd > pico(*most)) {
        lines.push(format!(
            "the limit of ${} is too low for {what}: {} would do",
            most as f64 / 1e6,
            money(least.bound().usd(), Certainty::AtMost).trim_start_matches(['≤', ' '])
        ));
    }
    lines.join("; ")
}
