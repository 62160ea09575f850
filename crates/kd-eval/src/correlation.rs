//! Correlation of members' errors, and the number of independent members that a council is worth.

/// Right or wrong, by member, by question.
pub type Rights = Vec<Vec<bool>>;

/// Returns Pearson's correlation of two columns of right and wrong. `None` if one of them is constant.
pub fn pearson(a: &[bool], b: &[bool]) -> Option<f64> {
    let n = a.len().min(b.len()) as f64;
    let count = |f: &dyn Fn(bool, bool) -> bool| {
        a.iter().zip(b).filter(|(x, y)| f(**x, **y)).count() as f64
    };
    let (ones_a, ones_b, both) = (count(&|x, _| x), count(&|_, y| y), count(&|x, y| x && y));
    let spread = ones_a * (n - ones_a) * ones_b * (n - ones_b);
    (spread > 0.0).then(|| (n * both - ones_a * ones_b) / spread.sqrt())
}

/// Returns Yule's Q of two columns: 0 for independent members, 1 if one is only right when the other is.
pub fn yule_q(a: &[bool], b: &[bool]) -> Option<f64> {
    let mut n = [[0f64; 2]; 2];
    for (x, y) in a.iter().zip(b) {
        n[usize::from(*x)][usize::from(*y)] += 1.0;
    }
    let (same, cross) = (n[1][1] * n[0][0], n[1][0] * n[0][1]);
    (same + cross > 0.0).then(|| (same - cross) / (same + cross))
}

/// Returns the mean correlation of errors over all pairs of members; `None` if no pair has one.
pub fn mean_correlation(rights: &[Vec<bool>]) -> Option<f64> {
    mean(pairs(rights.len()).filter_map(|(i, j)| pearson(&rights[i], &rights[j])))
}

/// Returns the number of independent members that `n` members are worth if their errors correlate by `rho`: `n / (1 +
/// (n - 1) rho)`. `None` if the formula is meaningless: at a negative correlation it grows without bound, merely by the
/// noise of few questions.
pub fn n_eff(n: usize, rho: f64) -> Option<f64> {
    let n = n as f64;
    (rho >= 0.0).then(|| n / (1.0 + (n - 1.0) * rho))
}

/// Returns the share of identical answers among all pairs of wrong answers to one question (without abstentions).
/// `None` if there is no such pair.
pub fn same_wrong(answers: &[Vec<Option<usize>>], right: &[Vec<bool>]) -> Option<f64> {
    let (mut same, mut all) = (0u64, 0u64);
    for (given, right) in answers.iter().zip(right) {
        let wrong: Vec<usize> = given
            .iter()
            .flatten()
            .copied()
            .filter(|k| right.get(*k) != Some(&true))
            .collect();
        for (i, j) in pairs(wrong.len()) {
            all += 1;
            same += u64::from(wrong[i] == wrong[j]);
        }
    }
    (all > 0).then(|| same as f64 / all as f64)
}

/// Returns Krippendorff's alpha of nominal answers, without abstentions: 1 is full agreement, 0 is agreement by chance.
///
/// Numbers must mean the same answer on every question: chance agreement is computed over all of them.
pub fn krippendorff(answers: &[Vec<Option<usize>>]) -> Option<f64> {
    let mut totals: std::collections::BTreeMap<usize, f64> = std::collections::BTreeMap::new();
    let (mut observed, mut n) = (0.0, 0.0);
    for given in answers {
        let given: Vec<usize> = given.iter().flatten().copied().collect();
        let m = given.len() as f64;
        if m < 2.0 {
            continue;
        }
        let differ = pairs(given.len())
            .filter(|(i, j)| given[*i] != given[*j])
            .count() as f64;
        observed += 2.0 * differ / (m - 1.0);
        n += m;
        for k in given {
            *totals.entry(k).or_default() += 1.0;
        }
    }
    let expected = n * n - totals.values().map(|t| t * t).sum::<f64>();
    (expected > 0.0).then(|| 1.0 - (n - 1.0) * observed / expected)
}

/// Iterates over all pairs `i < j`.
pub(crate) fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |j| (0..j).map(move |i| (i, j)))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut n) = (0.0, 0u32);
    for v in values {
        sum += v;
        n += 1;
    }
    (n > 0).then(|| sum / f64::from(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_is_one_nothing_or_none() {
        let a = [true, true, false, false];
        assert_eq!(pearson(&a, &a), Some(1.0));
        assert_eq!(pearson(&a, &a.map(|x| !x)), Some(-1.0));
        assert_eq!(pearson(&a, &[true, false, true, false]), Some(0.0));
        assert_eq!(pearson(&a, &[true; 4]), None);
        assert_eq!(yule_q(&a, &a), Some(1.0));
        assert_eq!(yule_q(&a, &[true, false, true, false]), Some(0.0));
        assert_eq!(mean_correlation(&[vec![true; 3], vec![true; 3]]), None);
    }

    #[test]
    fn correlated_members_are_worth_few() {
        assert!((n_eff(5, 0.452).unwrap() - 1.781).abs() < 1e-3);
        assert_eq!(n_eff(5, 0.0), Some(5.0));
        assert_eq!(n_eff(5, 1.0), Some(1.0));
        for rho in [-0.01, -0.25, -0.5, -1.0] {
            assert_eq!(n_eff(5, rho), None);
        }
    }

    #[test]
    fn wrong_answers_are_compared_and_silence_is_not_an_answer() {
        let answers = vec![
            vec![Some(1), Some(1), Some(0)],
            vec![Some(1), Some(2), None],
            vec![None, None, Some(1)],
        ];
        let right = vec![vec![true, false, false]; 3];
        assert_eq!(same_wrong(&answers, &right), Some(0.5));
        assert_eq!(same_wrong(&[vec![Some(0), Some(0)]], &[vec![true]]), None);
    }

    #[test]
    fn alpha_is_krippendorffs() {
        // The worked example of Krippendorff 2011 for nominal data: four observers, twelve units, alpha .743.
        let data: [[u8; 12]; 4] = [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
            [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
        ];
        let answers: Vec<Vec<Option<usize>>> = (0..12)
            .map(|u| {
                data.iter()
                    .map(|o| (o[u] > 0).then_some(o[u] as usize))
                    .collect()
            })
            .collect();
        let alpha = krippendorff(&answers).unwrap();
        assert!((alpha - 0.743).abs() < 5e-4, "{alpha}");
        assert_eq!(
            krippendorff(&[vec![Some(1), Some(1)], vec![Some(2), Some(2)]]),
            Some(1.0)
        );
        assert_eq!(krippendorff(&[vec![Some(1), None]]), None);
    }
}
