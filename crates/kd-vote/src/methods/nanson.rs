//! Nanson: eliminates all candidates below (or not above) the average Borda score, repeatedly.

use crate::limits::QUADRATIC;
use crate::profile::Profile;
use crate::{Amount, Axiom, Count, Poll, Reads, Rule};

pub(super) const STRICT: Rule = Rule {
    name: "nanson",
    aliases: &["strict_nanson"],
    doc: "drops all candidates with a Borda score below the average of the remaining candidates, until none is below it",
    source: "Nanson 1882, Methods of election",
    caveat: "more votes for a winner can make it lose",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
        Axiom::Reversal,
    ],
    method: strict,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

pub(super) const WEAK: Rule = Rule {
    name: "weak-nanson",
    aliases: &["weak_nanson"],
    doc: "drops all candidates whose Borda score is not above the average of the remaining candidates, until at most one is left",
    source: "a reading of Nanson 1882; Niou 1987",
    caveat: "more votes for a winner can make it lose; ties are broken harshly",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority, Axiom::Condorcet],
    method: weak,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

fn strict(poll: &Poll<'_>) -> Count {
    drop_by(poll, |own, average| own < average)
}

fn weak(poll: &Poll<'_>) -> Count {
    drop_by(poll, |own, average| own <= average)
}

fn drop_by(poll: &Poll<'_>, low: impl Fn(&Amount, &Amount) -> bool) -> Count {
    let profile = Profile::of(poll);
    let drop = |left: &[usize], borda: &[Amount]| {
        let sum: Amount = left.iter().map(|c| borda[*c].clone()).sum();
        let average = sum
            .over(&Amount::whole(left.len() as i128))
            .unwrap_or_else(Amount::zero);
        left.iter()
            .copied()
            .filter(|c| low(&borda[*c], &average))
            .collect()
    };
    super::eliminate(poll, |left| profile.borda(left), super::nobody, drop)
}
