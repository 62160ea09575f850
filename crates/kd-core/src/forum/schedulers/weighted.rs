//! More active agents come more often, and rather early: a random order in which each draw goes to an agent in
//! proportion to its weight (Efraimidis and Spirakis, 2006). With equal weights it is `shuffle`.

use super::{FAIR, Scheduler};
use rand::RngExt;

pub(super) const ROW: Scheduler = Scheduler {
    name: "weighted",
    doc: "a random order in which an agent's activity weight makes it earlier and keeps it from sitting out",
    order: |draw| {
        let mut keys: Vec<(f64, usize)> = Vec::with_capacity(draw.candidates.len());
        for (at, candidate) in draw.candidates.iter().enumerate() {
            let u: f64 = draw.chance.random_range(f64::MIN_POSITIVE..1.0);
            // The largest of u^(1/w) first; its logarithm orders alike and does not underflow.
            keys.push((u.ln() / candidate.weight.max(1e-9), at));
        }
        keys.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        keys.into_iter().map(|(_, at)| at).collect()
    },
    skip: |candidate, _| candidate.skip_probability.powf(candidate.weight.max(1e-9)),
    weighs: true,
    promises: FAIR,
};
