//! Turns ballots into a verdict: one file per rule, and one row each in [`RULES`].
//!
//! Input: [`Ballot`]s and [`Rules`]. Output: a [`Tally`] with the *set* of winners, every round, who abstained and why,
//! and how a tie was broken. Counting is exact (integers and fractions). Real values, such as a logarithm, are rounded
//! to a billionth once, on input, so the order of ballots cannot matter.
//!
//! A rule is a pure function of a [`Poll`]: the ballots that it can read. A ballot that does not fit is an abstention
//! with a reason, never a vote.

#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod amount;
mod ballot;
mod check;
pub mod csv;
mod file;
mod limits;
mod methods;
mod nearest;
mod no_vote;
mod poll;
mod profile;
mod rules;
mod tally;
mod ties;

pub use amount::{Amount, NANOS, Nano, nanos};
pub use ballot::{Ballot, Mark, Rank};
pub use check::{CaseReport, Difference, check};
pub use file::{
    Case, Expected, Notices, Place, ReadError, RoundExpected, read_csv, read_json_lines,
};
pub use limits::TooLarge;
pub use methods::RULES;
pub use nearest::nearest;
pub use poll::{Poll, Reads, Sees, Vote};
pub use rules::{Backing, ConfidenceMap, Electorate, Overvote, Rules, Runoff, TiePolicy};
pub use tally::{Abstention, Count, Dissent, Outcome, Round, Tally, TieStep};
pub use ties::lot;

use std::fmt;

/// A rule: a pure function from votes to winners.
pub type Method = fn(&Poll<'_>) -> Count;

/// A voting rule. Everything that callers need to know about a rule is a field, so that none is treated by its name.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Other names: in files with recorded results, and in the literature.
    pub aliases: &'static [&'static str],
    /// The description, in one sentence.
    pub doc: &'static str,
    /// The origin of the rule: a publication, or this project.
    pub source: &'static str,
    /// The condition under which its result can mislead.
    pub caveat: &'static str,
    /// The kind of ballot it reads.
    pub reads: Reads,
    /// The parts of a ballot that it reads besides the mark and the weight.
    pub details: &'static [Detail],
    /// Whether it always uses weights.
    pub weighted: bool,
    /// The number of voters it accepts.
    pub voters: Voters,
    /// Maximum number of candidates, so that every count ends in seconds.
    pub candidates_max: usize,
    /// Whether the winner is certain once it leads by more votes than are outstanding (see [`is_certain`]).
    pub certain_stop: bool,
    /// Homogeneity: whether casting every ballot several times never changes the result.
    pub ignores_scale: bool,
    /// Whether it decides motions: what everybody wants passes, and what nobody wants is rejected.
    pub decides_motions: bool,
    /// Whether it can draw lots during the count, if [`Runoff::ties`] says so.
    pub draws_lots: bool,
    /// The axioms it satisfies, whatever the ballots.
    pub satisfies: &'static [Axiom],
    /// The counting function.
    pub method: Method,
}

/// The number of voters that a rule accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voters {
    /// Exactly one: more decide nothing.
    One,
    /// Any number.
    All,
}

/// A part of a ballot, besides its mark and weight, that a rule can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// [`Ballot::confidence`].
    Confidence,
    /// [`Ballot::reliability`].
    Reliability,
    /// [`Ballot::predicted`].
    Predictions,
}

impl Rule {
    /// The usual values of a row; its method decides nothing.
    pub const BASE: Rule = Rule {
        name: "",
        aliases: &[],
        doc: "",
        source: "",
        caveat: "",
        reads: Reads::Choice,
        details: &[],
        weighted: false,
        voters: Voters::All,
        candidates_max: limits::LINEAR,
        certain_stop: false,
        ignores_scale: true,
        decides_motions: true,
        draws_lots: false,
        satisfies: &[],
        method: undecided,
    };
}

fn undecided(_: &Poll<'_>) -> Count {
    Count::default()
}

/// Returns whether the leader of a plurality count can no longer be reached by the outstanding votes.
pub fn is_certain(votes: impl IntoIterator<Item = usize>, outstanding: usize) -> bool {
    let (mut first, mut second) = (0, 0);
    for n in votes {
        if n > first {
            (first, second) = (n, first);
        } else {
            second = second.max(n);
        }
    }
    first - second > outstanding
}

/// A property that holds for every possible poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axiom {
    /// The order of the ballots does not matter.
    Anonymous,
    /// Majority criterion: a candidate ranked first by more than half of the voters is the only winner.
    Majority,
    /// Condorcet criterion: a candidate that beats every other one in pairwise comparison is the only winner.
    Condorcet,
    /// Only members of the Smith set win.
    Smith,
    /// Monotonicity: a winner that is moved up on a ballot still wins.
    Monotone,
    /// Adding a clone of a loser, next to it on every ballot, does not change whether another candidate wins.
    Clones,
    /// Reversal symmetry: a single winner does not win if every ranking is reversed.
    Reversal,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({})", self.name)
    }
}

/// Returns the rule with a name or alias; case, blanks and underscores do not matter.
///
/// ```
/// assert_eq!(kd_vote::find("instant runoff").map(|rule| rule.name), Some("irv"));
/// assert!(kd_vote::find("no such rule").is_none());
/// ```
pub fn find(name: &str) -> Option<&'static Rule> {
    let plain = |text: &str| text.to_lowercase().replace([' ', '_'], "-");
    let wanted = plain(name);
    let named = |rule: &&Rule| {
        plain(rule.name) == wanted || rule.aliases.iter().any(|alias| plain(alias) == wanted)
    };
    RULES.iter().find(named)
}

