//! Ranked pairs: locks in victories, strongest first.

use super::locking::{self, Above};
use crate::limits::{QUARTIC, TIE_ORDERS};
use crate::profile::{Profile, Strength};
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "ranked-pairs",
    aliases: &["ranked-pairs-winning-votes", "tideman"],
    doc: "locks in victories from the strongest down, unless they close a cycle; a candidate that no locked victory beats wins; equally strong victories are tried in every order; the strength of a victory is the number of votes for it",
    source: "Tideman 1987, Independence of clones as a criterion for voting rules",
    caveat: "with few voters many victories are equally strong and several candidates win",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
        Axiom::Monotone,
        Axiom::Reversal,
    ],
    method: winning_votes,
    candidates_max: TIE_ORDERS,
    ..Rule::BASE
};

pub(super) const MARGINS: Rule = Rule {
    name: "ranked-pairs-margins",
    aliases: &["ranked_pairs(all tie orders)", "ranked-pairs(margins)"],
    doc: "ranked pairs, with the margin as the strength of a victory",
    source: "Tideman 1987",
    caveat: "with few voters many victories are equally strong and several candidates win",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
        Axiom::Monotone,
        Axiom::Reversal,
    ],
    method: margins,
    candidates_max: TIE_ORDERS,
    ..Rule::BASE
};

pub(super) const FIRST_VOTER: Rule = Rule {
    name: "ranked-pairs-zt",
    aliases: &["ranked_pairs_zt"],
    doc: "ranked pairs on margins; the first ballot gives the order of equally strong victories",
    source: "Zavist and Tideman 1989, Complete independence of clones in the ranked pairs rule",
    caveat: "the first ballot weighs more than the others",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Majority, Axiom::Condorcet, Axiom::Smith],
    method: first_voter,
    candidates_max: QUARTIC,
    ..Rule::BASE
};

fn winning_votes(poll: &Poll<'_>) -> Count {
    locking::every_order(
        poll,
        &Profile::of(poll).duels(),
        Strength::WinningVotes,
        open,
    )
}

fn margins(poll: &Poll<'_>) -> Count {
    locking::every_order(poll, &Profile::of(poll).duels(), Strength::Margins, open)
}

fn open(above: &Above, a: usize, b: usize) -> bool {
    !above[a][b] && !above[b][a]
}

fn first_voter(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    let duels = profile.duels();
    if let Some(winner) = duels.condorcet(&poll.standing) {
        return Count {
            winners: vec![winner],
            ..Count::default()
        };
    }
    let order = profile.first_order();
    let place = |c: usize| order.iter().position(|o| *o == c).unwrap_or(order.len());
    let mut above = vec![vec![false; poll.len()]; poll.len()];
    for mut group in locking::groups(&duels, &poll.standing, Strength::Margins) {
        group.sort_by_key(|(a, b)| (place(*a), place(*b)));
        for (a, b) in group {
            if open(&above, a, b) {
                locking::lock(&mut above, a, b);
            }
        }
    }
    Count {
        winners: locking::tops(&above, &poll.standing),
        ..Count::default()
    }
}
