//! `cascade`: two cheap members first, a strong one if they disagree.

use super::{Decider, Decision, Needs, Setting};

pub(super) const DECIDER: Decider = Decider {
    name: "cascade",
    doc: "the first two members answer; where they disagree or are silent, the last one decides",
    source: "FrugalGPT, Chen et al. 2023, with agreement as its scorer",
    needs: Needs::Members,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    let last = setting.replay.members.len().saturating_sub(1);
    let each = setting
        .replay
        .questions
        .iter()
        .map(|q| match q.answers.as_slice() {
            [Some(a), Some(b), ..] if a == b => Decision {
                winners: vec![*a],
                asked: Some(vec![0, 1]),
            },
            answers => {
                let mut asked = vec![0, 1.min(last), last];
                asked.dedup();
                Decision {
                    winners: answers[last].into_iter().collect(),
                    asked: Some(asked),
                }
            }
        });
    each.collect()
}
