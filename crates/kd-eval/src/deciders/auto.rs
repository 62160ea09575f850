//! `auto`: the choice of `kd deliberate` for these members.

use super::{Decider, Decision, Needs, Setting, heaviest};
use crate::auto::{Auto, Known, Task, auto};
use kd_vote::NANOS;

pub(super) const DECIDER: Decider = Decider {
    name: "auto",
    doc: "what `auto` chooses from the members' strength on the other half: weights fitted on the other half, or the strongest alone",
    source: "this project; the fit is a conditional logit (McFadden 1974)",
    needs: Needs::Members,
    decide,
};

/// Minimum number of questions for fitting joint weights; fewer only yield individual strengths.
const LEARN_MIN: u64 = 100;

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    setting.by_half(
        |half| {
            let strengths = setting.strengths(half);
            let enough = strengths.first().is_some_and(|s| s.questions >= LEARN_MIN);
            auto(&Known {
                task: Task::Reasoning,
                members: strengths.into_iter().map(Some).collect(),
                learned: enough.then(|| setting.learned(half)),
                thrifty: false,
            })
        },
        |chosen: &Auto, q| {
            let weights: Vec<f64> = chosen
                .weights
                .iter()
                .map(|w| *w as f64 / NANOS as f64)
                .collect();
            let alone = chosen.seats.as_slice();
            // A member that decides alone is asked alone; the others are asked if it gives no answer.
            let asked = match alone {
                [m] if q.answers[*m].is_some() => Some(alone.to_vec()),
                _ => None,
            };
            let answers: Vec<Option<usize>> = match &asked {
                Some(seats) => (0..q.answers.len())
                    .map(|m| q.answers[m].filter(|_| seats.contains(&m)))
                    .collect(),
                None => q.answers.clone(),
            };
            Decision {
                winners: heaviest(&answers, &weights),
                asked,
            }
        },
    )
}