/// Returns the usual rule for a kind of ballot: Borda for rankings, plurality for everything else.
pub fn usual(reads: Reads) -> &'static Rule {
    match reads {
        Reads::Ranking | Reads::Paper => &methods::BORDA,
        _ => &methods::PLURALITY,
    }
}

/// Returns the set of winners by a rule, ascending; empty if nothing is decided. Cheaper than [`tally`]: it does not
/// break ties or list abstentions.
pub fn winners(rule: &Rule, ballots: &[Ballot], rules: &Rules) -> Vec<usize> {
    let poll = Poll::read(ballots, rules, rule.reads, rule.weighted);
    if !quorate(&poll) || rule.takes(poll.len()).is_err() {
        return Vec::new();
    }
    let mut winners = (rule.method)(&poll).winners;
    winners.sort_unstable();
    winners.dedup();
    winners
}

/// Counts for each pair of candidates how many voters rank the first above the second: `[first][second]`, with weights
/// if the rule uses them.
///
/// ```
/// use kd_vote::{Amount, Ballot, Rules, find, pairwise};
///
/// let ballots = [Ballot::ranking([0, 1]).times(2), Ballot::ranking([1, 0])];
/// let pairs = pairwise(find("schulze").expect("a rule"), &ballots, &Rules::of(["tea", "coffee"]));
/// assert_eq!((&pairs[0][1], &pairs[1][0]), (&Amount::whole(2), &Amount::whole(1)));
/// ```
pub fn pairwise(rule: &Rule, ballots: &[Ballot], rules: &Rules) -> Vec<Vec<Amount>> {
    let poll = Poll::read(ballots, rules, Reads::Ranking, rule.weighted);
    let duels = profile::Profile::of(&poll).duels();
    let row = |row: Vec<Nano>| row.into_iter().map(Amount::of_nanos).collect();
    duels.prefer.into_iter().map(row).collect()
}

/// Returns whether enough voters cast a readable ballot, and there are candidates.
fn quorate(poll: &Poll<'_>) -> bool {
    let voters = poll.voters();
    voters > 0 && voters >= poll.rules.quorum && !poll.is_empty()
}

/// Counts ballots by a rule, breaks ties, and classifies the result.
///
/// ```
/// use kd_vote::{Ballot, Outcome, Rules, find, tally};
///
/// let ballots = [Ballot::choice(0).by("ada"), Ballot::choice(1).by("bob"), Ballot::choice(0).by("cyd")];
/// let count = tally(find("plurality").expect("a rule"), &ballots, &Rules::of(["tea", "coffee"]));
/// assert_eq!((count.winner, count.outcome), (Some(0), Outcome::Majority));
/// assert_eq!(count.dissent[0].voter, "bob");
/// ```
pub fn tally(rule: &'static Rule, ballots: &[Ballot], rules: &Rules) -> Tally {
    let poll = Poll::read(ballots, rules, rule.reads, rule.weighted);
    let voters = poll.voters();
    let quorate = quorate(&poll);
    let mut count = match rule.takes(poll.len()) {
        Ok(()) if quorate => (rule.method)(&poll),
        Ok(()) => Count::default(),
        Err(refused) => Count {
            notes: vec![format!("undecided: {refused}")],
            ..Count::default()
        },
    };
    count.winners.sort_unstable();
    count.winners.dedup();
    let (winner, tie_path) = ties::untie(&poll, &count.winners);
    let firsts: Vec<(u64, Vec<usize>, &str)> = poll
        .votes
        .iter()
        .map(|v| (v.ballot.count, poll.firsts(v), v.ballot.voter.as_str()))
        .collect();
    let backers = |c: usize| -> u64 {
        firsts
            .iter()
            .filter(|(_, f, _)| match rules.backing {
                Backing::Shared => f.contains(&c),
                Backing::Alone => f == &[c],
            })
            .fold(0, |n: u64, (k, ..)| n.saturating_add(*k))
    };
    let outcome = match (quorate, count.winners.as_slice()) {
        (false, _) => Outcome::NoQuorum,
        (true, [c]) if backers(*c) == voters => Outcome::Unanimous,
        (true, [c]) if backers(*c) > voters / 2 => Outcome::Majority,
        (true, [_]) => Outcome::Plurality,
        _ => Outcome::Split,
    };
    let dissent = firsts
        .iter()
        .filter(|(_, f, _)| winner.is_some_and(|w| !f.contains(&w)))
        .map(|(count, f, voter)| Dissent {
            voter: (*voter).into(),
            count: *count,
            first: f.clone(),
        })
        .collect();
    Tally {
        rule: rule.name,
        margin: margin(&count),
        winners: count.winners,
        winner,
        outcome,
        scores: count.scores,
        rounds: count.rounds,
        tie_path,
        electorate: poll.electorate,
        abstained: poll.abstained,
        dissent,
        notes: count.notes,
    }
}

/// Returns the lead of the winners over the best of the others.
fn margin(count: &Count) -> Option<Amount> {
    let own = count.scores.get(*count.winners.first()?)?.as_ref()?;
    let others = count
        .scores
        .iter()
        .enumerate()
        .filter(|(c, _)| !count.winners.contains(c));
    let next = others.filter_map(|(_, score)| score.as_ref()).max()?;
    Some(own - next)
}

#[cfg(test)]
mod laws;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
