//! The maximum number of candidates per rule, so that every count ends in seconds. For every rule, time is linear in
//! the number of ballots, which is not limited.

use super::Rule;

/// Rules that only add up ballots.
pub(crate) const LINEAR: usize = 4096;
/// Quadratic rules: all pairs, or a count for each eliminated candidate.
pub(crate) const QUADRATIC: usize = 1024;
/// Cubic rules: chains of victories, or duels or shares of last places recomputed for each eliminated candidate.
pub(crate) const CUBIC: usize = 256;
/// Rules that are cubic per eliminated candidate, or per victory locked in.
pub(crate) const QUARTIC: usize = 128;
/// Rules that follow all orders of ties.
pub(crate) const TIE_ORDERS: usize = 64;

/// A poll has more candidates than its rule supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` takes at most {max} candidates, and this poll has {candidates}")]
pub struct TooLarge {
    /// The rule.
    pub rule: &'static str,
    /// Its limit.
    pub max: usize,
    /// The number of candidates in the poll.
    pub candidates: usize,
}

impl Rule {
    /// Checks whether this rule supports a number of candidates.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] if it is greater than [`Rule::candidates_max`].
    pub fn takes(&self, candidates: usize) -> Result<(), TooLarge> {
        let max = self.candidates_max;
        match candidates <= max {
            true => Ok(()),
            false => Err(TooLarge {
                rule: self.name,
                max,
                candidates,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Ballot, Mark, RULES, Rank, Rules, tally};

    /// Each ballot names half of the candidates, so its last place is shared by all others.
    #[test]
    fn coombs_counts_short_rankings_up_to_its_limit() {
        let rule = crate::find("coombs").expect("a rule");
        let size = rule.candidates_max;
        assert!(
            size <= 256,
            "shares of last places are counted for each round"
        );
        let ballots: Vec<Ballot> = (0..20)
            .map(|k| {
                let order = (0..size / 2 + k).map(|c| Rank::One((c * (2 * k + 1) + k) % size));
                Ballot::new(Mark::Ranking(order.collect()))
            })
            .collect();
        let standing = Rules::of((0..size).map(|c| c.to_string()));
        let counted = tally(rule, &ballots, &standing);
        assert!(!counted.winners.is_empty(), "{:?}", counted.notes);
    }

    /// A rule without a limit would run this test for hours.
    #[test]
    fn every_rule_counts_up_to_its_limit_and_refuses_more() {
        for rule in RULES {
            let max = rule.candidates_max;
            assert_eq!(rule.takes(max), Ok(()));
            let told = rule.takes(max + 1).unwrap_err().to_string();
            assert!(
                told.contains(rule.name) && told.contains(&max.to_string()),
                "{told}"
            );
            // A cycle of three ballots, so that no shortcut applies.
            let size = max.min(24);
            let ballots: Vec<Ballot> = (0..3)
                .map(|k| {
                    let order = (0..size).map(|c| Rank::One((c + k * size / 3) % size));
                    Ballot::new(Mark::Ranking(order.collect()))
                })
                .collect();
            let standing = |n: usize| Rules::of((0..n).map(|c| c.to_string()));
            tally(rule, &ballots, &standing(size));
            let refused = tally(rule, &ballots, &standing(max + 1));
            assert!(refused.winners.is_empty(), "{}", rule.name);
            assert!(
                refused.notes.iter().any(|n| n.contains("at most")),
                "{}",
                rule.name
            );
        }
    }
}
