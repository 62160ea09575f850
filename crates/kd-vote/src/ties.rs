//! Breaks ties by a chain of criteria, each recorded, with a random draw as the last resort. The draw depends only on
//! the seed, the question and the name of the answer, so anyone can repeat it.

use super::amount::{Amount, NANOS, Nano};
use super::methods::log_odds;
use super::poll::{Poll, Sees, best_of};
use super::profile::Profile;
use super::tally::TieStep;
use sha2::{Digest, Sha256};

/// Returns the number drawn for a name: the lowest wins. It depends only on the three arguments.
pub fn lot(seed: u64, question: &str, name: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    // Length prefixes, so that no two triples hash the same bytes.
    hash.update((question.len() as u64).to_le_bytes());
    hash.update(question.as_bytes());
    hash.update(name.as_bytes());
    hash.finalize().into()
}

/// Orders candidates by random draw: the lowest number first.
pub(crate) fn by_lot(poll: &Poll<'_>, mut tied: Vec<usize>) -> Vec<usize> {
    let rules = poll.rules;
    tied.sort_by_cached_key(|c| (lot(rules.seed, &rules.question, &rules.candidates[*c]), *c));
    tied
}

/// Returns the winner among tied ones, and the steps that led to it. No steps without a tie.
pub(crate) fn untie(poll: &Poll<'_>, winners: &[usize]) -> (Option<usize>, Vec<TieStep>) {
    let mut left = winners.to_vec();
    let mut path = Vec::new();
    let all: [fn(&Poll<'_>, &[usize]) -> Step; 6] =
        [weights, families, pairwise, best_member, arbiter, draw];
    let chain = all.iter().enumerate();
    let asked = chain.filter(|(at, _)| *at != 1 || poll.rules.families_untie);
    for (_, step) in asked {
        if left.len() < 2 {
            break;
        }
        let Step { name, kept, why } = step(poll, &left);
        if !kept.is_empty() {
            left = kept;
        }
        path.push(TieStep {
            step: name,
            left: left.clone(),
            why,
        });
    }
    (left.first().copied(), path)
}

struct Step {
    name: &'static str,
    /// The remaining candidates; empty if the step cannot decide.
    kept: Vec<usize>,
    why: String,
}

fn cannot(name: &'static str, why: &str) -> Step {
    Step {
        name,
        kept: Vec::new(),
        why: why.into(),
    }
}

/// Keeps the candidates with the highest `score`; `shown` formats it under the heading `what`.
fn best<S: Ord>(
    name: &'static str,
    poll: &Poll<'_>,
    tied: &[usize],
    what: &str,
    score: impl Fn(usize) -> S,
    shown: impl Fn(usize) -> Amount,
) -> Step {
    Step {
        name,
        kept: best_of(tied, score),
        why: said(poll, tied, what, shown),
    }
}

/// 1: the log-odds weights of the voters who ranked each candidate first.
fn weights(poll: &Poll<'_>, tied: &[usize]) -> Step {
    const NAME: &str = "weights";
    if poll.votes.iter().all(|v| v.ballot.reliability.is_none()) {
        return cannot(NAME, "nobody's reliability is known");
    }
    let mut sums: Vec<Nano> = vec![0; poll.len()];
    for (vote, weight) in poll.votes.iter().zip(log_odds::weights(poll)) {
        if let [first] = poll.firsts(vote).as_slice() {
            sums[*first] += weight * i128::from(vote.ballot.count);
        }
    }
    let shown = |c| Amount::of_nanos(sums[c]);
    best(
        NAME,
        poll,
        tied,
        "log-odds of its backers",
        |c| sums[c],
        shown,
    )
}

/// Compares the number of families that ranked each tied candidate first, if the rules enable this. This step is
/// between 1 and 2. Voters of one family make correlated errors, so three of one family count as one opinion; a voter
/// without a family is its own family.
fn families(poll: &Poll<'_>, tied: &[usize]) -> Step {
    const NAME: &str = "families";
    if poll.votes.iter().all(|v| v.ballot.family.is_none()) {
        return cannot(NAME, "nobody's family is known");
    }
    let count = |c: usize| {
        let first = |v: &&super::poll::Vote<'_>| poll.firsts(v).as_slice() == [c];
        let backers = poll.votes.iter().filter(first);
        let mut named: Vec<&str> = Vec::new();
        let mut alone = 0;
        for vote in backers {
            match vote.ballot.family.as_deref() {
                Some(family) if named.contains(&family) => {}
                Some(family) => named.push(family),
                None => alone += 1,
            }
        }
        named.len() + alone
    };
    let shown = |c| Amount::whole(count(c) as i128);
    best(NAME, poll, tied, "families that put it first", count, shown)
}

/// 2: pairwise victories among the tied.
fn pairwise(poll: &Poll<'_>, tied: &[usize]) -> Step {
    const NAME: &str = "pairwise";
    if !poll
        .votes
        .iter()
        .any(|v| matches!(v.sees, Sees::Tiers(_) | Sees::Paper(_)))
    {
        return cannot(NAME, "the ballots are no rankings");
    }
    let duels = Profile::of(poll).duels();
    let wins = |c: usize| tied.iter().filter(|b| duels.beats(c, **b)).count();
    let shown = |c| Amount::whole(wins(c) as i128);
    best(NAME, poll, tied, "victories among the tied", wins, shown)
}

/// 3: the choice of the most reliable voter who ranked exactly one of them first.
fn best_member(poll: &Poll<'_>, tied: &[usize]) -> Step {
    const NAME: &str = "best member";
    let known: Vec<(Nano, usize)> = poll
        .votes
        .iter()
        .filter_map(|v| match poll.firsts(v).as_slice() {
            [c] if tied.contains(c) => v.ballot.reliability.map(|p| (p, *c)),
            _ => None,
        })
        .collect();
    let Some(top) = known.iter().map(|(p, _)| *p).max() else {
        return cannot(NAME, "no voter of known reliability chose one of them");
    };
    let kept: Vec<usize> = tied
        .iter()
        .copied()
        .filter(|c| known.contains(&(top, *c)))
        .collect();
    let why = format!(
        "a voter right {} % of the time chose it",
        Amount::fraction(top * 100, NANOS)
    );
    Step {
        name: NAME,
        kept,
        why,
    }
}

/// 4: the arbiter's choice.
fn arbiter(poll: &Poll<'_>, tied: &[usize]) -> Step {
    const NAME: &str = "arbiter";
    match poll.rules.arbiter {
        Some(c) if tied.contains(&c) => Step {
            name: NAME,
            kept: vec![c],
            why: "it was asked".into(),
        },
        Some(_) => cannot(NAME, "it named none of them"),
        None => cannot(NAME, "none was asked"),
    }
}

/// 5: the random draw.
fn draw(poll: &Poll<'_>, tied: &[usize]) -> Step {
    let kept: Vec<usize> = by_lot(poll, tied.to_vec()).into_iter().take(1).collect();
    let why = format!("drawn with seed {}", poll.rules.seed);
    Step {
        name: TieStep::LOT,
        kept,
        why,
    }
}

fn said(poll: &Poll<'_>, tied: &[usize], what: &str, value: impl Fn(usize) -> Amount) -> String {
    let each: Vec<String> = tied
        .iter()
        .map(|c| format!("{} {}", poll.rules.candidates[*c], value(*c)))
        .collect();
    format!("{what}: {}", each.join(", "))
}
