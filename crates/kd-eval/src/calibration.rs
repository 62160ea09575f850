//! Whether stated probabilities are accurate: scores of forecasts, and a map from stated to observed frequencies.

use serde::Serialize;
use statrs::function::erf::erf;

/// A forecast: the stated probability, 0 to 1, and whether it came true.
pub type Forecast = (f64, bool);

/// The quality of forecasts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Number of forecasts.
    pub n: usize,
    /// The mean stated probability.
    pub said: f64,
    /// The share that came true.
    pub came: f64,
    /// Expected calibration error: ten bins of equal width, closed on the right.
    pub ece: f64,
    /// [`Calibration::ece`] without most of the error that even exact probabilities show, because the number of forecasts
    /// is finite: the normal-debiased estimate of Kumar, Liang and Ma (2019, arXiv 1909.10155). It can be slightly
    /// negative.
    pub debiased_ece: f64,
    /// Expected calibration error with ten bins of counts as equal as tied forecasts allow.
    pub adaptive_ece: f64,
    /// The mean squared error (Brier 1950).
    pub brier: f64,
    /// The part of it that a better scale would remove (Murphy 1973), over distinct forecasts.
    pub reliability: f64,
    /// The part of it that separates right from wrong: more is better.
    pub resolution: f64,
    /// The part of it that no forecast changes.
    pub uncertainty: f64,
    /// The mean negative logarithm of the probability of the outcome; forecasts are clamped to within 1e-6 of the ends.
    pub log_score: f64,
    /// The probability that a right forecast has a higher value than a wrong one; `None` if all are right or all wrong.
    pub auroc: Option<f64>,
    /// The non-empty bins of [`Calibration::ece`].
    pub bins: Vec<Bin>,
    /// The share of right forecasts among the most confident 80, 90 and 100 %.
    pub selective: [f64; 3],
}

/// A row of the reliability table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Its upper end.
    pub to: f64,
    /// Number of forecasts.
    pub n: usize,
    /// Their mean.
    pub said: f64,
    /// The share that came true.
    pub came: f64,
}

/// Scores forecasts; `None` without forecasts. Values are clamped to 0 and 1.
pub fn calibration(forecasts: &[Forecast]) -> Option<Calibration> {
    if forecasts.is_empty() {
        return None;
    }
    let mut sorted: Vec<Forecast> = forecasts
        .iter()
        .map(|(p, came)| {
            (
                if p.is_finite() {
                    p.clamp(0.0, 1.0)
                } else {
                    0.5
                },
                *came,
            )
        })
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = sorted.len() as f64;
    let came = share(&sorted);
    let bins = equal_width(&sorted);
    let gap = |bins: &[Bin]| {
        bins.iter()
            .map(|b| b.n as f64 / n * (b.said - b.came).abs())
            .sum()
    };
    let groups: Vec<Bin> = sorted.chunk_by(|a, b| a.0 == b.0).map(bin).collect();
    let over = |f: &dyn Fn(&Bin) -> f64| groups.iter().map(|g| g.n as f64 / n * f(g)).sum::<f64>();
    let mean = |f: &dyn Fn(&Forecast) -> f64| sorted.iter().map(f).sum::<f64>() / n;
    Some(Calibration {
        n: sorted.len(),
        said: mean(&|f| f.0),
        came,
        ece: gap(&bins),
        debiased_ece: 2.0 * gap(&bins) - redrawn_gap(&bins, n),
        adaptive_ece: gap(&equal_count(&groups, sorted.len())),
        brier: mean(&|(p, c)| (p - f64::from(u8::from(*c))).powi(2)),
        reliability: over(&|g| (g.said - g.came).powi(2)),
        resolution: over(&|g| (g.came - came).powi(2)),
        uncertainty: came * (1.0 - came),
        log_score: mean(&|(p, c)| {
            let p = p.clamp(1e-6, 1.0 - 1e-6);
            -(if *c { p } else { 1.0 - p }).ln()
        }),
        auroc: auroc(&groups),
        selective: [0.8, 0.9, 1.0].map(|coverage| selective(&groups, coverage * n)),
        bins,
    })
}

