//! `auto`: the choice of `kd deliberate` for these members, from marks of the other half.

use super::{Decider, Decision, Needs, Setting, vote};
use crate::auto::Auto;

pub(super) const DECIDER: Decider = Decider {
    name: "auto",
    doc: "what `auto` chooses from marks of the other half: votes weigh what fits the answers of all members, with few marks the odds of their voters, or the strongest is asked alone",
    source: "this project",
    needs: Needs::Members,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    setting.by_half(
        |half| setting.auto(half),
        |chosen: &Auto, q| {
            let is_alone = matches!(chosen.protocol, "solo" | "sample-vote");
            let asked = match is_alone {
                true => chosen.seats.clone(),
                false => (0..q.answers.len()).collect(),
            };
            Decision {
                winners: vote::weighted(
                    setting,
                    &asked,
                    &chosen.weights,
                    chosen.fitted.then_some(1),
                    q,
                ),
                asked: is_alone.then_some(asked),
            }
        },
    )
}
