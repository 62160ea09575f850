//! Ballots become a verdict: one file for each rule, one row for each in [`RULES`].
//!
//! Comes in: [`Ballot`]s and [`Rules`]. Goes out: a [`Tally`] with the *set* of winners, every round, who abstained and
//! why, and how a tie was broken. Counting is exact (whole numbers and fractions). What is defined over the reals, such
//! as a logarithm, is rounded to a billionth once, where it enters: after that the order of ballots cannot matter.
//!
//! A rule is a pure function of a [`Poll`]: the ballots that it can read. A ballot that does not fit is an abstention
//! with its reason, never a vote for somebody.

mod amount;
mod ballot;
mod check;
mod file;
mod limits;
mod methods;
mod poll;
mod profile;
mod rules;
mod tally;
mod ties;

pub use amount::{Amount, NANOS, Nano, nanos};
pub use ballot::{Ballot, Mark, Rank};
pub use check::{CaseReport, Difference, check};
pub use file::{Case, Expected, ReadError, RoundExpected, read_csv, read_json_lines};
pub use limits::TooLarge;
pub use methods::RULES;
pub use poll::{Poll, Reads, Sees, Vote};
pub use rules::{ConfidenceMap, Electorate, Overvote, Rules, Runoff, TiePolicy};
pub use tally::{Abstention, Count, Dissent, Outcome, Round, Tally, TieStep};
pub use ties::lot;

use std::fmt;

/// A rule: a plain function from what voters wrote to who wins.
pub type Method = fn(&Poll<'_>) -> Count;

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name here.
    pub name: &'static str,
    /// Other names: of files that record its results, and of the literature.
    pub aliases: &'static [&'static str],
    /// What it does, for people.
    pub doc: &'static str,
    /// Who proposed it.
    pub source: &'static str,
    /// When it misleads.
    pub misleads: &'static str,
    /// What it reads of a ballot.
    pub reads: Reads,
    /// Whether it always counts weights.
    pub weighted: bool,
    /// What it promises, whatever the ballots.
    pub keeps: &'static [Axiom],
    /// The rule itself.
    pub method: Method,
}

/// A promise about every possible poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axiom {
    /// The order of the ballots does not matter.
    Anonymous,
    /// Whom more than half put first wins alone.
    Majority,
    /// Who beats everybody else one against one wins alone.
    Condorcet,
    /// Nobody outside the Smith set wins.
    Smith,
    /// A winner who is moved up on a ballot still wins.
    Monotone,
    /// A twin of a loser, next to it on every ballot, does not change whether anybody else wins.
    Clones,
    /// A single winner does not win when every ranking is turned round.
    Reversal,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({})", self.name)
    }
}

/// The rule of a name or alias; case, blanks and underscores do not matter.
pub fn find(name: &str) -> Option<&'static Rule> {
    let plain = |text: &str| text.to_lowercase().replace([' ', '_'], "-");
    let wanted = plain(name);
    let named = |rule: &&Rule| {
        plain(rule.name) == wanted || rule.aliases.iter().any(|alias| plain(alias) == wanted)
    };
    RULES.iter().find(named)
}

/// The set of winners by a rule, rising; empty where nothing is decided. Cheaper than [`tally`]: ties are not broken,
/// and nobody is told who abstained.
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

/// Whether enough voters cast a ballot that can be read, and somebody stands for election.
fn quorate(poll: &Poll<'_>) -> bool {
    let voters = poll.voters();
    voters > 0 && voters >= poll.rules.quorum && !poll.is_empty()
}

/// Counts ballots by a rule, breaks ties, and says what kind of result it is.
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
            .filter(|(_, f, _)| f == &[c])
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

/// The lead of the winners over the best of the others.
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
