//! The maximum number of candidates per rule, so that every count ends in seconds. For every rule, time is linear in
//! the number of ballots, which is not limited.

use super::Rule;

/// Maximum candidates of a rule that is not in [`LIMITS`]: rules that only add up ballots.
const CANDIDATES_MAX: usize = 4096;

/// Rules that take longer, by how their time grows with the number of candidates.
const LIMITS: &[(usize, &[&str])] = &[
    // Quadratic: all pairs, or a count for each eliminated candidate.
    (
        1024,
        &[
            "irv",
            "baldwin",
            "nanson",
            "weak-nanson",
            "condorcet",
            "weak-condorcet",
            "copeland",
            "llull",
            "minimax",
            "minimax-margins",
            "black",
            "bucklin",
        ],
    ),
    // Cubic: chains of victories, or duels or shares of last places recomputed for each eliminated candidate.
    (
        256,
        &[
            "coombs",
            "schulze",
            "schulze-margins",
            "split-cycle",
            "stable-voting",
            "smith",
            "schwartz",
            "smith-irv",
            "condorcet-irv",
            "benham",
            "raynaud",
            "bradley-terry",
            "kemeny",
        ],
    ),
    // Cubic per eliminated candidate, or per victory locked in.
    (128, &["tideman-alternative", "ranked-pairs-zt"]),
    // All orders of ties.
    (
        64,
        &[
            "irv-parallel",
            "ranked-pairs",
            "ranked-pairs-margins",
            "river",
        ],
    ),
];

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
    /// Returns the maximum number of candidates.
    pub fn candidates_max(&self) -> usize {
        let limit = LIMITS.iter().find(|(_, names)| names.contains(&self.name));
        limit.map_or(CANDIDATES_MAX, |(max, _)| *max)
    }

    /// Returns an error if a poll has more candidates than this rule supports.
    pub fn takes(&self, candidates: usize) -> Result<(), TooLarge> {
        let max = self.candidates_max();
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
    use super::*;
    use crate::{Ballot, Mark, RULES, Rank, Rules, tally};

    #[test]
    fn the_table_names_rules() {
        for name in LIMITS.iter().flat_map(|(_, names)| *names) {
            assert!(RULES.iter().any(|rule| rule.name == *name), "{name}");
        }
    }

    /// Each ballot names half of the candidates, so its last place is shared by all others.
    #[test]
    fn coombs_counts_short_rankings_up_to_its_limit() {
        let rule = crate::find("coombs").expect("a rule");
        let size = rule.candidates_max();
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
            let max = rule.candidates_max();
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
