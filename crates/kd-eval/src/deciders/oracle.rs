//! `oracle`: right if any member is right. Not achievable; an upper bound.

use super::{Decider, Decision, Needs, Setting};

pub(super) const DECIDER: Decider = Decider {
    name: "oracle",
    doc: "right wherever any member is right: the ceiling of every choice among these answers",
    source: "no rule can do so; it looks at the right answers",
    needs: Needs::Answers,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    let each = setting.replay.questions.iter().map(|q| {
        let right = q.answers.iter().flatten().copied().find(|k| q.right[*k]);
        Decision::of(
            right
                .or_else(|| q.answers.iter().flatten().copied().next())
                .into_iter()
                .collect(),
        )
    });
    each.collect()
}
