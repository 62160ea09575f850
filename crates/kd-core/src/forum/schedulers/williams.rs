//! Balanced Latin squares (E. J. Williams, 1949): within a block of cycles everybody stands in each place equally often,
//! and comes right after each other equally often. A fresh random relabelling for each block keeps it unpredictable.

use super::{FAIR, Scheduler, as_set};
use rand::seq::SliceRandom;

pub(super) const ROW: Scheduler = Scheduler {
    name: "williams",
    doc: "blocks of cycles in which everybody has each place, and each neighbour before it, equally often; drawn anew for each block",
    order: |draw| {
        let n = draw.candidates.len();
        if n < 2 {
            return (0..n).collect();
        }
        let length = block_length(n) as u64;
        let (block, row) = (draw.index / length, (draw.index % length) as usize);
        let mut chance = draw.chance_of_block(block);
        let mut label: Vec<usize> = (0..n).collect();
        label.shuffle(&mut chance);
        // The rows of a block come in an order of their own, or the square could be guessed from its first rows.
        let mut rows: Vec<usize> = (0..length as usize).collect();
        rows.shuffle(&mut chance);
        square_row(n, rows[row])
            .into_iter()
            .map(|place| label[place])
            .collect()
    },
    skip: as_set,
    promises: FAIR,
};

/// Cycles in a block of so many agents: an odd number needs the square and its mirror image.
fn block_length(n: usize) -> usize {
    if n.is_multiple_of(2) { n } else { 2 * n }
}

/// A row of the square: 0, 1, n-1, 2, n-2, … shifted by the row's number; the second half of an odd one is mirrored.
fn square_row(n: usize, row: usize) -> Vec<usize> {
    let zigzag = (0..n).map(|i| {
        if i % 2 == 1 {
            i.div_ceil(2)
        } else {
            (n - i / 2) % n
        }
    });
    let mut cells: Vec<usize> = zigzag.map(|cell| (cell + row) % n).collect();
    if row >= n {
        cells.reverse();
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_is_balanced_in_places_and_neighbours() {
        for n in 2..9 {
            let length = block_length(n);
            let mut places = vec![vec![0; n]; n];
            let mut after = vec![vec![0; n]; n];
            for row in 0..length {
                let cells = square_row(n, row);
                for (place, who) in cells.iter().enumerate() {
                    places[*who][place] += 1;
                }
                for pair in cells.windows(2) {
                    after[pair[0]][pair[1]] += 1;
                }
            }
            for who in 0..n {
                assert!(
                    places[who].iter().all(|count| *count == length / n),
                    "{n}: {places:?}"
                );
                for (other, count) in after[who].iter().enumerate() {
                    let wanted = if other == who { 0 } else { length / n };
                    assert_eq!(*count, wanted, "{n}: {after:?}");
                }
            }
        }
    }
}
