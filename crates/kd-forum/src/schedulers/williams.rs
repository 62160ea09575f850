//! Balanced Latin squares (E. J. Williams, 1949): within a block of cycles every agent is in each position equally
//! often, and comes right after each other equally often. A fresh random relabeling for each block keeps it
//! unpredictable, as far as balance allows: the last order of a block follows from the others.
//!
//! With a seed per cycle, the first cycle of a block shuffles all agents, and each later one draws one of the remaining
//! rows of the square that begins with that order.

use super::super::cards::Block;
use super::{Draw, FAIR, Scheduler, as_set};
use rand::RngExt;
use rand::seq::SliceRandom;

/// The name of the rule.
pub(in super::super) const NAME: &str = "williams";

pub(super) const ROW: Scheduler = Scheduler {
    name: NAME,
    doc: "blocks of cycles in which every agent has each place, and each neighbour before it, equally often; with a new draw for each block",
    order: |draw| {
        let n = draw.candidates.len();
        if n < 2 {
            return (0..n).collect();
        }
        let length = block_length(n) as u64;
        let (block, row) = (draw.index / length, (draw.index % length) as usize);
        let Some(mut chance) = draw.chance_of_block(block) else {
            return next_row(draw);
        };
        let mut label: Vec<usize> = (0..n).collect();
        label.shuffle(&mut chance);
        // The rows of a block come in random order; otherwise the first rows would reveal the square.
        let mut rows: Vec<usize> = (0..length as usize).collect();
        rows.shuffle(&mut chance);
        square_row(n, rows[row])
            .into_iter()
            .map(|place| label[place])
            .collect()
    },
    skip: as_set,
    weighs: false,
    promises: FAIR,
};

/// Returns the order of a cycle that has its own seed.
fn next_row(draw: &mut Draw<'_>) -> Vec<usize> {
    let n = draw.candidates.len();
    let first = draw.block.and_then(|block| {
        let place = |name: &String| draw.candidates.iter().position(|c| c.name == *name);
        let places: Option<Vec<usize>> = block.first.iter().map(place).collect();
        let left = rows_left(n, block);
        (!left.is_empty()).then_some((places.filter(|p| p.len() == n)?, left))
    });
    let Some((first, left)) = first else {
        return draw.shuffled();
    };
    let row = left[draw.chance.random_range(0..left.len())];
    let label = labels(&first);
    square_row(n, row)
        .into_iter()
        .map(|cell| label[cell])
        .collect()
}

/// Returns the agent of each cell of the square, if its first row is this order.
fn labels(first: &[usize]) -> Vec<usize> {
    let mut label = vec![0; first.len()];
    for (place, cell) in square_row(first.len(), 0).into_iter().enumerate() {
        label[cell] = first[place];
    }
    label
}

/// Returns the rows of a block not used by any cycle yet. The first cycle uses row 0.
fn rows_left(n: usize, block: &Block) -> Vec<usize> {
    (1..block_length(n))
        .filter(|row| !block.used.iter().any(|used| *used as usize == *row))
        .collect()
}

/// Returns the block after a cycle with this order; `None` if the next cycle starts a new one.
pub(in super::super) fn next_block(block: Option<&Block>, order: &[String]) -> Option<Block> {
    let n = order.len();
    if n < 2 {
        return None;
    }
    let next = match block {
        None => Block {
            first: order.to_vec(),
            used: Vec::new(),
        },
        Some(block) => {
            let places: Option<Vec<usize>> = order
                .iter()
                .map(|name| block.first.iter().position(|n| n == name))
                .collect();
            let label = labels(&(0..n).collect::<Vec<_>>());
            let places = places?;
            let row = rows_left(n, block).into_iter().find(|row| {
                let cells = square_row(n, *row);
                cells
                    .iter()
                    .map(|cell| label[*cell])
                    .eq(places.iter().copied())
            })?;
            let mut next = block.clone();
            next.used.push(row as u32);
            next
        }
    };
    (!rows_left(n, &next).is_empty()).then_some(next)
}

/// Returns the cycles in a block of `n` agents: an odd number needs the square and its mirror image.
fn block_length(n: usize) -> usize {
    if n.is_multiple_of(2) { n } else { 2 * n }
}

/// Returns a row of the square: 0, 1, n-1, 2, n-2, … shifted by the row's number; the second half of an odd one is
/// mirrored.
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
