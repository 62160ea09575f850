//! The share of findings that are real, by how many members agreed.
//!
//! Input: the agreeing members, the council size, and this repository's marks. Output: a [`Chance`]. With fewer than
//! [`MARKS_MIN`] marks the published table decides; then each mark moves the share away from it. For the table's limits, see
//! `docs/review-precision.md`.

use super::published::TABLE;
use super::{Chance, Source};
use kd_eval::intervals::wilson;
use std::collections::BTreeMap;

/// The weight of the published table, in marks.
const PRIOR_MARKS: f64 = 10.0;
/// Minimum marks at a level for a share to be attributed to this repository.
pub const MARKS_MIN: u32 = 5;

/// Accepted and dismissed findings of a repository, by agreement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    levels: BTreeMap<(u32, u32), (u32, u32)>,
}

impl Marks {
    /// Counts a mark of a finding made by `agreeing` of `of` members.
    pub fn add(&mut self, agreeing: u32, of: u32, accepted: bool) {
        let level = self.levels.entry(level(agreeing, of)).or_default();
        let count = match accepted {
            true => &mut level.0,
            false => &mut level.1,
        };
        *count = count.saturating_add(1);
    }

    /// Returns accepted and dismissed findings at a level.
    pub fn at(&self, agreeing: u32, of: u32) -> (u32, u32) {
        let at = self.levels.get(&level(agreeing, of));
        at.copied().unwrap_or_default()
    }
}

/// Maps a level to the range of the published table.
fn level(agreeing: u32, of: u32) -> (u32, u32) {
    let of_max = TABLE.iter().map(|row| row.of).max().unwrap_or(1);
    let bounded = of.clamp(1, of_max);
    let agreeing = agreeing.clamp(1, of.max(1));
    // A council larger than any in the table: scaled to the same proportion, rounded down.
    let agreeing = match of > of_max {
        true => u64::from(agreeing) * u64::from(of_max) / u64::from(of),
        false => agreeing.into(),
    };
    (u32::try_from(agreeing).unwrap_or(1).max(1), bounded)
}

/// Returns the share for a finding made by `agreeing` of `of` members.
pub fn chance(agreeing: u32, of: u32, marks: &Marks) -> Chance {
    let (agreeing, of) = level(agreeing, of);
    let row = TABLE
        .iter()
        .find(|row| (row.agreeing, row.of) == (agreeing, of));
    let Some(row) = row else {
        return Chance {
            share: 0.0,
            low: 0.0,
            high: 1.0,
            source: Source::Published { agreeing, of },
        };
    };
    let (accepted, dismissed) = marks.at(agreeing, of);
    let count = accepted.saturating_add(dismissed);
    if count < MARKS_MIN {
        return Chance {
            share: row.share,
            low: row.low,
            high: row.high,
            source: Source::Published { agreeing, of },
        };
    }
    let n = f64::from(count) + PRIOR_MARKS;
    let hits = f64::from(accepted) + PRIOR_MARKS * row.share;
    let interval = wilson(hits, n as u64);
    Chance {
        share: hits / n,
        low: interval.low,
        high: interval.high,
        source: Source::Marks { marks: count },
    }
}
