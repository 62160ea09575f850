//! Shared by ranked pairs and river: victories are locked in, strongest first, unless they contradict locked ones. If
//! equally strong victories can be taken in several orders, all orders are explored.

use crate::profile::{Duels, Strength};
use crate::{Count, Nano, Poll};
use std::collections::BTreeSet;

/// Maximum number of states explored. Beyond it, the result is the split-cycle set, which contains every winner of
/// every order, with a note.
const STATES_MAX: usize = 20_000;

/// Maximum cells written over all states: 20,000 states of 64 candidates.
const CELLS_MAX: usize = 20_000 * 64 * 64;

/// For each pair of candidates, whether the first is above the second, transitively closed.
pub(super) type Above = Vec<Vec<bool>>;

/// Returns whether a victory can still be locked in: it neither is implied already nor contradicts locked ones.
pub(super) type Open = fn(&Above, usize, usize) -> bool;

/// Returns victories and ties in groups of equal strength, strongest first.
pub(super) fn groups(duels: &Duels, among: &[usize], by: Strength) -> Vec<Vec<(usize, usize)>> {
    let mut edges: Vec<(Nano, usize, usize)> = Vec::new();
    for &a in among {
        for &b in among {
            if a != b && !duels.beats(b, a) {
                edges.push((-duels.strength(a, b, by), a, b));
            }
        }
    }
    edges.sort_unstable();
    edges
        .chunk_by(|x, y| x.0 == y.0)
        .map(|group| group.iter().map(|(_, a, b)| (*a, *b)).collect())
        .collect()
}

/// Returns the winners over all orders of equally strong victories.
pub(super) fn every_order(poll: &Poll<'_>, duels: &Duels, by: Strength, open: Open) -> Count {
    let among = &poll.standing;
    if let Some(winner) = duels.condorcet(among) {
        return Count {
            winners: vec![winner],
            ..Count::default()
        };
    }
    let mut search = Search {
        groups: groups(duels, among, by),
        among,
        open,
        seen: BTreeSet::new(),
        winners: BTreeSet::new(),
        cells: CELLS_MAX,
    };
    let n = poll.len();
    if search.follow(vec![vec![false; n]; n], 0) {
        return Count {
            winners: search.winners.into_iter().collect(),
            ..Count::default()
        };
    }
    let notes = vec![
        "too many equally strong victories to follow every order: these are all who may win in one"
            .to_owned(),
    ];
    Count {
        winners: duels.undefeated(among, by),
        notes,
        ..Count::default()
    }
}

/// Locks in a victory and everything that follows from it.
pub(super) fn lock(above: &mut Above, a: usize, b: usize) {
    let mut below = above[b].clone();
    below[b] = true;
    for (x, row) in above.iter_mut().enumerate() {
        if x == a || row[a] {
            for (stands, below) in row.iter_mut().zip(&below) {
                *stands |= below;
            }
        }
    }
}

/// Returns the candidates with none above them.
pub(super) fn tops(above: &Above, among: &[usize]) -> Vec<usize> {
    among
        .iter()
        .copied()
        .filter(|c| !among.iter().any(|a| above[*a][*c]))
        .collect()
}

struct Search<'a> {
    groups: Vec<Vec<(usize, usize)>>,
    among: &'a [usize],
    open: Open,
    seen: BTreeSet<Above>,
    winners: BTreeSet<usize>,
    /// Cells that may still be written.
    cells: usize,
}

impl Search<'_> {
    /// Explores all orders from here; returns whether the search stayed within its limits.
    fn follow(&mut self, mut above: Above, mut group: usize) -> bool {
        loop {
            let tops = tops(&above, self.among);
            if tops.len() == 1 || group == self.groups.len() {
                // The only candidate with none above it stays so.
                self.winners.extend(tops);
                return true;
            }
            let still: Vec<(usize, usize)> = self.groups[group]
                .iter()
                .copied()
                .filter(|(a, b)| (self.open)(&above, *a, *b))
                .collect();
            let Some(((a, b), others)) = still.split_last() else {
                group += 1;
                continue;
            };
            // The open victories of a group follow from the locked ones, so `above` alone identifies a state.
            if !others.is_empty() {
                if self.seen.contains(&above) {
                    return true;
                }
                if self.seen.len() >= STATES_MAX {
                    return false;
                }
                self.seen.insert(above.clone());
            }
            let cost = still.len() * above.len() * above.len();
            let Some(cells) = self.cells.checked_sub(cost) else {
                return false;
            };
            self.cells = cells;
            for (a, b) in others {
                let mut next = above.clone();
                lock(&mut next, *a, *b);
                if !self.follow(next, group) {
                    return false;
                }
            }
            lock(&mut above, *a, *b);
        }
    }
}
