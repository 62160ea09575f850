//! `certain-enough`: asks members one after another until the leader is likely enough to be right.

use super::{Decider, Decision, Needs, Setting, heaviest};
use crate::auto::Strength;
use crate::enough::{Aim, Enough, MARGIN};
use crate::weights::{Labelled, odds};

pub(super) const DECIDER: Decider = Decider {
    name: "certain-enough",
    doc: "members are asked strongest first until the leader's chance of being right, learned on the other half, is so high that asking all gains at most half a point",
    source: "this project; curtailed sampling (Wald 1945) with a calibrated stopping rule",
    needs: Needs::Members,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    setting.by_half(
        |half| rule(setting, half),
        |rule, q| {
            let mut asked = Vec::new();
            for member in &rule.order {
                asked.push((*member, q.answers[*member]));
                if rule.is_enough(rule.look(&asked)) {
                    break;
                }
            }
            let mut heard = vec![None; q.answers.len()];
            for (member, answer) in &asked {
                heard[*member] = *answer;
            }
            let weights: Vec<f64> = rule.weights.iter().map(|w| *w as f64).collect();
            let mut asked: Vec<usize> = asked.into_iter().map(|(member, _)| member).collect();
            asked.sort_unstable();
            Decision {
                winners: heaviest(&heard, &weights),
                asked: Some(asked),
            }
        },
    )
}

/// Returns the rule that the other half teaches.
fn rule(setting: &Setting<'_>, half: usize) -> Enough {
    let rows: Vec<Labelled<'_>> = setting
        .taught(half)
        .map(|q| Labelled {
            answers: &q.answers,
            right: &q.right,
        })
        .collect();
    let costs = vec![1.0; setting.replay.members.len()];
    let learned = Enough::learn(&rows, &costs, Aim::Margin(MARGIN), setting.seed);
    learned.unwrap_or_else(|| {
        let right: Vec<f64> = setting
            .strengths(half)
            .into_iter()
            .map(Strength::estimate)
            .collect();
        Enough::unlearned((0..right.len()).collect(), &odds(&right))
    })
}
