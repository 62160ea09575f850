//! Ballots. Candidates are indices into [`Rules::candidates`](super::Rules::candidates).

use super::amount::{NANOS, Nano};

/// One ballot, or several identical ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ballot {
    /// The voter; empty if unnamed.
    pub voter: String,
    /// Number of voters who cast exactly this ballot.
    pub count: u64,
    /// The voter's weight, in billionths; read only by rules that use weights, and with
    /// [`Rules::weighted`](super::Rules::weighted).
    pub weight: Nano,
    /// The voter's stated confidence, 0 to 1 in billionths.
    pub confidence: Option<Nano>,
    /// The share of the voter's answers that are right, from 0 to 1 in billionths: measured, not stated.
    pub reliability: Option<Nano>,
    /// The voter's family: its members make correlated errors and share one weight.
    pub family: Option<String>,
    /// The share of votes that the voter predicts for each candidate, in billionths.
    pub predicted: Vec<Nano>,
    /// The vote itself.
    pub mark: Mark,
}

/// The vote on a ballot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// One candidate.
    Choice(usize),
    /// Candidates from best to worst. Unlisted candidates are tied below all listed ones.
    Ranking(Vec<Rank>),
    /// Points for each candidate, in billionths; `None` if left blank.
    Scores(Vec<Option<Nano>>),
    /// All approved candidates.
    Approvals(Vec<usize>),
    /// One choice per round or per order of presentation; `None` if there was none.
    Trail(Vec<Option<usize>>),
    /// Unreadable, and why.
    Unreadable(String),
}

/// One rank of a ranking, as written on the ballot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rank {
    /// One candidate.
    One(usize),
    /// Several candidates marked as equal.
    Tied(Vec<usize>),
    /// Left blank.
    Skipped,
    /// More than one mark; it is unknown which.
    Overvote,
    /// A name that is not a candidate.
    Nobody,
}

impl Ballot {
    /// Creates a ballot of one voter with nothing but a vote.
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

    /// Creates a vote for one candidate.
    pub fn choice(candidate: usize) -> Self {
        Self::new(Mark::Choice(candidate))
    }

    /// Creates a strict ranking from best to worst; it may be incomplete.
    pub fn ranking(order: impl IntoIterator<Item = usize>) -> Self {
        Self::new(Mark::Ranking(order.into_iter().map(Rank::One).collect()))
    }

    /// Sets how many voters cast it.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// Sets the voter's name.
    #[must_use]
    pub fn by(mut self, voter: impl Into<String>) -> Self {
        self.voter = voter.into();
        self
    }
}
