//! Any rule of `kd vote` on recorded answers.

use super::Question;
use super::halves::HALVES;
use super::{Decision, Setting};
use crate::auto::{self, Strength};
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

/// Returns the answers of these members that win by weight, as `kd deliberate` counts them. `weights` are of all members,
/// in billionths. If the learned rule has found that enough members answered, `quorum` is 1; otherwise it is `None`.
pub(super) fn weighted(
    setting: &Setting<'_>,
    asked: &[usize],
    weights: &[Nano],
    quorum: Option<u64>,
    question: &Question,
) -> Vec<usize> {
    let ballot = |member: &usize| Ballot {
        weight: weights[*member],
        ..match question.answers[*member] {
            Some(key) => Ballot::choice(key),
            None => Ballot::new(Mark::Unreadable(String::new())),
        }
    };
    let ballots: Vec<Ballot> = asked.iter().map(ballot).collect();
    let cast = asked
        .iter()
        .map(|member| (weights[*member], question.answers[*member].is_some()));
    let rules = Rules {
        options: Some(setting.options),
        seed: setting.seed,
        quorum: quorum.unwrap_or_else(|| auto::quorum(cast)),
        ..Rules::of(question.keys.clone())
    };
    kd_vote::find("weighted").map_or_else(Vec::new, |rule| winners(rule, &ballots, &rules))
}

/// Adds the evidence about the voters to the ballots.
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
