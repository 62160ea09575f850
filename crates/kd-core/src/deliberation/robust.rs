//! The robustness of a count: which rules agree, whose ballot decides, and how many ballots would have to change.
//!
//! Input: a count, and a function that counts its ballots again by any rule and with any change. Output: a
//! [`Robustness`].

use super::count::Voted;
use super::fact::Counted;
use super::plan::Plan;
use crate::ids::SeatName;
use kd_vote::{Ballot, Mark, Outcome, RULES, Rank, Rule};
use serde::Serialize;

/// The robustness of a count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Robustness {
    /// The winner.
    pub winner: Option<String>,
    /// The voting rule.
    pub rule: String,
    /// Number of rules with the same winner.
    pub holds: usize,
    /// The winner under each rule, in table order.
    pub rules: Vec<ByRule>,
    /// Members whose ballot decides: without it, another candidate or none wins.
    pub hangs_on: Vec<SeatName>,
    /// Number of ballots that would have to change for another winner; `None` if no such change was found.
    pub margin: Option<Margin>,
    /// Whether every ballot names one answer: most rules count such ballots alike.
    #[serde(skip)]
    pub names_one: bool,
}

/// The result of a rule on the same ballots.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByRule {
    /// The rule.
    pub rule: &'static str,
    /// The winner; `None` if there is none or a lot would decide.
    pub winner: Option<String>,
    /// Number of ballots that the rule can count.
    pub voters: u64,
    /// Whether the same candidate wins.
    pub same: bool,
}

/// The distance from another winner.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// Number of ballots that would have to change.
    pub ballots: usize,
    /// Number of ballots cast.
    pub of: usize,
    /// Whether this is the minimum; otherwise it is an upper bound.
    pub exact: bool,
    /// The winner after the change.
    pub winner: String,
}

impl Robustness {
    /// Describes the robustness in one sentence.
    pub fn sentence(&self) -> Option<String> {
        let winner = self.winner.as_ref()?;
        let hangs = match self.hangs_on.as_slice() {
            [] => "no single ballot decides it".to_owned(),
            [one] => format!("hangs on {one}"),
            several => {
                let names: Vec<&str> = several.iter().map(SeatName::as_str).collect();
                format!("hangs on each of {}", names.join(", "))
            }
        };
        let margin = match &self.margin {
            None => String::new(),
            Some(margin) => {
                let bound = if margin.exact { "" } else { "at most " };
                format!(
                    "; changing {bound}{} of {} ballots elects another",
                    margin.ballots, margin.of
                )
            }
        };
        let cannot = self.rules.iter().filter(|by| by.voters == 0).count();
        let alike = "most count ballots for one answer alike";
        let cannot = match (cannot, self.names_one) {
            (0, false) => String::new(),
            (0, true) => format!(" ({alike})"),
            (n, false) => format!(" ({n} cannot count these ballots)"),
            (n, true) => format!(" ({n} cannot count these ballots, {alike})"),
        };
        Some(format!(
            "{winner} holds under {} of {} rules{cannot}; {hangs}{margin}",
            self.holds,
            self.rules.len()
        ))
    }
}

