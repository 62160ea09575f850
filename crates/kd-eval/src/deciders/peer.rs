//! `peer`: ties are decided by the member that agreement shows to be strongest, without using right answers.

use super::{Decider, Decision, Needs, Setting, commonest};
use crate::reliability::peer_scores;
use crate::replay::Replay;
use std::collections::BTreeMap;

pub(super) const DECIDER: Decider = Decider {
    name: "peer",
    doc: "plurality; ties go to the member that peer prediction ranks first, without right answers",
    source: "Dasgupta and Ghosh 2013",
    needs: Needs::Members,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    let replay = setting.replay;
    let scores = peer_scores(&codes(replay), replay.members.len());
    let best = (0..scores.len())
        .max_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a)))
        .unwrap_or(0);
    let each = replay.questions.iter().map(|q| {
        let winners = commonest(q.answers.iter().flatten().copied());
        match q.answers[best] {
            Some(key) if winners.contains(&key) => Decision::of(vec![key]),
            _ => Decision::of(winners),
        }
    });
    each.collect()
}

/// Numbers answers so that a number means the same text on every question.
pub(crate) fn codes(replay: &Replay) -> Vec<Vec<Option<usize>>> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all = Vec::with_capacity(replay.questions.len());
    for q in &replay.questions {
        let own: Vec<usize> = q
            .keys
            .iter()
            .map(|k| {
                let next = numbers.len();
                *numbers.entry(k).or_insert(next)
            })
            .collect();
        all.push(q.answers.iter().map(|a| a.map(|k| own[k])).collect());
    }
    all
}
