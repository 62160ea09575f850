//! The rules: one file and one row each.

mod anti_plurality;
mod approval;
mod baldwin;
mod benham;
mod black;
mod borda;
mod bradley_terry;
mod bucklin;
mod condorcet;
mod condorcet_irv;
mod confidence;
mod consensus;
mod coombs;
mod copeland;
mod cumulative;
mod dowdall;
mod irv;
mod judge;
mod jury;
mod kemeny;
mod locking;
pub(crate) mod log_odds;
mod majority;
mod median;
mod minimax;
mod nanson;
mod plurality;
mod pooled_rounds;
mod ranked_pairs;
mod raynaud;
mod river;
mod runoff;
mod schulze;
mod score;
mod smith;
mod smith_irv;
mod split_cycle;
mod stable;
mod star;
mod super_majority;
mod surprising;
mod tideman;
mod trajectory;
mod unanimity;
mod weighted;

use super::Rule;
use super::amount::{Amount, NANOS, Nano};
use super::poll::{Poll, Sees, Vote};
use super::profile::Profile;
use super::tally::{Count, Round};

/// The usual rule for choices.
pub(crate) static PLURALITY: Rule = plurality::RULE;
/// The usual rule for rankings.
pub(crate) static BORDA: Rule = borda::RULE;

/// All rules.
pub const RULES: &[Rule] = &[
    plurality::RULE,
    majority::RULE,
    super_majority::RULE,
    unanimity::RULE,
    weighted::RULE,
    confidence::RULE,
    log_odds::RULE,
    pooled_rounds::RULE,
    trajectory::RULE,
    surprising::RULE,
    score::RULE,
    star::RULE,
    median::RULE,
    cumulative::RULE,
    approval::RULE,
    borda::RULE,
    dowdall::RULE,
    dowdall::DOUBLES,
    anti_plurality::RULE,
    bucklin::RULE,
    irv::RULE,
    irv::PARALLEL,
    runoff::RULE,
    coombs::RULE,
    baldwin::RULE,
    nanson::STRICT,
    nanson::WEAK,
    condorcet::RULE,
    condorcet::WEAK,
    copeland::RULE,
    copeland::LLULL,
    minimax::RULE,
    minimax::MARGINS,
    schulze::RULE,
    schulze::MARGINS,
    ranked_pairs::RULE,
    ranked_pairs::MARGINS,
    ranked_pairs::FIRST_VOTER,
    river::RULE,
    split_cycle::RULE,
    stable::RULE,
    kemeny::RULE,
    smith::RULE,
    smith::SCHWARTZ,
    smith_irv::RULE,
    tideman::RULE,
    benham::RULE,
    condorcet_irv::RULE,
    black::RULE,
    raynaud::RULE,
    bradley_terry::RULE,
    judge::RULE,
    jury::RULE,
];

/// Returns the weight of the votes for each candidate.
fn support(poll: &Poll<'_>) -> Vec<Nano> {
    poll.add_up(|vote| match vote.sees {
        Sees::One(c) => vec![(c, vote.weight)],
        _ => Vec::new(),
    })
}

/// Returns the points of a vote; empty if it gives none.
fn points<'v>(vote: &'v Vote<'_>) -> &'v [Nano] {
    match &vote.sees {
        Sees::Points(points) => points,
        _ => &[],
    }
}

/// Returns the verdicts of judges who gave the same answer in both orders.
fn verdicts(poll: &Poll<'_>) -> Count {
    let sums = poll.add_up(|vote| match &vote.sees {
        Sees::Trail(trail) => trail
            .iter()
            .flatten()
            .take(1)
            .map(|c| (*c, vote.weight))
            .collect(),
        _ => Vec::new(),
    });
    Count {
        winners: poll.best(|c| sums[c]),
        scores: poll.scores(&sums),
        ..Count::default()
    }
}

/// The candidates with the greatest amount win.
fn scored(poll: &Poll<'_>, amounts: Vec<Amount>, rounds: Vec<Round>) -> Count {
    let winners = poll.best(|c| &amounts[c]);
    Count {
        winners,
        scores: shown(poll, amounts),
        rounds,
        ..Count::default()
    }
}

/// The candidates with the greatest product of points and weights win; both are in billionths.
fn scored_nanos_squared(poll: &Poll<'_>, sums: &[Nano]) -> Count {
    let unit = Amount::whole(NANOS);
    let amounts = sums.iter().map(|s| {
        Amount::of_nanos(*s)
            .over(&unit)
            .unwrap_or_else(Amount::zero)
    });
    scored(poll, amounts.collect(), Vec::new())
}

/// Returns the score of each candidate; candidates that cannot win have none.
fn shown(poll: &Poll<'_>, amounts: Vec<Amount>) -> Vec<Option<Amount>> {
    amounts
        .into_iter()
        .enumerate()
        .map(|(c, a)| poll.standing.contains(&c).then_some(a))
        .collect()
}

/// Eliminates candidates round by round, for all rules that do so. `drop` returns the candidates to eliminate, given the
/// remaining ones; `won` returns the current winners. The winners are the remaining candidates, or the last ones
/// eliminated together.
fn eliminate(
    poll: &Poll<'_>,
    tally: impl Fn(&[usize]) -> Vec<Amount>,
    won: impl Fn(&[usize], &[Amount]) -> Vec<usize>,
    drop: impl Fn(&[usize], &[Amount]) -> Vec<usize>,
) -> Count {
    let mut left = poll.standing.clone();
    let mut rounds = Vec::new();
    loop {
        let amounts = tally(&left);
        let mut round = Round {
            tally: left.iter().map(|c| (*c, amounts[*c].clone())).collect(),
            ..Round::default()
        };
        let mut winners = won(&left, &amounts);
        if winners.is_empty() && left.len() == 1 {
            winners.clone_from(&left);
        }
        if winners.is_empty() {
            let out = drop(&left, &amounts);
            if out.is_empty() || out.len() == left.len() {
                winners.clone_from(&left);
            } else {
                left.retain(|c| !out.contains(c));
                round.eliminated = out;
                rounds.push(round);
                continue;
            }
        }
        round.elected.clone_from(&winners);
        rounds.push(round);
        return Count {
            winners,
            rounds,
            ..Count::default()
        };
    }
}

/// No winners yet.
fn nobody(_: &[usize], _: &[Amount]) -> Vec<usize> {
    Vec::new()
}

/// Returns the candidates with more than half of all ballots, including exhausted ones.
fn majority_of(profile: &Profile<'_>) -> impl Fn(&[usize], &[Amount]) -> Vec<usize> {
    let all = profile.weight();
    move |left, firsts| {
        let two = Amount::whole(2);
        left.iter()
            .copied()
            .filter(|c| &firsts[*c] * &two > all)
            .collect()
    }
}