/// Returns the calibration error to expect if outcomes were drawn again with the observed share of each bin, as
/// normal variables. It exceeds the observed error by at most as much as the observed error exceeds the true one.
fn redrawn_gap(bins: &[Bin], n: f64) -> f64 {
    let each = bins.iter().map(|bin| {
        let mean = (bin.said - bin.came).abs();
        let error = (bin.came * (1.0 - bin.came) / bin.n as f64).sqrt();
        let folded = if error > 0.0 {
            let z = mean / error;
            let density = (-z * z / 2.0).exp() * (2.0 / std::f64::consts::PI).sqrt();
            error * density + mean * erf(z / std::f64::consts::SQRT_2)
        } else {
            mean
        };
        bin.n as f64 / n * folded
    });
    each.sum()
}

fn share(forecasts: &[Forecast]) -> f64 {
    forecasts.iter().filter(|f| f.1).count() as f64 / forecasts.len().max(1) as f64
}

fn bin(forecasts: &[Forecast]) -> Bin {
    Bin {
        to: forecasts.last().map_or(1.0, |f| f.0),
        n: forecasts.len(),
        said: forecasts.iter().map(|f| f.0).sum::<f64>() / forecasts.len().max(1) as f64,
        came: share(forecasts),
    }
}

/// Builds ten bins: above `(i - 1) / 10`, up to and including `i / 10`; the first includes 0.
fn equal_width(sorted: &[Forecast]) -> Vec<Bin> {
    // A decimal such as .3 times ten is at worst 3.0000000000000004: it belongs to the bin whose upper end it is.
    let place = |p: f64| ((p * 10.0 - 1e-9).ceil() as usize).clamp(1, 10);
    sorted
        .chunk_by(|a, b| place(a.0) == place(b.0))
        .map(|chunk| Bin {
            to: place(chunk[0].0) as f64 / 10.0,
            ..bin(chunk)
        })
        .collect()
}

/// Builds ten bins of about a tenth each; equal forecasts stay together.
fn equal_count(groups: &[Bin], n: usize) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    let (mut open, mut before) = (None::<Bin>, 0usize);
    for g in groups {
        let merged = match open.take() {
            None => g.clone(),
            Some(o) => {
                let sum = (o.n + g.n) as f64;
                let mix = |a: f64, b: f64| (a * o.n as f64 + b * g.n as f64) / sum;
                Bin {
                    to: g.to,
                    n: o.n + g.n,
                    said: mix(o.said, g.said),
                    came: mix(o.came, g.came),
                }
            }
        };
        // The bin closes once it reaches the next tenth of all forecasts.
        if (before + merged.n) * 10 >= n * (bins.len() + 1) {
            before += merged.n;
            bins.push(merged);
        } else {
            open = Some(merged);
        }
    }
    bins.extend(open);
    bins
}

/// Returns the area under the ROC curve; equal forecasts count half.
fn auroc(groups: &[Bin]) -> Option<f64> {
    let (mut right, mut wrong, mut area) = (0.0, 0.0, 0.0);
    for g in groups {
        let r = (g.came * g.n as f64).round();
        let w = g.n as f64 - r;
        area += r * (wrong + w / 2.0);
        right += r;
        wrong += w;
    }
    (right > 0.0 && wrong > 0.0).then(|| area / (right * wrong))
}

/// Returns the share of right forecasts among the most confident `take`; a group that is cut counts proportionally.
fn selective(groups: &[Bin], take: f64) -> f64 {
    let (mut left, mut right) = (take, 0.0);
    for g in groups.iter().rev() {
        let part = left.min(g.n as f64);
        right += part * g.came;
        left -= part;
    }
    if take > 0.0 { right / take } else { 0.0 }
}

/// A monotonic map from stated to observed frequency: points (stated, observed), with linear interpolation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Isotonic {
    /// Ascending in both.
    pub points: Vec<(f64, f64)>,
}

