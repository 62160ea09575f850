//! Log-odds vote: each vote counts the logarithm of the odds that its voter is right.

use crate::Detail;
use crate::{Axiom, Count, NANOS, Nano, Poll, Reads, Rule, Sees, nanos};
use std::collections::BTreeMap;

pub(super) const RULE: Rule = Rule {
    name: "log-odds",
    aliases: &["optimal-weights", "logodds"],
    doc: "each vote counts ln(p (K-1) / (1-p)), never below 0, for a voter who is right with probability p among K answers; p counts as at most .95",
    source: "Nitzan and Paroush 1982; Grofman, Owen and Feld 1983; for language models arXiv 2510.01499",
    caveat: "best only for voters with independent errors: declare their family and its correlation, or similar voters count twice",
    reads: Reads::Choice,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    details: &[Detail::Reliability],
    ..Rule::BASE
};

/// The reliability of an unknown voter: right more often than not.
const UNKNOWN: Nano = 6 * NANOS / 10;

fn count(poll: &Poll<'_>) -> Count {
    let mut sums = vec![0; poll.len()];
    for (vote, weight) in poll.votes.iter().zip(weights(poll)) {
        if let Sees::One(c) = vote.sees {
            sums[c] += weight * i128::from(vote.ballot.count);
        }
    }
    let unknown: u64 = poll
        .votes
        .iter()
        .filter(|v| v.ballot.reliability.is_none())
        .fold(0, |n, v| n + v.ballot.count);
    let notes = match unknown {
        0 => Vec::new(),
        n => vec![format!("the reliability of {n} is unknown and taken as .6")],
    };
    Count {
        winners: poll.best(|c| sums[c]),
        scores: poll.scores(&sums),
        notes,
        ..Count::default()
    }
}

/// Returns the log-odds weight of each vote, in billionths: rounded once, so that sums are exact.
pub(crate) fn weights(poll: &Poll<'_>) -> Vec<Nano> {
    let k = poll
        .rules
        .options
        .unwrap_or(poll.standing.len() as u64)
        .max(2) as f64;
    let mut families: BTreeMap<&str, u64> = BTreeMap::new();
    for vote in &poll.votes {
        if let Some(family) = &vote.ballot.family {
            let size = families.entry(family.as_str()).or_default();
            *size = size.saturating_add(vote.ballot.count);
        }
    }
    let rho = poll.rules.family_correlation.clamp(0, NANOS) as f64 / NANOS as f64;
    let clip = poll.rules.reliability_clip.clamp(1, NANOS / 2) as f64 / NANOS as f64;
    let weight = |vote: &crate::Vote<'_>| {
        let p = vote.ballot.reliability.unwrap_or(UNKNOWN) as f64 / NANOS as f64;
        let p = p.clamp(clip, 1.0 - clip);
        let alone = (p * (k - 1.0) / (1.0 - p)).ln().max(0.0);
        let likes = vote
            .ballot
            .family
            .as_deref()
            .and_then(|f| families.get(f))
            .copied()
            .unwrap_or(1);
        nanos(alone / (1.0 + likes.saturating_sub(1) as f64 * rho))
    };
    poll.votes.iter().map(weight).collect()
}
