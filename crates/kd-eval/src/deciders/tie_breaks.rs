//! Plurality whose ties are decided by a member's position, not at random.

use super::{Decider, Decision, Needs, Setting, commonest, strongest};

pub(super) const FIRST: Decider = Decider {
    name: "plurality-first",
    doc: "plurality; ties go to the member listed first",
    source: "what many programs do without saying so",
    needs: Needs::Answers,
    decide: first,
};

pub(super) const BEST: Decider = Decider {
    name: "plurality-best",
    doc: "plurality; ties go to the member that was right most often on the other half",
    source: "the tie chain of `kd vote`, its third step",
    needs: Needs::Members,
    decide: best,
};

fn first(setting: &Setting<'_>) -> Vec<Decision> {
    let each = setting.replay.questions.iter().map(|q| {
        // Winners are in the order in which they were first given.
        let mut winners = commonest(q.answers.iter().flatten().copied());
        winners.truncate(1);
        Decision::of(winners)
    });
    each.collect()
}

fn best(setting: &Setting<'_>) -> Vec<Decision> {
    setting.by_half(
        |half| strongest(&setting.strengths(half)),
        |best, q| {
            let winners = commonest(q.answers.iter().flatten().copied());
            match q.answers[*best] {
                Some(key) if winners.contains(&key) => Decision::of(vec![key]),
                _ => Decision::of(winners),
            }
        },
    )
}
