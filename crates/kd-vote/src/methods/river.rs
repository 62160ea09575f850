//! River: ranked pairs in which every candidate loses at most once.

use super::locking::{self, Above};
use crate::limits::TIE_ORDERS;
use crate::profile::{Profile, Strength};
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "river",
    aliases: &[],
    doc: "locks in victories from the strongest margin down, unless they close a cycle or their loser has lost already; a candidate that no locked victory beats wins; equally strong victories are tried in every order",
    source: "Heitzig 2004; Döring, Brill and Heitzig 2025",
    caveat: "with few voters many victories are equally strong and several candidates win",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
    ],
    method: count,
    candidates_max: TIE_ORDERS,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    locking::every_order(poll, &Profile::of(poll).duels(), Strength::Margins, open)
}

fn open(above: &Above, a: usize, b: usize) -> bool {
    !above[b][a] && !above.iter().any(|row| row[b])
}
