//! The protocols for scripted members: one row each.

use super::game::{Game, Manners, Table};
use crate::deciders::heaviest;
use crate::weights::odds;

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Protocol {
    /// Its name; the one in `kd deliberate` if it exists there.
    pub name: &'static str,
    /// The description, for people.
    pub doc: &'static str,
    /// Runs it and returns the winners.
    pub(super) lead: fn(&mut Game<'_>, &Table, u32) -> Vec<usize>,
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Protocol({})", self.name)
    }
}

/// All of them. The first is the baseline.
pub const PROTOCOLS: &[Protocol] = &[
    Protocol {
        name: "vote",
        doc: "all answer blind, the most votes win",
        lead: vote,
    },
    Protocol {
        name: "solo",
        doc: "the strongest member alone",
        lead: solo,
    },
    Protocol {
        name: "weighted",
        doc: "a vote in which each weighs the odds that it is right",
        lead: weighted,
    },
    Protocol {
        name: "cascade",
        doc: "the two weakest first, the strongest where they disagree",
        lead: cascade,
    },
    Protocol {
        name: "debate",
        doc: "blind answers, then rounds in which all read all others with their names, then a vote",
        lead: debate,
    },
    Protocol {
        name: "debate-anonymous",
        doc: "the same without names",
        lead: debate_anonymous,
    },
    Protocol {
        name: "debate-justified",
        doc: "without names, and a changed answer counts only with a reason",
        lead: debate_justified,
    },
    Protocol {
        name: "gate-debate",
        doc: "a vote; only without a majority, one round without names and with reasons, and a second vote",
        lead: gate_debate,
    },
];

/// Returns the protocol with this name.
pub fn find(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|p| p.name == name)
}

fn all(game: &mut Game<'_>) {
    game.calls += game.says.len() as u64;
}

fn vote(game: &mut Game<'_>, _: &Table, _: u32) -> Vec<usize> {
    all(game);
    game.vote_all()
}

/// Returns the members from the weakest to the strongest.
fn by_strength(table: &Table) -> Vec<usize> {
    let mut order: Vec<usize> = (0..table.seats.len()).collect();
    // An adversary is not an expert, whatever its accuracy.
    let right = |m: usize| {
        if table.seats[m].adversary {
            0.0
        } else {
            table.seats[m].accuracy
        }
    };
    order.sort_by(|a, b| right(*a).total_cmp(&right(*b)).then(b.cmp(a)));
    order
}

fn solo(game: &mut Game<'_>, table: &Table, _: u32) -> Vec<usize> {
    game.calls += 1;
    by_strength(table)
        .last()
        .and_then(|best| game.says[*best])
        .into_iter()
        .collect()
}

fn weighted(game: &mut Game<'_>, table: &Table, _: u32) -> Vec<usize> {
    all(game);
    let right: Vec<f64> = table
        .seats
        .iter()
        .map(|s| if s.adversary { 0.0 } else { s.accuracy })
        .collect();
    heaviest(&game.says, &odds(&right))
}

fn cascade(game: &mut Game<'_>, table: &Table, _: u32) -> Vec<usize> {
    let order = by_strength(table);
    let (Some(a), Some(b), Some(best)) = (order.first(), order.get(1), order.last()) else {
        return solo(game, table, 0);
    };
    game.calls += 2;
    match (game.says[*a], game.says[*b]) {
        (Some(x), Some(y)) if x == y => vec![x],
        _ => {
            game.calls += 1;
            game.says[*best].into_iter().collect()
        }
    }
}

fn rounds(game: &mut Game<'_>, rounds: u32, manners: Manners) -> Vec<usize> {
    all(game);
    (0..rounds).for_each(|_| game.discuss(manners));
    game.vote_all()
}

fn debate(game: &mut Game<'_>, _: &Table, n: u32) -> Vec<usize> {
    rounds(game, n, Manners::default())
}

fn debate_anonymous(game: &mut Game<'_>, _: &Table, n: u32) -> Vec<usize> {
    rounds(
        game,
        n,
        Manners {
            anonymous: true,
            justified: false,
        },
    )
}

fn debate_justified(game: &mut Game<'_>, _: &Table, n: u32) -> Vec<usize> {
    rounds(
        game,
        n,
        Manners {
            anonymous: true,
            justified: true,
        },
    )
}

fn gate_debate(game: &mut Game<'_>, _: &Table, _: u32) -> Vec<usize> {
    all(game);
    let first = game.vote_all();
    let has_majority =
        |key: usize| 2 * game.says.iter().filter(|s| **s == Some(key)).count() > game.says.len();
    if matches!(first.as_slice(), [key] if has_majority(*key)) {
        return first;
    }
    game.discuss(Manners {
        anonymous: true,
        justified: true,
    });
    game.vote_all()
}
