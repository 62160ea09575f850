//! Deficit round robin (Shreedhar and Varghese, 1995) on tokens: everybody is owed the same amount. Whoever used least
//! goes first; whoever is far ahead of its share sits out.

use super::{FAIR, Scheduler};

/// Shares that an agent may be ahead before it sits out: one usual turn is no offence.
const AHEAD: f64 = 2.0;

pub(super) const ROW: Scheduler = Scheduler {
    name: "deficit",
    doc: "everybody is owed the same number of tokens: who used least goes first, who is far ahead sits out",
    order: |draw| {
        let mut order = draw.shuffled();
        // Stable, so that chance decides between equals.
        order.sort_by_key(|at| draw.candidates[*at].tokens);
        order
    },
    skip: |candidate, all| {
        let turns: u64 = all.iter().map(|c| c.turns).sum();
        let tokens: u64 = all.iter().map(|c| c.tokens).sum();
        if turns == 0 || tokens == 0 {
            return candidate.skip_probability;
        }
        let turn = tokens as f64 / turns as f64;
        let share = tokens as f64 / all.len() as f64;
        if candidate.tokens as f64 > share + AHEAD * turn {
            1.0
        } else {
            candidate.skip_probability
        }
    },
    promises: FAIR,
};
