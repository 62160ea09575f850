//! `learned`: weights fitted on answers of all members.

use super::{Decider, Decision, Needs, Setting, heaviest};

pub(super) const DECIDER: Decider = Decider {
    name: "learned",
    doc: "votes weigh what a conditional logit gives them, fitted on the other half: members who err together share a weight",
    source: "McFadden 1974; a normal prior of variance one",
    needs: Needs::Members,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    setting.by_half(
        |half| setting.learned(half),
        |weights, q| Decision::of(heaviest(&q.answers, weights)),
    )
}
