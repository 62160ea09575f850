//! `dawid-skene`: weights from agreement alone, without using right answers.

use super::{Decider, Decision, Needs, Setting};
use crate::reliability;

pub(super) const DECIDER: Decider = Decider {
    name: "dawid-skene",
    doc: "the most likely answer if each member's reliability is learned from agreement alone, without right answers",
    source: "Dawid and Skene 1979, one coin for each member",
    needs: Needs::Members,
    decide,
};

fn decide(setting: &Setting<'_>) -> Vec<Decision> {
    let replay = setting.replay;
    let answers: Vec<Vec<Option<usize>>> =
        replay.questions.iter().map(|q| q.answers.clone()).collect();
    let found = reliability::dawid_skene(&answers, replay.members.len(), setting.options);
    found.winners.into_iter().map(Decision::of).collect()
}