impl Isotonic {
    /// Fits by pooling adjacent violators. Equal forecasts are pooled first: otherwise their order would decide the
    /// map, and an order by outcome would fit the outcomes themselves.
    pub fn fit(forecasts: &[Forecast]) -> Self {
        let mut sorted: Vec<Forecast> = forecasts
            .iter()
            .copied()
            .filter(|f| f.0.is_finite())
            .collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut blocks: Vec<(f64, f64, f64, f64)> = Vec::new();
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            let n = group.len() as f64;
            blocks.push((group[0].0, group[0].0, n, share(group) * n));
            while let [.., a, b] = blocks.as_slice()
                && a.3 * b.2 >= b.3 * a.2
            {
                let merged = (a.0, b.1, a.2 + b.2, a.3 + b.3);
                blocks.truncate(blocks.len() - 2);
                blocks.push(merged);
            }
        }
        let mut points = Vec::new();
        for (from, to, n, hits) in blocks {
            points.push((from, hits / n));
            if to > from {
                points.push((to, hits / n));
            }
        }
        Self { points }
    }

    /// Maps a stated probability; returns it unchanged if nothing was fitted.
    pub fn at(&self, said: f64) -> f64 {
        let after = self.points.partition_point(|(x, _)| *x < said);
        match (
            after.checked_sub(1).and_then(|i| self.points.get(i)),
            self.points.get(after),
        ) {
            (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (said - x0) / (x1 - x0),
            (None, Some((_, y))) | (Some((_, y)), None) => *y,
            (None, None) => said,
        }
    }
}

/// A smooth map from a score to a probability: `1 / (1 + exp(-(base + slope * score)))` (Platt 1999).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logistic {
    /// The log-odds at score 0.
    pub base: f64,
    /// The change in log-odds per unit of score.
    pub slope: f64,
}

impl Logistic {
    /// Fits by Newton's method, shrunk towards `prior`: a normal prior with this precision in both parameters. Scores
    /// that are not finite are left out.
    pub fn fit(scored: &[Forecast], prior: Self, precision: f64) -> Self {
        let mut fit = prior;
        for _ in 0..25 {
            let mut gradient = [
                precision * (prior.base - fit.base),
                precision * (prior.slope - fit.slope),
            ];
            let (mut h00, mut h01, mut h11) = (precision, 0.0, precision);
            for (score, came) in scored.iter().filter(|f| f.0.is_finite()) {
                let p = fit.at(*score);
                let miss = f64::from(u8::from(*came)) - p;
                gradient[0] += miss;
                gradient[1] += miss * score;
                let w = p * (1.0 - p);
                h00 += w;
                h01 += w * score;
                h11 += w * score * score;
            }
            let det = h00 * h11 - h01 * h01;
            if det <= 0.0 {
                break;
            }
            let step = [
                (h11 * gradient[0] - h01 * gradient[1]) / det,
                (h00 * gradient[1] - h01 * gradient[0]) / det,
            ]
            .map(|step| step.clamp(-2.0, 2.0));
            fit.base += step[0];
            fit.slope += step[1];
            if step.iter().all(|step| step.abs() < 1e-9) {
                break;
            }
        }
        fit
    }

    /// Returns the probability at a score.
    pub fn at(&self, score: f64) -> f64 {
        1.0 / (1.0 + (-(self.base + self.slope * score)).exp())
    }
}

