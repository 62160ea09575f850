//! The vote of one round of a debate: before it, or after it.

use super::{Decider, Decision, Needs, Setting, commonest};

pub(super) const FIRST: Decider = Decider {
    name: "first-round",
    doc: "plurality of the first answers: the vote that could have been taken before the debate",
    source: "Choi et al. 2025, Debate or Vote, arXiv 2508.17536",
    needs: Needs::Rounds,
    decide: first,
};

pub(super) const LAST: Decider = Decider {
    name: "last-round",
    doc: "plurality of the last answers: the vote after the debate",
    source: "Du et al. 2023, arXiv 2305.14325",
    needs: Needs::Rounds,
    decide: last,
};

fn first(setting: &Setting<'_>) -> Vec<Decision> {
    let each = setting.replay.questions.iter();
    each.map(|q| {
        Decision::of(commonest(
            q.trails.iter().filter_map(|t| t.first().copied().flatten()),
        ))
    })
    .collect()
}

fn last(setting: &Setting<'_>) -> Vec<Decision> {
    let each = setting.replay.questions.iter();
    each.map(|q| Decision::of(commonest(q.answers.iter().flatten().copied())))
        .collect()
}
