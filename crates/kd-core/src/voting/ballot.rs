//! What a voter hands in. Candidates are numbers: places in [`Rules::candidates`](super::Rules::candidates).

use super::amount::{NANOS, Nano};

/// One ballot, or several alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ballot {
    /// Who; empty where nobody is named.
    pub voter: String,
    /// How many cast exactly this.
    pub count: u64,
    /// What a voter's word weighs, in billionths; only rules that say so, and [`Rules::weighted`](super::Rules::weighted), read it.
    pub weight: Nano,
    /// How sure the voter says it is, 0 to 1 in billionths.
    pub confidence: Option<Nano>,
    /// How often the voter is right, 0 to 1 in billionths: measured, not stated.
    pub reliability: Option<Nano>,
    /// Voters of one family err together and share one weight.
    pub family: Option<String>,
    /// For each candidate the share of the votes that the voter expects it to get, in billionths.
    pub predicted: Vec<Nano>,
    /// What was marked.
    pub mark: Mark,
}

/// What was marked on a ballot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// One candidate.
    Choice(usize),
    /// Candidates from best to worst. What is not listed stands tied below everything listed.
    Ranking(Vec<Rank>),
    /// Points for each candidate, in billionths; `None` was left blank.
    Scores(Vec<Option<Nano>>),
    /// Every candidate that would do.
    Approvals(Vec<usize>),
    /// One choice for each round or for each order of presentation, `None` where there was none.
    Trail(Vec<Option<usize>>),
    /// Nothing that counts, and why.
    Unreadable(String),
}

/// One rank of a ranking, as it stands on paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rank {
    /// One candidate.
    One(usize),
    /// Several candidates, marked as equal.
    Tied(Vec<usize>),
    /// Left blank.
    Skipped,
    /// More than one mark, unknown which.
    Overvote,
    /// A name that does not stand for election.
    Nobody,
}

impl Ballot {
    /// A ballot of one voter with nothing but a mark.
    pub fn new(mark: Mark) -> Self {
        Self {
            voter: String::new(),
            count: 1,
            weight: NANOS,
            confidence: None,
            reliability: None,
            family: None,
            predicted: Vec::new(),
            mark,
        }
    }

    /// A vote for one candidate.
    pub fn choice(candidate: usize) -> Self {
        Self::new(Mark::Choice(candidate))
    }

    /// A strict ranking from best to worst; it may stop early.
    pub fn ranking(order: impl IntoIterator<Item = usize>) -> Self {
        Self::new(Mark::Ranking(order.into_iter().map(Rank::One).collect()))
    }

    /// The same, cast by so many.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// The same, by a voter of this name.
    #[must_use]
    pub fn by(mut self, voter: impl Into<String>) -> Self {
        self.voter = voter.into();
        self
    }
}