/// Returns the agreement of a vote, 0 to 1, to four places, drawn towards the middle for few voters
/// (Krichevsky-Trofimov estimate). It is not a probability of being right.
pub fn agreement(backers: u64, voters: u64) -> f64 {
    if voters == 0 {
        return 0.0;
    }
    let share = (backers as f64 + 0.5) / (voters as f64 + 1.0);
    (share * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn scores_are_what_their_papers_define() {
        let f = [
            (0.9, true),
            (0.9, true),
            (0.9, false),
            (0.3, false),
            (0.3, true),
            (0.1, false),
        ];
        let c = calibration(&f).unwrap();
        near(c.said, 3.4 / 6.0);
        near(c.came, 0.5);
        near(c.brier, (0.01 + 0.01 + 0.81 + 0.09 + 0.49 + 0.01) / 6.0);
        near(c.reliability - c.resolution + c.uncertainty, c.brier);
        near(
            c.ece,
            0.5 * (0.9 - 2.0 / 3.0) + (0.5 - 0.3) / 3.0 + 0.1 / 6.0,
        );
        assert_eq!(
            c.bins.iter().map(|b| (b.to, b.n)).collect::<Vec<_>>(),
            [(0.1, 1), (0.3, 2), (0.9, 3)]
        );
        // Right ones 9 9 3, wrong ones 9 3 1: of nine pairs, 5 are in order and 3 tie.
        near(c.auroc.unwrap(), 6.5 / 9.0);
        near(c.selective[2], 0.5);
        near(c.selective[0], (2.0 + 1.8 * 0.5) / 4.8);
        assert_eq!(calibration(&[]), None);
        assert_eq!(calibration(&[(0.5, true)]).unwrap().auroc, None);
    }

    #[test]
    fn a_debiased_error_is_near_zero_for_exact_forecasts_and_keeps_large_errors() {
        use rand::rngs::ChaCha12Rng;
        use rand::{RngExt, SeedableRng};
        let mut chance = ChaCha12Rng::seed_from_u64(4);
        let mut mean = |off: f64| {
            let (mut plain, mut debiased) = (0.0, 0.0);
            for _ in 0..200 {
                let told: Vec<Forecast> = (0..500)
                    .map(|_| {
                        let p = chance.random::<f64>() * 0.8 + 0.1;
                        (p, chance.random::<f64>() < p + off)
                    })
                    .collect();
                let found = calibration(&told).unwrap();
                plain += found.ece / 200.0;
                debiased += found.debiased_ece / 200.0;
            }
            (plain, debiased)
        };
        let (plain, debiased) = mean(0.0);
        assert!(plain > 0.04 && debiased < 0.7 * plain, "{plain} {debiased}");
        let (plain, debiased) = mean(0.1);
        assert!(
            (debiased - 0.1).abs() < 0.01 && debiased <= plain,
            "{plain} {debiased}"
        );
        assert_eq!(calibration(&[(0.5, true)]).unwrap().debiased_ece, 0.5);
    }

    #[test]
    fn bins_of_equal_count_keep_equal_forecasts_together() {
        let f: Vec<Forecast> = (0..100)
            .map(|i| (f64::from(i / 25) / 4.0 + 0.125, i % 2 == 0))
            .collect();
        let c = calibration(&f).unwrap();
        near(
            c.adaptive_ece,
            c.bins
                .iter()
                .map(|b| b.n as f64 / 100.0 * (b.said - b.came).abs())
                .sum(),
        );
    }

    #[test]
    fn a_smooth_map_finds_the_shares_and_few_forecasts_leave_the_prior() {
        let prior = Logistic {
            base: 0.0,
            slope: 4.0,
        };
        let f: Vec<Forecast> = (0..2000)
            .map(|i| {
                (
                    f64::from(i % 2),
                    if i % 2 == 0 { i % 10 < 4 } else { i % 20 < 19 },
                )
            })
            .collect();
        let map = Logistic::fit(&f, prior, 0.25);
        let shares = [0.0, 1.0].map(|score| {
            let of: Vec<Forecast> = f.iter().copied().filter(|f| f.0 == score).collect();
            (score, share(&of))
        });
        for (score, share) in shares {
            assert!(
                (map.at(score) - share).abs() < 0.01,
                "{score}: {share} {map:?}"
            );
        }
        assert_eq!(Logistic::fit(&[], prior, 0.25), prior);
        assert_eq!(
            Logistic::fit(&[(f64::NEG_INFINITY, true)], prior, 0.25),
            prior
        );
        let all_right = Logistic::fit(&[(1.0, true); 50], prior, 0.25);
        assert!(
            all_right.at(1.0) < 1.0 && all_right.at(1.0) > 0.98,
            "{all_right:?}"
        );
    }

    #[test]
    fn a_fitted_map_rises_and_does_not_depend_on_the_order_of_equals() {
        let f = [
            (0.2, false),
            (0.4, true),
            (0.6, false),
            (0.6, true),
            (0.8, true),
        ];
        let map = Isotonic::fit(&f);
        near(map.at(0.2), 0.0);
        near(map.at(0.4), 2.0 / 3.0);
        near(map.at(0.6), 2.0 / 3.0);
        near(map.at(0.3), 1.0 / 3.0);
        near(map.at(0.99), 1.0);
        near(map.at(0.0), 0.0);
        // All forecasts are .7: the map may only know the mean, whatever the order of the outcomes.
        let mut same: Vec<Forecast> = (0..90).map(|i| (0.7, i % 3 == 0)).collect();
        same.sort_by_key(|f| f.1);
        assert_eq!(Isotonic::fit(&same).points, [(0.7, 1.0 / 3.0)]);
        near(Isotonic::default().at(0.4), 0.4);
    }
}
