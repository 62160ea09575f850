//! `lock`: an answer that more than half gave initially stays, whatever the debate says.

use super::{Decider, Decision, Needs, Setting, commonest};

pub(super) const DECIDER: Decider = Decider {
    name: "lock",
    doc: "the answer of more than half of those who spoke in the first round; else the vote of the last round",
    source: "Choi et al. 2025, Debate or Vote, arXiv 2508.17536: keep what matches a majority",
    needs: Needs::Rounds,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    let each = setting.replay.questions.iter().map(|q| {
        let first: Vec<Option<usize>> =
            q.trails.iter().filter_map(|t| t.first().copied()).collect();
        let held = commonest(first.iter().flatten().copied());
        let strict =
            |key: usize| 2 * first.iter().filter(|k| **k == Some(key)).count() > first.len();
        match held.as_slice() {
            [key] if strict(*key) => Decision::of(held),
            _ => Decision::of(commonest(q.answers.iter().flatten().copied())),
        }
    });
    each.collect()
}
