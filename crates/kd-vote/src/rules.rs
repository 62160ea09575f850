//! The settings of a count, fixed before the votes are counted.

use super::amount::{NANOS, Nano};

/// The settings of a count. `Rules::of(names)` gives the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The candidate answers. Random draws depend on their names.
    pub candidates: Vec<String>,
    /// Candidates that cannot win: withdrawn, or refuted by a checker (`verify first`). Votes skip them.
    pub excluded: Vec<usize>,
    /// Whether weights count in every rule, not only in rules about weights.
    pub weighted: bool,
    /// The base of majorities.
    pub electorate: Electorate,
    /// Whether a ballot that puts several candidates first backs all of them or none.
    pub backing: Backing,
    /// The share that a super-majority must exceed, in billionths; two thirds are rounded up, so that two of three do not
    /// exceed them.
    pub super_majority: Nano,
    /// Minimum number of readable ballots; below it there is no quorum.
    pub quorum: u64,
    /// The mapping of stated confidences for the rule `confidence`.
    pub confidence: ConfidenceMap,
    /// Number of possible answers for log-odds; defaults to the number of candidates.
    pub options: Option<u64>,
    /// Minimum distance of reliabilities from 0 and 1 in `log-odds`, in billionths: no voter is infallible.
    pub reliability_clip: Nano,
    /// Correlation of errors within a family, 0 to 1 in billionths.
    pub family_correlation: Nano,
    /// Whether a tie goes to the answer that more families rank first, after known reliability and before all other
    /// criteria.
    pub families_untie: bool,
    /// The weight of each round relative to the next one, 0 to 1 in billionths (`pooled-rounds`).
    pub round_decay: Nano,
    /// Maximum points per ballot (`cumulative`).
    pub points: u64,
    /// Maximum approvals per ballot; half of the candidates, rounded up, if unset.
    pub approvals_max: Option<usize>,
    /// Settings of instant-runoff.
    pub runoff: Runoff,
    /// An arbiter's choice, if one was asked to break a tie.
    pub arbiter: Option<usize>,
    /// The seed of random draws.
    pub seed: u64,
    /// The question, so that two questions of one council have different draws.
    pub question: String,
}

/// The base of majorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Electorate {
    /// All voters with a readable ballot.
    #[default]
    Voting,
    /// All voters asked, including abstentions.
    Everybody,
}

/// Whom a ballot backs that puts several candidates first, such as approvals: for the outcome of a count, not for its
/// winners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// All of them.
    #[default]
    Shared,
    /// None of them.
    Alone,
}

/// Maps a voter's stated confidence to its weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConfidenceMap {
    /// As stated.
    #[default]
    Identity,
    /// The steps of ReConcile: up to .6 counts .1, below .8 .3, below .9 .5, below 1 .8, and 1 counts 1.
    Steps,
    /// `ln(c / (1 - c))`, never negative; `c` is clamped to .05 and .95.
    Logit,
    /// A fitted curve: points (stated, weight) in billionths, ascending, with linear interpolation.
    Fitted(Vec<(Nano, Nano)>),
}

/// The way in which instant-runoff reads ballots and eliminates candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runoff {
    /// The candidate to eliminate if several are lowest.
    pub ties: TiePolicy,
    /// The meaning of two names at one rank.
    pub overvote: Overvote,
    /// Maximum consecutive blank ranks before a ballot is exhausted; `None` for no limit.
    pub skips_max: Option<usize>,
    /// Maximum ranks read; `None` for all.
    pub ranks_max: Option<usize>,
    /// Whether naming a candidate twice exhausts the ballot.
    pub exhaust_on_duplicate: bool,
    /// Candidates with fewer votes than this, in billionths, are eliminated together; `None` to disable.
    pub least: Option<Nano>,
    /// Whether all candidates that can no longer catch up are eliminated in one round.
    pub drop_hopeless: bool,
    /// Whether the count continues after a win until two candidates are left.
    pub until_two: bool,
    /// Candidates eliminated first whatever their votes: undeclared write-ins.
    pub drop_first: Vec<usize>,
}

/// The candidate that instant-runoff eliminates if several are lowest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TiePolicy {
    /// All of them together, unless no candidate would be left.
    #[default]
    Batch,
    /// Each of them in turn: the winners over all orders.
    Parallel,
    /// The one with the fewest votes in the latest round in which they differed; then a random draw.
    Backward,
    /// The one with the fewest votes in the earliest round in which they differed; then a random draw.
    Forward,
    /// The one with the lowest Borda score; then a random draw.
    Borda,
    /// The last one in this list.
    Order(Vec<usize>),
    /// A seeded random draw.
    Seeded,
    /// Externally given answers: the candidates eliminated or elected, round by round. Then a random draw.
    Answers(Vec<Vec<usize>>),
}

/// The meaning of two names at one rank in instant-runoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overvote {
    /// Ignored as long as at most one of them is still in; otherwise the ballot is exhausted there.
    #[default]
    ExhaustIfSeveralStay,
    /// The ballot is exhausted there.
    Exhaust,
    /// The rank is skipped.
    Skip,
}

impl Rules {
    /// Returns the defaults for these candidates.
    pub fn of<S: Into<String>>(candidates: impl IntoIterator<Item = S>) -> Self {
        Self {
            candidates: candidates.into_iter().map(Into::into).collect(),
            excluded: Vec::new(),
            weighted: false,
            electorate: Electorate::default(),
            backing: Backing::default(),
            super_majority: 2 * NANOS / 3 + 1,
            quorum: 1,
            confidence: ConfidenceMap::default(),
            options: None,
            reliability_clip: NANOS / 20,
            family_correlation: 0,
            families_untie: false,
            round_decay: NANOS,
            points: 10,
            approvals_max: None,
            runoff: Runoff::default(),
            arbiter: None,
            seed: 0,
            question: String::new(),
        }
    }
}
