//! `certain-enough`: asks members one after another until the leader is likely enough to be right.

use super::{Decider, Decision, Needs, Setting, vote};
use kd_vote::Nano;

pub(super) const DECIDER: Decider = Decider {
    name: "certain-enough",
    doc: "members are asked strongest first until the leader's chance of being right, learned on the other half, is so high that asking all gains at most half a point",
    source: "this project; curtailed sampling (Wald 1945) with a calibrated stopping rule",
    needs: Needs::Members,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    setting.by_half(
        |half| setting.enough(half),
        |rule, q| {
            let mut asked = Vec::new();
            for member in &rule.order {
                asked.push((*member, q.answers[*member]));
                if rule.is_enough(rule.look(&asked)) {
                    break;
                }
            }
            let weights: Vec<Nano> = rule.weights.iter().map(|w| *w as Nano).collect();
            let mut asked: Vec<usize> = asked.into_iter().map(|(member, _)| member).collect();
            asked.sort_unstable();
            Decision {
                winners: vote::weighted(setting, &asked, &weights, Some(1), q),
                asked: Some(asked),
            }
        },
    )
}
