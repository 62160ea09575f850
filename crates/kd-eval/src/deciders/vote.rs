//! Any rule of `kd vote` on recorded answers.

use super::halves::HALVES;
use super::{Decision, Setting};
use crate::auto::Strength;
use crate::weights::odds;
use kd_vote::{Ballot, Detail, Mark, NANOS, Nano, Rule, Rules, nanos, winners};

/// Reliabilities measured on half a file are clamped to .001 and .999.
const CLIP: Nano = NANOS / 1000;

/// Decides by a rule. Votes are weighted by the odds of their voters if the rule uses weights.
pub(super) fn by_rule(rule: &'static Rule, setting: &Setting<'_>) -> Vec<Decision> {
    let mut rules = Rules {
        options: Some(setting.options),
        reliability_clip: CLIP,
        seed: setting.seed,
        ..Rules::of(Vec::<String>::new())
    };
    let members = setting.replay.members.len();
    // Values that the rule does not read are not measured.
    let blank: Vec<Ballot> = (0..members).map(|_| Ballot::choice(0)).collect();
    let knows =
        setting.replay.named && (rule.weighted || rule.details.contains(&Detail::Reliability));
    let taught: Vec<Vec<Ballot>> = (0..HALVES)
        .map(|half| {
            if knows {
                known(&blank, &setting.strengths(half))
            } else {
                blank.clone()
            }
        })
        .collect();
    let mut taught = taught;
    let mut decisions = Vec::with_capacity(setting.replay.questions.len());
    for (at, q) in setting.replay.questions.iter().enumerate() {
        rules.candidates.clone_from(&q.keys);
        let ballots = &mut taught[setting.halves.of(at)];
        for (m, ballot) in ballots.iter_mut().enumerate() {
            ballot.mark = match (q.trails.get(m), q.answers[m]) {
                (Some(trail), _) if !trail.is_empty() => Mark::Trail(trail.clone()),
                (_, Some(key)) => Mark::Choice(key),
                _ => Mark::Unreadable(String::new()),
            };
            ballot.confidence = q.stated[m].map(nanos);
        }
        decisions.push(Decision::of(winners(rule, ballots, &rules)));
    }
    decisions
}

/// Adds what is known about the voters to the ballots.
fn known(ballots: &[Ballot], strengths: &[Strength]) -> Vec<Ballot> {
    let right: Vec<f64> = strengths.iter().map(|s| s.right).collect();
    let with = |((b, p), w): ((&Ballot, &f64), f64)| Ballot {
        reliability: Some(nanos(*p)),
        weight: nanos(w),
        ..b.clone()
    };
    ballots
        .iter()
        .zip(&right)
        .zip(odds(&right))
        .map(with)
        .collect()
}
