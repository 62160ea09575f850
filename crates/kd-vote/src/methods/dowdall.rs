//! Reciprocal of the rank: exact, and as recorded by programs that use double precision.

use crate::profile::Profile;

use crate::{Amount, Axiom, Count, NANOS, Nano, Poll, Reads, Rule, nanos};
use std::collections::BTreeMap;

pub(super) const RULE: Rule = Rule {
    name: "mrr",
    aliases: &["mean-reciprocal-rank", "harmonic", "nauru"],
    doc: "1 for a first place, 1/2 for a second, 1/3 for a third …; tied ones share the average, unranked ones get 0; exact fractions",
    source: "Nauru since 1971; as mean reciprocal rank for samples of one model: Wang et al. 2025, arXiv 2505.10772",
    caveat: "close to plurality: first places weigh almost everything",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Monotone],
    method: count,
    ..Rule::BASE
};

pub(super) const DOUBLES: Rule = Rule {
    name: "dowdall",
    aliases: &["dowdall-doubles"],
    doc: "like mrr, but in double precision: for each candidate the count at a place times 1/place, added from the first place down, as other programs record it",
    source: "Nauru since 1971, as pref_voting counts it",
    caveat: "rounding breaks exact ties arbitrarily: use mrr",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: doubles,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    // The weight of each candidate at each (candidates above, tier size): multiplied once, at the end.
    let mut at: BTreeMap<(usize, usize), Vec<Nano>> = BTreeMap::new();
    Profile::of(poll).each_tier(|tier, above, weight| {
        let sums = at
            .entry((above, tier.len()))
            .or_insert_with(|| vec![0; poll.len()]);
        for c in tier {
            sums[*c] += weight;
        }
    });
    let mut amounts = vec![Amount::zero(); poll.len()];
    for ((above, size), sums) in at {
        let places = (above..above + size).map(|place| Amount::fraction(1, place as i128 + 1));
        let average = places
            .sum::<Amount>()
            .over(&Amount::whole(size as i128))
            .unwrap_or_else(Amount::zero);
        for (amount, sum) in amounts.iter_mut().zip(sums) {
            *amount += &average * &Amount::of_nanos(sum);
        }
    }
    super::scored(poll, amounts, Vec::new())
}

/// Counts with double-precision rounding; ranks are added in order, so reordering ballots or names has no effect.
fn doubles(poll: &Poll<'_>) -> Count {
    let mut at: BTreeMap<(usize, usize), Vec<Nano>> = BTreeMap::new();
    Profile::of(poll).each_tier(|tier, above, weight| {
        let sums = at
            .entry((above, tier.len()))
            .or_insert_with(|| vec![0; poll.len()]);
        for c in tier {
            sums[*c] += weight;
        }
    });
    let mut totals = vec![0.0f64; poll.len()];
    for ((above, size), sums) in at {
        let average = (above..above + size)
            .map(|place| 1.0 / (place as f64 + 1.0))
            .sum::<f64>()
            / size as f64;
        for (total, sum) in totals.iter_mut().zip(sums) {
            *total += sum as f64 / NANOS as f64 * average;
        }
    }
    let best = poll.standing.iter().map(|c| totals[*c]).fold(0.0, f64::max);
    let winners = poll
        .standing
        .iter()
        .copied()
        .filter(|c| totals[*c] >= best)
        .collect();
    let scores = totals.iter().map(|t| Amount::of_nanos(nanos(*t))).collect();
    Count {
        winners,
        scores: super::shown(poll, scores),
        ..Count::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ballot, Rules};

    #[test]
    fn doubles_break_a_tie_that_fractions_keep() {
        // Recorded profile 439: three candidates have 101/12 each.
        let case =
            include_str!("../../tests/data/elections/golden_profiles_pref_voting_1.18.2.jsonl")
                .lines()
                .nth(439);
        let case = crate::read_json_lines(case.unwrap()).unwrap().remove(0);
        let count = |rule: &'static Rule, b: &[Ballot], r: &Rules| crate::tally(rule, b, r).winners;
        assert_eq!(
            count(crate::find("mrr").unwrap(), &case.ballots, &case.rules),
            [0, 2, 3]
        );
        assert_eq!(
            count(crate::find("dowdall").unwrap(), &case.ballots, &case.rules),
            [2]
        );
    }
}
