//! More active agents take part more often, and rather early: a random order in which each draw picks an agent in
//! proportion to its weight (Efraimidis and Spirakis, 2006). With equal weights it equals `shuffle`.

use super::{FAIR, Scheduler};
use rand::RngExt;

pub(super) const ROW: Scheduler = Scheduler {
    name: "weighted",
    doc: "a random order in which agents with more activity weight come earlier and sit out less",
    order: |draw| {
        let mut keys: Vec<(f64, usize)> = Vec::with_capacity(draw.candidates.len());
        for (at, candidate) in draw.candidates.iter().enumerate() {
            let u: f64 = draw.chance.random_range(f64::MIN_POSITIVE..1.0);
            // Largest u^(1/w) first; its logarithm gives the same order and does not underflow.
            keys.push((u.ln() / candidate.weight.max(1e-9), at));
        }
        keys.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        keys.into_iter().map(|(_, at)| at).collect()
    },
    skip: |candidate, _| candidate.skip_probability.powf(candidate.weight.max(1e-9)),
    weighs: true,
    promises: FAIR,
};