/// Computes the robustness. `count` counts the ballots by a rule, after a change to them.
pub(super) fn of(
    counted: &Counted,
    plan: &Plan,
    count: impl Fn(&'static Rule, &dyn Fn(&mut Vec<Voted>)) -> Counted,
) -> Robustness {
    let name = |c: &Counted| decided(c).and_then(|w| c.candidates.get(w)).cloned();
    let winner = name(counted);
    let rules: Vec<ByRule> = RULES
        .iter()
        .map(|rule| {
            let by = count(rule, &|_| {});
            let elected = name(&by);
            ByRule {
                rule: rule.name,
                same: elected.is_some() && elected == winner,
                voters: by.voters,
                winner: elected,
            }
        })
        .collect();
    let mut found = Robustness {
        holds: rules.iter().filter(|r| r.same).count(),
        rule: counted.rule.clone(),
        winner,
        rules,
        hangs_on: Vec::new(),
        margin: None,
        names_one: false,
    };
    let Some(rule) = kd_vote::find(&counted.rule) else {
        return found;
    };
    for first in counted.firsts.iter().filter(|f| !f.is_silent()) {
        let Some(place) = plan.place(&first.seat) else {
            continue;
        };
        let without = count(rule, &|cast| cast.retain(|(seat, ..)| *seat != place));
        if name(&without) != found.winner && !found.hangs_on.contains(&first.seat) {
            found.hangs_on.push(first.seat.clone());
        }
    }
    let ballots = ballots(&count, rule);
    let mut marks = ballots.iter().map(|ballot| &ballot.mark);
    found.names_one = marks.all(|mark| matches!(mark, Mark::Choice(_) | Mark::Unreadable(_)));
    if let Some(winner) = decided(counted) {
        let search = Search {
            winner,
            candidates: counted.candidates.len(),
            count: &|change| decided(&count(rule, change)),
            ballots,
        };
        found.margin = search.run().map(|(ballots, exact, other)| Margin {
            ballots,
            of: search.cast().len(),
            exact,
            winner: counted.candidates[other].clone(),
        });
    }
    found
}

/// Returns the winner. A lot does not decide.
fn decided(counted: &Counted) -> Option<usize> {
    counted.winner.filter(|_| counted.form != Outcome::Split)
}

/// Returns the counted ballots.
fn ballots(
    count: impl Fn(&'static Rule, &dyn Fn(&mut Vec<Voted>)) -> Counted,
    rule: &'static Rule,
) -> Vec<Ballot> {
    let seen = std::cell::RefCell::new(Vec::new());
    count(rule, &|cast| {
        *seen.borrow_mut() = cast.iter().map(|(_, ballot, _)| ballot.clone()).collect();
    });
    seen.into_inner()
}

/// Maximum counts per search: each takes some microseconds, and `kd why` should not take longer.
const COUNTS_MAX: usize = 4_000;
/// Maximum number of candidates for which all complete rankings, or sets, of a ballot are tried.
const ORDERS_OF_MAX: usize = 4;

type Change<'c> = &'c dyn Fn(&mut Vec<Voted>);

/// The search for the fewest ballots whose change elects another candidate.
struct Search<'s> {
    winner: usize,
    candidates: usize,
    count: &'s dyn Fn(Change<'_>) -> Option<usize>,
    ballots: Vec<Ballot>,
}

