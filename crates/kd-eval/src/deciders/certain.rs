//! `certain`: plurality that stops asking once the result can no longer change.

use super::{Decider, Decision, Needs, Setting, commonest};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;

pub(super) const DECIDER: Decider = Decider {
    name: "certain",
    doc: "plurality, members asked in a drawn order until the lead is greater than the number not asked yet: the same answer for fewer calls",
    source: "curtailed sampling, Wald 1945",
    needs: Needs::Answers,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    let mut chance = ChaCha12Rng::seed_from_u64(setting.seed);
    let members = setting.replay.members.len();
    let mut order: Vec<usize> = (0..members).collect();
    let each = setting.replay.questions.iter().map(|q| {
        order.shuffle(&mut chance);
        let mut counts = vec![0usize; q.keys.len() + 2];
        let mut asked = Vec::new();
        for m in &order {
            asked.push(*m);
            if let Some(key) = q.answers[*m] {
                counts[key] += 1;
            }
            if kd_vote::is_certain(counts.iter().copied(), members - asked.len()) {
                break;
            }
        }
        let winners = commonest(asked.iter().filter_map(|m| q.answers[*m]));
        asked.sort_unstable();
        Decision {
            winners,
            asked: Some(asked),
        }
    });
    each.collect()
}
