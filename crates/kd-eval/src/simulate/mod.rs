//! Simulates protocols with scripted members of known strength, where the right answers are known.
//!
//! Input: a [`Spec`]. Output: a [`Simulated`], the same for the same spec. All protocols see the same questions and the
//! same first answers, so that differences are due to the protocol.

mod beta;
mod game;
pub mod judge;
pub mod protocols;
mod read;
mod spec;

pub use spec::{Script, Spec};

use super::intervals::{Interval, wilson};
use super::jury;
use super::paired::{Comparison, compare};
use game::{RIGHT, Table};
use protocols::{PROTOCOLS, Protocol};
use serde::Serialize;

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// The simulated council.
    pub spec: Spec,
    /// The theoretical accuracy of a vote, if all members are equal and there are two answers.
    pub expected_vote: Option<f64>,
    /// Each member's name and the share of its first answers that were right.
    pub members: Vec<(String, f64)>,
    /// One entry per protocol.
    pub protocols: Vec<Led>,
}

/// The results of a protocol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Led {
    /// Its name.
    pub name: &'static str,
    /// The expected share of right decisions, with ties broken at random.
    pub right: f64,
    /// Its Wilson 95 % interval.
    pub interval: Interval,
    /// The mean number of answers requested.
    pub calls: f64,
    /// The share of wrong first answers that ended right.
    pub corrected: f64,
    /// The share of right first answers that ended wrong.
    pub subverted: f64,
    /// Compared with the blind vote of the same members.
    pub against_vote: Comparison,
}

/// Runs a simulation.
pub fn simulate(spec: &Spec) -> Simulated {
    let table = Table::of(spec);
    let chosen: Vec<&Protocol> = if spec.protocols.is_empty() {
        PROTOCOLS.iter().collect()
    } else {
        spec.protocols
            .iter()
            .filter_map(|name| protocols::find(name))
            .collect()
    };
    let vote = lead(&table, spec, &PROTOCOLS[0]);
    let n = f64::from(spec.questions.max(1));
    let mut hits = vec![0.0; table.seats.len()];
    for q in 0..spec.questions {
        for (hit, says) in hits.iter_mut().zip(table.ask(q).says) {
            *hit += f64::from(u8::from(says == Some(RIGHT))) / n;
        }
    }
    Simulated {
        expected_vote: expected(spec, &table),
        members: table
            .seats
            .iter()
            .map(|s| s.name.clone())
            .zip(hits)
            .collect(),
        protocols: chosen
            .into_iter()
            .map(|p| {
                let run = lead(&table, spec, p);
                let right: f64 = run.scores.iter().sum();
                let share = |(part, of): (u64, u64)| {
                    if of == 0 {
                        0.0
                    } else {
                        part as f64 / of as f64
                    }
                };
                Led {
                    name: p.name,
                    right: right / n,
                    interval: wilson(right, u64::from(spec.questions)),
                    calls: run.calls as f64 / n,
                    corrected: share(run.corrected),
                    subverted: share(run.subverted),
                    against_vote: compare(&run.scores, &vote.scores, spec.seed),
                }
            })
            .collect(),
        spec: spec.clone(),
    }
}

#[derive(Default)]
struct Run {
    scores: Vec<f64>,
    calls: u64,
    corrected: (u64, u64),
    subverted: (u64, u64),
}

fn lead(table: &Table, spec: &Spec, protocol: &Protocol) -> Run {
    let mut run = Run::default();
    for q in 0..spec.questions {
        let mut game = table.ask(q);
        let before = game.says.clone();
        let winners = (protocol.lead)(&mut game, table, spec.rounds);
        let right = winners.iter().filter(|w| **w == RIGHT).count();
        run.scores.push(if winners.is_empty() {
            0.0
        } else {
            right as f64 / winners.len() as f64
        });
        run.calls += game.calls;
        for (before, after) in before.iter().zip(&game.says) {
            let (was, is) = (*before == Some(RIGHT), *after == Some(RIGHT));
            let of = if was {
                &mut run.subverted
            } else {
                &mut run.corrected
            };
            of.1 += 1;
            of.0 += u64::from(was != is);
        }
    }
    run
}

/// Returns the prediction of Condorcet's jury theorem, if it applies.
fn expected(spec: &Spec, table: &Table) -> Option<f64> {
    let first = table.seats.first()?;
    let plain = |s: &Script| !s.adversary && s.failure == 0.0 && s.accuracy == first.accuracy;
    (spec.options == 2 && table.seats.iter().all(plain))
        .then(|| jury::correlated(table.seats.len() as u32, first.accuracy, spec.correlation))
}

