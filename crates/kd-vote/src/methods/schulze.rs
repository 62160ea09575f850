//! Schulze: the strongest paths of victories.

use crate::limits::CUBIC;
use crate::profile::{Profile, Strength};
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "schulze",
    aliases: &["schulze-winning-votes", "beatpath"],
    doc: "a candidate wins if, against every other candidate, it has a chain of victories at least as strong as any chain in the other direction; the strength of a victory is the number of votes for it",
    source: "Schulze 2011, A new monotonic, clone-independent, reversal symmetric and Condorcet-consistent method",
    caveat: "hard to explain to the losers; ties when several chains are equally strong",
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
    candidates_max: CUBIC,
    ..Rule::BASE
};

pub(super) const MARGINS: Rule = Rule {
    name: "schulze-margins",
    aliases: &["schulze(beat_path,margins)", "schulze(margins)"],
    doc: "Schulze, with the margin as the strength of a victory",
    source: "Schulze 2011",
    caveat: "short rankings weaken a victory as much as opposition does",
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
    candidates_max: CUBIC,
    ..Rule::BASE
};

fn winning_votes(poll: &Poll<'_>) -> Count {
    by(poll, Strength::WinningVotes)
}

fn margins(poll: &Poll<'_>) -> Count {
    by(poll, Strength::Margins)
}

fn by(poll: &Poll<'_>, strength: Strength) -> Count {
    let among = &poll.standing;
    let paths = Profile::of(poll).duels().paths(among, strength);
    let holds = |a: &usize| among.iter().all(|b| paths[*a][*b] >= paths[*b][*a]);
    Count {
        winners: among.iter().copied().filter(holds).collect(),
        ..Count::default()
    }
}
