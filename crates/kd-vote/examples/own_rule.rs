//! A voting rule of your own: approval voting with at most two approvals.
//!
//! ```sh
//! cargo run -p kd-vote --example own_rule
//! ```
#![allow(clippy::print_stdout, reason = "a program, which prints")]

use kd_vote::{Ballot, Count, Mark, Poll, Reads, Rule, Rules, Sees, tally};

static TWO_APPROVAL: Rule = Rule {
    name: "two-approval",
    doc: "each voter approves up to two candidates; the candidate with the most approvals wins",
    reads: Reads::Approvals,
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let sums = poll.add_up(|vote| match &vote.sees {
        Sees::Set(set) if set.len() <= 2 => set.iter().map(|c| (*c, vote.weight)).collect(),
        _ => Vec::new(),
    });
    Count {
        winners: poll.best(|c| sums[c]),
        scores: poll.scores(&sums),
        ..Count::default()
    }
}

fn main() {
    let rules = Rules {
        approvals_max: Some(2),
        ..Rules::of(["tea", "coffee", "water"])
    };
    let approve = |set: &[usize]| Ballot::new(Mark::Approvals(set.to_vec()));
    let ballots = [approve(&[0, 2]), approve(&[1, 2]), approve(&[1])];
    let count = tally(&TWO_APPROVAL, &ballots, &rules);
    for step in &count.tie_path {
        println!("tie broken by {}: {}", step.step, step.why);
    }
    let winner = count.winner.map(|c| rules.candidates[c].as_str());
    println!("winner: {}", winner.unwrap_or("nobody"));
}