#[cfg(test)]
mod tests {
    use super::judge::{Judge, judge};
    use super::*;

    fn run(spec: &str) -> Simulated {
        simulate(&Spec::read(spec).unwrap())
    }

    fn led<'s>(s: &'s Simulated, name: &str) -> &'s Led {
        s.protocols.iter().find(|p| p.name == name).unwrap()
    }

    /// Returns the standard error of a paired difference, from the questions that differ.
    fn se(c: &Comparison, n: f64) -> f64 {
        ((c.won + c.lost) as f64).sqrt() / n
    }

    #[test]
    fn a_vote_of_scripted_members_is_condorcets_jury() {
        for (count, accuracy, correlation) in
            [(5, 0.7, 0.0), (5, 0.7, 0.4), (9, 0.6, 0.0), (3, 0.8, 0.2)]
        {
            let s = run(&format!(
                r#"{{"options":2,"correlation":{correlation},"protocols":["vote"],"members":[{{"accuracy":{accuracy},"count":{count}}}]}}"#
            ));
            let (right, expected) = (s.protocols[0].right, s.expected_vote.unwrap());
            let error = (expected * (1.0 - expected) / 10_000.0).sqrt();
            assert!(
                (right - expected).abs() < 3.0 * error,
                "{count} {accuracy} {correlation}: {right} {expected}"
            );
        }
    }

    #[test]
    fn conformity_alone_moves_a_debate_nowhere() {
        let s = run(
            r#"{"rounds":2,"protocols":["debate","debate-anonymous"],"members":[{"accuracy":0.6,"conformity":0.4,"count":5}]}"#,
        );
        for p in &s.protocols {
            assert!(
                p.against_vote.difference.abs() < 3.0 * se(&p.against_vote, 10_000.0),
                "{p:?}"
            );
            assert!(p.subverted > 0.0, "it does break right answers");
        }
    }

    #[test]
    fn skill_makes_a_debate_better_than_a_vote() {
        let s = run(
            r#"{"protocols":["debate","debate-justified","gate-debate"],"members":[{"accuracy":0.6,"skill":0.3,"count":5}]}"#,
        );
        for p in &s.protocols {
            assert_eq!(
                p.against_vote.verdict,
                crate::paired::Verdict::Better,
                "{p:?}"
            );
        }
        let (gate, debate) = (led(&s, "gate-debate"), led(&s, "debate"));
        assert!(gate.calls < debate.calls, "a gate saves calls");
    }

    #[test]
    fn without_names_and_with_reasons_an_adversary_does_half_the_harm() {
        let honest = run(
            r#"{"protocols":["vote"],"members":[{"accuracy":0.7,"conformity":0.5,"skill":0.1,"count":5}]}"#,
        );
        let table = run(
            r#"{"rounds":2,"protocols":["debate","debate-justified"],"members":[{"accuracy":0.7,"conformity":0.5,"skill":0.1,"count":4},{"name":"eve","adversary":true,"persuasion":0.8}]}"#,
        );
        let clean = honest.protocols[0].right;
        let (plain, guarded) = (
            clean - led(&table, "debate").right,
            clean - led(&table, "debate-justified").right,
        );
        assert!(
            plain > 0.0 && guarded <= plain / 2.0,
            "plain {plain}, guarded {guarded}"
        );
    }

    #[test]
    fn both_orders_take_the_favour_for_the_first_away() {
        let rate = |first_bias: f64, both: bool| {
            let v = judge(
                Judge {
                    accuracy: 0.8,
                    first_bias,
                },
                20_000,
                both,
                7,
            );
            (
                v.won as f64 / v.decided as f64,
                (0.25 / v.decided as f64).sqrt(),
            )
        };
        for bias in [0.0, 0.2, 0.4, 0.6] {
            let (won, error) = rate(bias, true);
            assert!((won - 0.5).abs() < 2.0 * error, "{bias}: {won}");
        }
        assert!(rate(0.4, false).0 > 0.68, "one order favours the first");
    }

    #[test]
    fn the_same_spec_gives_the_same_result_and_unequal_members_need_weights() {
        let spec = r#"{"questions":4000,"options":2,"members":[{"accuracy":0.95},{"accuracy":0.6,"count":4}]}"#;
        let s = run(spec);
        assert_eq!(s, run(spec));
        assert_eq!(s.protocols.len(), PROTOCOLS.len());
        assert!((led(&s, "vote").right - 0.80352).abs() < 0.02);
        assert!((led(&s, "weighted").right - 0.95).abs() < 0.02);
        assert_eq!(s.expected_vote, None);
        assert!((s.members[0].1 - 0.95).abs() < 0.015);
    }
}