impl Search<'_> {
    /// Returns the indexes of non-empty ballots.
    fn cast(&self) -> Vec<usize> {
        let marks = |at: &usize| !matches!(self.ballots[*at].mark, Mark::Unreadable(_));
        (0..self.ballots.len()).filter(marks).collect()
    }

    /// Returns the number of ballots, whether it is the minimum, and the new winner.
    fn run(&self) -> Option<(usize, bool, usize)> {
        let cast = self.cast();
        let (mut exact, mut left) = (true, COUNTS_MAX);
        for size in 1..=cast.len() {
            if let Some(other) = self.likely(&cast, size) {
                return Some((size, exact, other));
            }
            match exact.then(|| self.all(&cast, size, &mut left)).flatten() {
                Some(Some(other)) => return Some((size, true, other)),
                Some(None) => {}
                None => exact = false,
            }
        }
        None
    }

    /// Tries the most promising changes: for each challenger, ballots for the winner are switched to it.
    fn likely(&self, cast: &[usize], size: usize) -> Option<usize> {
        let for_winner = |at: &usize| !prefers(&self.ballots[*at].mark, self.winner);
        let mut order = cast.to_vec();
        order.sort_by_key(for_winner);
        let challengers = (0..self.candidates).filter(|c| *c != self.winner);
        challengers
            .flat_map(|c| {
                // Ballots for another challenger may be the ones to switch.
                let mut others = order.clone();
                others.sort_by_key(|at| prefers(&self.ballots[*at].mark, c));
                [(c, order.clone()), (c, others)]
            })
            .find_map(|(challenger, order)| {
                let marks: Vec<(usize, Mark)> = order[..size]
                    .iter()
                    .map(|at| (*at, turned(&self.ballots[*at].mark, challenger, self)))
                    .collect();
                self.elects(&marks)
            })
    }

    /// Tries every change of `size` ballots and returns another winner, if any. `None` if there are too many.
    fn all(&self, cast: &[usize], size: usize, left: &mut usize) -> Option<Option<usize>> {
        let options: Vec<Vec<Mark>> = self.ballots.iter().map(|b| self.marks(&b.mark)).collect();
        let most = cast.iter().map(|at| options[*at].len()).max()?;
        if most == 0 {
            return None;
        }
        let all = (0..size).try_fold(binomial(cast.len(), size)?, |n, _| n.checked_mul(most))?;
        if all > *left {
            return None;
        }
        *left -= all;
        let mut chosen = Vec::new();
        Some(self.choose(cast, size, &options, &mut chosen))
    }

    fn choose(
        &self,
        cast: &[usize],
        size: usize,
        options: &[Vec<Mark>],
        chosen: &mut Vec<(usize, Mark)>,
    ) -> Option<usize> {
        if size == 0 {
            return self.elects(chosen);
        }
        for (skipped, at) in cast.iter().enumerate() {
            for mark in &options[*at] {
                chosen.push((*at, mark.clone()));
                let found = self.choose(&cast[skipped + 1..], size - 1, options, chosen);
                chosen.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Returns another winner under these votes.
    fn elects(&self, marks: &[(usize, Mark)]) -> Option<usize> {
        let elected = (self.count)(&|cast| {
            for (at, mark) in marks {
                if let Some((_, ballot, _)) = cast.get_mut(*at) {
                    ballot.mark = mark.clone();
                }
            }
        });
        elected.filter(|c| *c != self.winner)
    }

    /// Returns every other vote that a ballot of this kind can have; empty if there are too many.
    fn marks(&self, mark: &Mark) -> Vec<Mark> {
        let all: Vec<usize> = (0..self.candidates).collect();
        let few = self.candidates <= ORDERS_OF_MAX;
        let mut marks: Vec<Mark> = match mark {
            Mark::Choice(_) => all.into_iter().map(Mark::Choice).collect(),
            Mark::Ranking(_) if few => orders(&all).into_iter().map(ranking).collect(),
            Mark::Approvals(_) if few => (1..1_usize << self.candidates)
                .map(|set| all.iter().copied().filter(|c| set >> c & 1 == 1).collect())
                .map(Mark::Approvals)
                .collect(),
            _ => Vec::new(),
        };
        marks.retain(|other| other != mark);
        marks
    }
}

/// Returns whether a vote ranks a candidate first, alone or tied.
fn prefers(mark: &Mark, candidate: usize) -> bool {
    match mark {
        Mark::Choice(c) => *c == candidate,
        Mark::Ranking(ranks) => matches!(ranks.first(), Some(Rank::One(c)) if *c == candidate),
        Mark::Approvals(set) => set.contains(&candidate),
        Mark::Scores(points) => {
            let best = points.iter().flatten().max();
            best.is_some() && points.get(candidate).and_then(Option::as_ref) == best
        }
        Mark::Trail(rounds) => rounds.iter().rev().flatten().next() == Some(&candidate),
        Mark::Unreadable(_) => false,
    }
}

/// Switches a vote to a challenger: it ranks first, the winner last.
fn turned(mark: &Mark, challenger: usize, search: &Search<'_>) -> Mark {
    match mark {
        Mark::Choice(_) | Mark::Unreadable(_) => Mark::Choice(challenger),
        Mark::Ranking(_) => {
            let rest = (0..search.candidates).filter(|c| ![challenger, search.winner].contains(c));
            let order = std::iter::once(challenger).chain(rest);
            ranking(order.chain([search.winner]).collect())
        }
        Mark::Approvals(_) => Mark::Approvals(vec![challenger]),
        Mark::Scores(points) => {
            let most = points.iter().flatten().max().copied();
            let points =
                (0..search.candidates).map(|c| most.map(|m| if c == challenger { m } else { 0 }));
            Mark::Scores(points.collect())
        }
        Mark::Trail(rounds) => Mark::Trail(vec![Some(challenger); rounds.len()]),
    }
}

fn ranking(order: Vec<usize>) -> Mark {
    Mark::Ranking(order.into_iter().map(Rank::One).collect())
}

/// Returns every permutation of some candidates.
fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for first in of {
        let rest: Vec<usize> = of.iter().copied().filter(|c| c != first).collect();
        for mut order in orders(&rest) {
            order.insert(0, *first);
            all.push(order);
        }
    }
    all
}

fn binomial(n: usize, k: usize) -> Option<usize> {
    (0..k).try_fold(1_usize, |all, at| Some(all.checked_mul(n - at)? / (at + 1)))
}
