//! Confidence vote: a vote counts in proportion to its voter's stated confidence.

use crate::Detail;
use crate::{Axiom, ConfidenceMap, Count, NANOS, Nano, Poll, Reads, Rule, Sees, nanos};

pub(super) const RULE: Rule = Rule {
    name: "confidence",
    aliases: &["confidence-weighted", "reconcile"],
    doc: "each vote counts by the confidence that the voter stated: unchanged, by ReConcile's steps, as log-odds, or by a fitted curve",
    source: "Chen et al. 2024, ReConcile",
    caveat: "the certainty that a model states is not a probability: fit a curve before you trust it",
    reads: Reads::Choice,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    details: &[Detail::Confidence],
    ..Rule::BASE
};

/// The confidence of a voter that states none.
const UNSAID: Nano = NANOS / 2;

fn count(poll: &Poll<'_>) -> Count {
    let mut silent = 0u64;
    for vote in &poll.votes {
        if vote.ballot.confidence.is_none() {
            silent = silent.saturating_add(vote.ballot.count);
        }
    }
    let map = &poll.rules.confidence;
    // Weights are in units of votes, confidences in billionths: the product is scaled back once, at the end.
    let sums = poll.add_up(|vote| match vote.sees {
        Sees::One(c) => vec![(
            c,
            vote.weight * worth(map, vote.ballot.confidence.unwrap_or(UNSAID)),
        )],
        _ => Vec::new(),
    });
    let winners = poll.best(|c| sums[c]);
    let unit = crate::Amount::whole(NANOS);
    let scores = poll
        .scores(&sums)
        .into_iter()
        .map(|score| score.and_then(|s| s.over(&unit)))
        .collect();
    let notes = match silent {
        0 => Vec::new(),
        n => vec![format!("{n} did not say how sure they are and count as .5")],
    };
    Count {
        winners,
        scores,
        notes,
        ..Count::default()
    }
}

/// Maps a stated confidence to its weight, both in billionths.
fn worth(map: &ConfidenceMap, said: Nano) -> Nano {
    let said = said.clamp(0, NANOS);
    match map {
        ConfidenceMap::Identity => said,
        ConfidenceMap::Steps => {
            let tenths = |n: Nano| n * NANOS / 10;
            match said {
                s if s <= tenths(6) => tenths(1),
                s if s < tenths(8) => tenths(3),
                s if s < tenths(9) => tenths(5),
                s if s < NANOS => tenths(8),
                _ => NANOS,
            }
        }
        ConfidenceMap::Logit => {
            let c = (said as f64 / NANOS as f64).clamp(0.05, 0.95);
            nanos((c / (1.0 - c)).ln()).max(0)
        }
        ConfidenceMap::Fitted(points) => fitted(points, said),
    }
}

/// Interpolates linearly between points at `said`; constant beyond the ends, and the identity without points.
fn fitted(points: &[(Nano, Nano)], said: Nano) -> Nano {
    let clamp = |y: Nano| y.clamp(0, NANOS);
    let after = points.partition_point(|(x, _)| *x < said);
    match (
        after.checked_sub(1).and_then(|i| points.get(i)),
        points.get(after),
    ) {
        (Some((x0, y0)), Some((x1, y1))) if x1 > x0 => {
            let (y0, y1) = (clamp(*y0), clamp(*y1));
            // Both differences are at most a billion, so their product fits.
            clamp(y0 + (y1 - y0) * (said - x0).clamp(0, NANOS) / (x1 - x0).max(1))
        }
        (_, Some((_, y))) | (Some((_, y)), None) => clamp(*y),
        (None, None) => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_say_what_their_papers_say() {
        let at = |map: &ConfidenceMap, c: f64| worth(map, nanos(c));
        for (c, w) in [
            (0.0, 0.1),
            (0.6, 0.1),
            (0.61, 0.3),
            (0.8, 0.5),
            (0.89, 0.5),
            (0.9, 0.8),
            (1.0, 1.0),
        ] {
            assert_eq!(at(&ConfidenceMap::Steps, c), nanos(w), "{c}");
        }
        let curve = ConfidenceMap::Fitted(vec![(nanos(0.5), nanos(0.3)), (nanos(1.0), nanos(0.8))]);
        for (c, w) in [(0.1, 0.3), (0.5, 0.3), (0.75, 0.55), (1.0, 0.8)] {
            assert_eq!(at(&curve, c), nanos(w), "{c}");
        }
        assert_eq!(at(&ConfidenceMap::Logit, 0.5), 0);
        assert_eq!(
            at(&ConfidenceMap::Logit, 0.1),
            0,
            "never against the own choice"
        );
        assert_eq!(
            at(&ConfidenceMap::Logit, 1.0),
            nanos(19f64.ln()),
            "kept within .95"
        );
    }
}
