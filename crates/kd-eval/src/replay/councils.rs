//! Many random councils from one file: whether a decider gains over the best member of each council.

use super::{ReadError, Table};
use crate::deciders::{Decision, Halves, Setting, Way};
use crate::intervals::Z95_ONE_SIDED;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use serde::Serialize;

/// The gain of each decider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Councils {
    /// Number of councils drawn.
    pub councils: usize,
    /// Members per council.
    pub size: usize,
    /// The seed of the draw.
    pub seed: u64,
    /// The mean share of right answers of each council's best member, known only afterwards.
    pub best: f64,
    /// The gains, by decider.
    pub gains: Vec<Gain>,
}

/// The gain of a decider over the best member of each council.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The decider's name.
    pub name: &'static str,
    /// The mean gain, as a share of the questions.
    pub mean: f64,
    /// The smallest gain.
    pub least: f64,
    /// The largest gain.
    pub greatest: f64,
    /// Number of councils in which it was at least as good.
    pub kept: usize,
    /// The mean number of members asked.
    pub asked: f64,
    /// The loss from asking fewer members; `None` if all are asked, or if no decider is one of [`COMPLETE`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
}

/// The loss of a decider that asks fewer members, against the best weighted count of all members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Behind {
    /// The decider that counts all members.
    pub all: &'static str,
    /// The mean difference over councils, as a share of the questions; negative if it is ahead.
    pub mean: f64,
    /// The upper end of the one-sided 95 % interval of the mean over councils.
    pub most: f64,
}

/// The deciders that count all members, with weights learned on the same half. Others are compared with the better one.
pub const COMPLETE: [&str; 2] = ["learned", "weighted"];

/// Draws councils of `size` members and lets each decider decide their questions. The best member is the best on all
/// questions; deciders that learn are trained on one half and decide the other.
///
/// # Errors
/// If there are fewer members than `size`, or a council has no question in common.
pub fn councils(
    table: &Table,
    ways: &[Way],
    councils: usize,
    size: usize,
    options: u64,
    seed: u64,
) -> Result<Councils, ReadError> {
    let mut names = table.members.clone();
    if size == 0 || size > names.len() {
        return Err(ReadError {
            line: 1,
            what: format!("there are {} members for councils of {size}", names.len()),
            hint: "choose a smaller size".into(),
        });
    }
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    let mut gains: Vec<Vec<f64>> = vec![Vec::with_capacity(councils); ways.len()];
    let mut asked = vec![0.0; ways.len()];
    let mut best_sum = 0.0;
    for _ in 0..councils {
        names.shuffle(&mut chance);
        let replay = table.council(&names[..size])?;
        let n = replay.questions.len() as f64;
        let halves = Halves::drawn(replay.questions.len(), seed);
        let hits = |m: usize| replay.questions.iter().filter(|q| q.is_right(m)).count();
        let best = (0..size).map(hits).max().unwrap_or(0) as f64;
        best_sum += best / n;
        for ((gain, asked), way) in gains.iter_mut().zip(&mut asked).zip(ways) {
            let decided = way.decide(&Setting {
                replay: &replay,
                options,
                seed,
                halves: &halves,
            });
            let right: f64 = replay
                .questions
                .iter()
                .zip(&decided)
                .map(|(q, d)| q.share_right(&d.winners))
                .sum();
            gain.push((right - best) / n);
            let each = |d: &Decision| d.asked.as_ref().map_or(size, Vec::len) as f64;
            *asked += decided.iter().map(each).sum::<f64>() / n / councils.max(1) as f64;
        }
    }
    let many = councils.max(1) as f64;
    let sum = |at: &usize| gains[*at].iter().sum::<f64>();
    let complete = (0..ways.len())
        .filter(|at| COMPLETE.contains(&ways[*at].name()))
        .max_by(|a, b| sum(a).total_cmp(&sum(b)));
    let complete = complete.map(|at| (ways[at].name(), gains[at].clone()));
    let told = ways
        .iter()
        .zip(gains)
        .zip(asked)
        .map(|((way, g), asked)| Gain {
            name: way.name(),
            asked,
            behind: complete
                .as_ref()
                .filter(|_| asked < size as f64)
                .map(|(name, all)| behind(name, all, &g)),
            mean: g.iter().sum::<f64>() / many,
            least: g.iter().copied().fold(f64::INFINITY, f64::min),
            greatest: g.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            kept: g.iter().filter(|g| **g >= 0.0).count(),
        });
    Ok(Councils {
        councils,
        size,
        seed,
        best: best_sum / many,
        gains: told.collect(),
    })
}

/// Compares two deciders on the same councils.
fn behind(name: &'static str, all: &[f64], fewer: &[f64]) -> Behind {
    let differences: Vec<f64> = all
        .iter()
        .zip(fewer)
        .map(|(all, fewer)| all - fewer)
        .collect();
    let n = differences.len().max(1) as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let spread = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    Behind {
        all: name,
        mean,
        most: mean + Z95_ONE_SIDED * (spread / n).sqrt(),
    }
}
