//! What the council agreed on before the votes are counted.

use super::amount::{NANOS, Nano};

/// The settings of a count. `Rules::of(names)` gives the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The answers that stand for election. A name is also the key of the lot.
    pub candidates: Vec<String>,
    /// Candidates that cannot win: withdrawn, or refuted by a checker (`verify first`). Votes pass over them.
    pub excluded: Vec<usize>,
    /// Whether weights count in every rule, not only in those that are about weights.
    pub weighted: bool,
    /// Who counts as the whole for majority rules.
    pub electorate: Electorate,
    /// The share that super-majority must exceed, in billionths.
    pub super_majority: Nano,
    /// How many must cast a readable ballot; fewer are no quorum.
    pub quorum: u64,
    /// How `confidence` reads what voters say of themselves.
    pub confidence: ConfidenceMap,
    /// How many answers are possible for log-odds; the number of candidates where unknown.
    pub options: Option<u64>,
    /// How far from 0 and from 1 `log-odds` keeps reliabilities, in billionths: nobody is infallible.
    pub reliability_clip: Nano,
    /// How strongly members of one family err together, 0 to 1 in billionths.
    pub family_correlation: Nano,
    /// Whether a tie goes to the answer that more families put first, before anything else but known reliability.
    pub families_untie: bool,
    /// Each earlier round counts this much of the next one, 0 to 1 in billionths (`pooled-rounds`).
    pub round_decay: Nano,
    /// The most that one ballot may spend (`cumulative`).
    pub points: u64,
    /// The most candidates that one ballot may approve; half of them, rounded up, where unset.
    pub approvals_max: Option<usize>,
    /// Instant-runoff's own.
    pub runoff: Runoff,
    /// What an arbiter said, where one was asked to break a tie.
    pub arbiter: Option<usize>,
    /// The seed of lots.
    pub seed: u64,
    /// What the lot is about, so that two questions of one council draw different lots.
    pub question: String,
}

/// Who counts as the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Electorate {
    /// Whoever cast a readable ballot.
    #[default]
    Voting,
    /// Everybody who was asked, abstentions included.
    Everybody,
}

/// From what a voter says of its own certainty to what that is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConfidenceMap {
    /// As said.
    #[default]
    Identity,
    /// The steps of ReConcile: up to .6 counts .1, below .8 .3, below .9 .5, below 1 .8, and 1 counts 1.
    Steps,
    /// `ln(c / (1 - c))`, never below nothing; `c` is kept within .05 and .95.
    Logit,
    /// A fitted curve: points (said, worth) in billionths, rising, straight lines between them.
    Fitted(Vec<(Nano, Nano)>),
}

/// How instant-runoff reads ballots and drops candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runoff {
    /// Whom to drop when several are lowest.
    pub ties: TiePolicy,
    /// What two names at one rank mean.
    pub overvote: Overvote,
    /// How many blank ranks in a row a ballot survives; `None`: any number.
    pub skips_max: Option<usize>,
    /// How many ranks are read; `None`: all.
    pub ranks_max: Option<usize>,
    /// Whether naming a candidate twice ends the ballot.
    pub exhaust_on_duplicate: bool,
    /// Whoever has fewer than so many votes, in billionths, is dropped together with all such; `None`: nobody is.
    pub least: Option<Nano>,
    /// Whether all who cannot catch up any more are dropped in one round.
    pub drop_hopeless: bool,
    /// Whether the count goes on, after somebody won, until two are left.
    pub until_two: bool,
    /// Dropped first whatever their votes: write-ins that nobody declared.
    pub drop_first: Vec<usize>,
}

/// Whom instant-runoff drops when several are lowest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TiePolicy {
    /// All of them together, unless nobody would be left.
    #[default]
    Batch,
    /// Each of them in turn: the winners over every order.
    Parallel,
    /// Who had fewest in the latest round in which they differed; then the lot.
    Backward,
    /// Who had fewest in the earliest round in which they differed; then the lot.
    Forward,
    /// Who has the lowest Borda score of all; then the lot.
    Borda,
    /// Whoever stands last in this list.
    Order(Vec<usize>),
    /// A lot from the seed.
    Seeded,
    /// What somebody else answered: the names dropped or elected, round by round. Then the lot.
    Answers(Vec<Vec<usize>>),
}

/// What two names at one rank mean to instant-runoff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overvote {
    /// Nothing as long as at most one of them is still in; else the ballot ends there.
    #[default]
    ExhaustIfSeveralStay,
    /// The ballot ends there.
    Exhaust,
    /// The rank is passed over.
    Skip,
}

impl Rules {
    /// The defaults for these candidates.
    pub fn of<S: Into<String>>(candidates: impl IntoIterator<Item = S>) -> Self {
        Self {
            candidates: candidates.into_iter().map(Into::into).collect(),
            excluded: Vec::new(),
            weighted: false,
            electorate: Electorate::default(),
            super_majority: 2 * NANOS / 3,
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
