//! The certainty of a council about its verdict.

/// Returns the lead of the winner over the strongest other answer as a share of all members' weight: 1 if all gave the
/// winning answer, 0 in a tie, negative if another answer weighs more. A member without an answer counts as disagreeing
/// with every answer. `None` without members or without weight.
///
/// `answers` holds each member's answer, with equal numbers for equal answers; `weights` holds the weight of each vote.
pub fn score(answers: &[Option<usize>], weights: &[f64], winner: usize) -> Option<f64> {
    let whole: f64 = weights.iter().take(answers.len()).sum();
    if answers.len() > weights.len() || whole <= 0.0 || !whole.is_finite() {
        return None;
    }
    let of = |key: usize| -> f64 {
        let gave = answers
            .iter()
            .zip(weights)
            .filter(|(answer, _)| **answer == Some(key));
        gave.map(|(_, weight)| weight).sum()
    };
    let rivals = answers.iter().flatten().filter(|key| **key != winner);
    let rival = rivals.map(|key| of(*key)).fold(0.0, f64::max);
    Some((of(winner) - rival) / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_lead_as_a_share_of_everybody() {
        let even = [1.0; 5];
        let near = |answers: &[Option<usize>], weights: &[f64], winner, expected: f64| {
            let is = score(answers, weights, winner).expect("a score");
            assert!((is - expected).abs() < 1e-12, "{answers:?}: {is}");
        };
        near(&[Some(0); 5], &even, 0, 1.0);
        near(
            &[Some(0), Some(0), Some(0), Some(1), Some(2)],
            &even,
            0,
            0.4,
        );
        near(&[Some(0), Some(0), Some(0), Some(1), None], &even, 0, 0.4);
        near(&[Some(0), Some(0), Some(1), Some(1), None], &even, 0, 0.0);
        near(&[Some(0), Some(1)], &[1.0, 3.0], 0, -0.5);
        near(&[Some(0), Some(1)], &[1.0, 3.0], 1, 0.5);
        near(&[None, Some(1)], &[1.0, 3.0], 0, -0.75);
        assert_eq!(score(&[], &[], 0), None);
        assert_eq!(score(&[Some(0)], &[0.0], 0), None);
        assert_eq!(score(&[Some(0), Some(0)], &[1.0], 0), None);
    }
}
