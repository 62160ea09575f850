//! The reasons why a ballot is not counted.

use crate::amount::{Amount, Nano};

/// The reason why a ballot is an abstention.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoVote {
    /// It could not be read, and why.
    #[error("{0}")]
    Unreadable(String),
    /// Its weight is out of range.
    #[error("its weight is not a number from 0 to a billion")]
    Weight,
    /// It stands for too many voters.
    #[error("it counts for more than four billion voters")]
    Count,
    /// It names an index beyond the list of candidates.
    #[error("it names a candidate that does not stand")]
    Unknown,
    /// Its only choice cannot win.
    #[error("its choice cannot win")]
    CannotWin,
    /// It chooses nobody.
    #[error("it chooses nobody")]
    Nobody,
    /// It puts several candidates first.
    #[error("it puts several first, and the rule counts one")]
    SeveralFirst,
    /// It has two marks at one rank.
    #[error("it has two marks at one rank")]
    Overvote,
    /// It ranks nobody who can win.
    #[error("it ranks nobody who can win")]
    RanksNobody,
    /// All its scores are blank.
    #[error("it scores nobody")]
    ScoresNobody,
    /// A score is too large to be summed.
    #[error("a score is beyond a billion")]
    ScoreTooLarge,
    /// It has no points, and the rule counts points.
    #[error("it has no points")]
    NoPoints,
    /// It takes points away.
    #[error("it gives points below nothing")]
    NegativePoints,
    /// It spends more points than the rule gives a voter.
    #[error("it spends {} points of {purse}", Amount::of_nanos(*spent))]
    PointsOver {
        /// The points spent, in billionths.
        spent: Nano,
        /// The points of a voter.
        purse: u64,
    },
    /// It approves nobody.
    #[error("it approves nobody")]
    ApprovesNobody,
    /// It approves nobody who can win.
    #[error("it approves nobody who can win")]
    ApprovesNoWinner,
    /// It approves more candidates than the rule allows.
    #[error("it approves {approved}, and the cap is {cap}")]
    ApprovesOver {
        /// Candidates approved.
        approved: usize,
        /// Maximum.
        cap: usize,
    },
    /// It has no choice for each round or order.
    #[error("it has no choice for each round")]
    NoTrail,
    /// It chooses nobody in any round.
    #[error("it chooses nobody in any round")]
    EmptyTrail,
    /// A judge chose differently in the other order.
    #[error("the verdict turns with the order")]
    OrderDecides,
    /// A judge answered in one order only.
    #[error("a judge must answer in both orders")]
    OneOrder,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NANOS;

    #[test]
    fn points_are_told_as_written_on_the_ballot() {
        let over = NoVote::PointsOver {
            spent: 12 * NANOS + NANOS / 2,
            purse: 10,
        };
        assert_eq!(over.to_string(), "it spends 12.5 points of 10");
    }
}
