//! `best`: the strongest member alone.

use super::{Decider, Decision, Needs, Setting, strongest};

pub(super) const DECIDER: Decider = Decider {
    name: "best",
    doc: "the answer of the member who was right most often on the other half",
    source: "the baseline that every council has to beat",
    needs: Needs::Members,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    setting.by_half(
        |half| strongest(&setting.strengths(half)),
        |best, q| Decision {
            winners: q.answers[*best].into_iter().collect(),
            asked: Some(vec![*best]),
        },
    )
}
