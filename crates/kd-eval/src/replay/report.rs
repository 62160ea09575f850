//! The report on recorded answers: members and deciders, every number with its uncertainty.

use super::{Question, Replay};
use crate::calibration::{Calibration, Isotonic, calibration};
use crate::contribution::{Row, leave_one_out, shapley};
use crate::correlation::{krippendorff, mean_correlation, n_eff, same_wrong};
use crate::deciders::{Decision, Halves, Setting, Way, codes};
use crate::intervals::{Interval, bootstrap, wilson};
use crate::paired::{Comparison, DRAWS, compare};
use crate::reliability::{dawid_skene, peer_scores, spearman};
use crate::weights::odds;
use serde::Serialize;
use std::collections::BTreeMap;

/// The setup of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setup {
    /// Number of questions decided.
    pub questions: usize,
    /// Number skipped because one of the members was never asked.
    pub dropped: usize,
    /// The number of possible answers assumed by log-odds and Dawid–Skene.
    pub options: u64,
    /// The seed of random draws, orders and bootstraps.
    pub seed: u64,
}

/// The whole report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The setup of the replay.
    pub setup: Setup,
    /// The members; empty for debates, whose members are positions.
    pub members: Vec<MemberReport>,
    /// The council as a whole; `None` for debates.
    pub council: Option<Council>,
    /// The effect of the debate; `None` if there was one round.
    pub debate: Option<Debate>,
    /// One entry per decider.
    pub rules: Vec<RuleReport>,
}

/// The results of a member.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemberReport {
    /// Its name.
    pub name: String,
    /// The share of questions it answered correctly.
    pub right: f64,
    /// Its Wilson 95 % interval.
    pub interval: Interval,
    /// Number of questions without its answer.
    pub silent: usize,
    /// Its odds of being right, scaled to a mean of one over all members: the recommended vote weight.
    pub weight: f64,
    /// Its share of right answers as estimated by Dawid–Skene, without right answers.
    pub without_labels: f64,
    /// Its score by peer prediction, without right answers either; only the order is meaningful.
    pub peer_score: f64,
    /// The loss in accuracy of a plurality vote without this member.
    pub leave_one_out: f64,
    /// Its 95 % interval.
    pub leave_one_out_interval: Interval,
    /// Whether the council is better off without it: the whole interval is below zero.
    pub dismiss: bool,
    /// Its share of what a plurality gets right beyond a guess.
    pub shapley: f64,
    /// The calibration of its stated confidence; `None` if it stated none.
    pub stated: Option<Calibration>,
    /// The cost of all its answers; `None` if the record has no costs.
    pub cost: Option<f64>,
}

/// The council as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Council {
    /// The index of the member that was right most often on all questions: known only afterwards.
    pub best: usize,
    /// The mean of the members.
    pub mean: f64,
    /// The share of questions on which any member is right.
    pub oracle: f64,
    /// The correlation of errors.
    pub errors: Errors,
    /// The agreement of members.
    pub agreement: Agreement,
    /// The sources of the gain.
    pub gains: Reward,
    /// The share of members supporting the plurality, taken as the probability that it is right.
    pub votes: Option<Calibration>,
    /// The calibration after a monotonic map that was fitted on the other half.
    pub fitted: Option<Calibration>,
    /// Spearman's correlation of the members' accuracy with the label-free Dawid–Skene estimates.
    pub spearman_dawid_skene: Option<f64>,
    /// Spearman's correlation of the members' accuracy with the estimates of peer prediction.
    pub spearman_peer: Option<f64>,
}

/// The correlation of members' errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// The mean correlation of errors over all pairs.
    pub correlation: Option<f64>,
    /// The equivalent number of independent members; `None` if errors do not correlate.
    pub n_eff: Option<f64>,
    /// The share of identical answers among pairs of wrong answers.
    pub same_wrong: Option<f64>,
}

/// The agreement of members.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The share of questions on which all gave the same answer.
    pub unanimous: f64,
    /// The share of these questions that they answered right.
    pub unanimous_right: f64,
    /// The share of questions with a right member among those on which the plurality was wrong.
    pub minority_right: f64,
    /// Krippendorff's alpha.
    pub alpha: Option<f64>,
    /// Each pattern of votes, in descending order of agreement.
    pub patterns: Vec<Pattern>,
}

/// Questions with the same pattern of votes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pattern {
    /// The number of votes for each answer, descending: `3-1-1`.
    pub votes: String,
    /// Number of questions.
    pub n: usize,
    /// The share that a plurality got right, with ties broken at random.
    pub right: f64,
}

/// The sources of a council's gain, each as a share of all questions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reward {
    /// Plurality minus the mean member.
    pub vote: f64,
    /// The gain if the best member breaks ties instead of a random draw.
    pub tie_break: f64,
    /// The additional gain by fitted weights.
    pub weights: f64,
    /// The lead of the oracle over plurality.
    pub oracle_gap: f64,
}

/// The effect of a debate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Debate {
    /// The vote before it.
    pub first_vote: f64,
    /// The vote after it.
    pub last_vote: f64,
    /// Wrong first answers corrected in the second round, of all wrong ones whose agent continued.
    pub corrected: (u64, u64),
    /// Right first answers that became wrong in the second round, of all right ones whose agent continued.
    pub subverted: (u64, u64),
    /// Changed answers that adopted the others' first majority, of all changed answers.
    pub conformed: (u64, u64),
}

/// The results of a decider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleReport {
    /// Its name.
    pub name: &'static str,
    /// The expected share of right decisions, with ties broken at random.
    pub right: f64,
    /// Its Wilson 95 % interval.
    pub interval: Interval,
    /// The share of questions left tied.
    pub ties: f64,
    /// The mean number of members asked.
    pub calls: f64,
    /// The share of questions on which it asked each member.
    pub asked: Vec<f64>,
    /// The cost; `None` if the record has no costs.
    pub cost: Option<f64>,
    /// The cost per right answer.
    pub cost_of_right: Option<f64>,
    /// Compared with the member that was right most often on all questions.
    pub against_best: Option<Comparison>,
    /// Compared with plurality; in debates, with the vote of the first round.
    pub against_vote: Comparison,
}

/// Replays the record with each decider.
pub fn report(replay: &Replay, ways: &[Way], options: u64, seed: u64) -> Report {
    let halves = Halves::drawn(replay.questions.len(), seed);
    let setting = Setting {
        replay,
        options,
        seed,
        halves: &halves,
    };
    let members = replay.members.len();
    let best = if replay.named { best_of(replay) } else { None };
    let rounds = replay
        .questions
        .iter()
        .any(|q| q.trails.iter().any(|t| t.len() > 1));
    let base = if rounds { "first-round" } else { "plurality" };
    let scores =
        |name: &str| Way::find(name).map_or_else(Vec::new, |w| shares(replay, &w.decide(&setting)));
    let vote = scores(base);
    let alone: Option<Vec<f64>> = best.map(|b| {
        replay
            .questions
            .iter()
            .map(|q| f64::from(u8::from(q.is_right(b))))
            .collect()
    });
    let rules = ways
        .iter()
        .map(|way| {
            rule_report(
                replay,
                *way,
                &way.decide(&setting),
                alone.as_deref(),
                &vote,
                seed,
            )
        })
        .collect();
    let debate = rounds.then(|| debate(replay, mean(&vote), mean(&scores("last-round"))));
    Report {
        setup: Setup {
            questions: replay.questions.len(),
            dropped: replay.dropped,
            options,
            seed,
        },
        members: if replay.named {
            member_reports(&setting)
        } else {
            Vec::new()
        },
        council: best.filter(|_| members > 1).map(|best| {
            council(
                &setting,
                best,
                &vote,
                &scores("plurality-best"),
                mean(&scores("learned")),
            )
        }),
        debate,
        rules,
    }
}

/// Returns the expected share of right answers of each decision.
fn shares(replay: &Replay, decisions: &[Decision]) -> Vec<f64> {
    replay
        .questions
        .iter()
        .zip(decisions)
        .map(|(q, d)| q.share_right(&d.winners))
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the first of the members that were right most often.
fn best_of(replay: &Replay) -> Option<usize> {
    let hits = |m: usize| replay.questions.iter().filter(|q| q.is_right(m)).count();
    (0..replay.members.len()).max_by(|a, b| hits(*a).cmp(&hits(*b)).then(b.cmp(a)))
}

fn rule_report(
    replay: &Replay,
    way: Way,
    decisions: &[Decision],
    alone: Option<&[f64]>,
    vote: &[f64],
    seed: u64,
) -> RuleReport {
    let ours = shares(replay, decisions);
    let n = ours.len().max(1) as f64;
    let members = replay.members.len();
    let mut asked = vec![0.0; members];
    let mut cost = Some(0.0);
    for (q, d) in replay.questions.iter().zip(decisions) {
        let everybody: Vec<usize>;
        let who = match &d.asked {
            Some(who) => who,
            None => {
                everybody = (0..members).collect();
                &everybody
            }
        };
        for m in who {
            asked[*m] += 1.0 / n;
            cost = cost.zip(q.cost[*m]).map(|(sum, c)| sum + c);
        }
    }
    let right: f64 = ours.iter().sum();
    RuleReport {
        name: way.name(),
        right: right / n,
        interval: wilson(right, ours.len() as u64),
        ties: decisions.iter().filter(|d| d.winners.len() > 1).count() as f64 / n,
        calls: asked.iter().sum(),
        asked,
        cost,
        cost_of_right: cost.filter(|_| right > 0.0).map(|c| c / right),
        against_best: alone.map(|alone| compare(&ours, alone, seed)),
        against_vote: compare(&ours, vote, seed),
    }
}

fn member_reports(setting: &Setting<'_>) -> Vec<MemberReport> {
    let replay = setting.replay;
    let members = replay.members.len();
    let questions = &replay.questions;
    let n = questions.len();
    let right: Vec<f64> = (0..members)
        .map(|m| questions.iter().filter(|q| q.is_right(m)).count() as f64 / n.max(1) as f64)
        .collect();
    let weights = odds(&right);
    let total: f64 = weights.iter().sum();
    let answers = codes(replay);
    let blind = dawid_skene(&answers, members, setting.options).right;
    let peers = peer_scores(&answers, members);
    let rows: Vec<Row<'_>> = questions
        .iter()
        .map(|q| Row {
            answers: &q.answers,
            right: &q.right,
        })
        .collect();
    let without = leave_one_out(&rows, members);
    let credit = shapley(
        &rows,
        members,
        1.0 / setting.options.max(1) as f64,
        setting.seed,
    );
    (0..members)
        .map(|m| {
            let interval = bootstrap(&without[m], DRAWS, setting.seed);
            let loss = mean(&without[m]);
            let said: Vec<(f64, bool)> = questions
                .iter()
                .filter_map(|q| Some((q.stated[m]?, q.is_right(m))))
                .collect();
            MemberReport {
                name: replay.members[m].clone(),
                right: right[m],
                interval: wilson(right[m] * n as f64, n as u64),
                silent: questions.iter().filter(|q| q.answers[m].is_none()).count(),
                weight: weights[m] / total * members as f64,
                without_labels: blind[m],
                peer_score: peers[m],
                leave_one_out: loss,
                leave_one_out_interval: interval,
                dismiss: loss < 0.0 && !interval.spans_zero(),
                shapley: credit[m],
                stated: calibration(&said),
                cost: questions.iter().map(|q| q.cost[m]).sum(),
            }
        })
        .collect()
}

fn council(
    setting: &Setting<'_>,
    best: usize,
    vote: &[f64],
    settled: &[f64],
    weights: f64,
) -> Council {
    let replay = setting.replay;
    let questions = &replay.questions;
    let members = replay.members.len();
    let n = questions.len().max(1) as f64;
    let rights: Vec<Vec<bool>> = (0..members)
        .map(|m| questions.iter().map(|q| q.is_right(m)).collect())
        .collect();
    let each: Vec<f64> = rights
        .iter()
        .map(|r| r.iter().filter(|r| **r).count() as f64 / n)
        .collect();
    let any = |q: &&Question| q.answers.iter().flatten().any(|k| q.right[*k]);
    let oracle = questions.iter().filter(any).count() as f64 / n;
    let correlation = mean_correlation(&rights);
    let answers: Vec<Vec<Option<usize>>> = questions.iter().map(|q| q.answers.clone()).collect();
    let marks: Vec<Vec<bool>> = questions.iter().map(|q| q.right.clone()).collect();
    let blind = codes(replay);
    let mean_member = mean(&each);
    let plurality = mean(vote);
    let said: Vec<(f64, bool)> = questions
        .iter()
        // Ties go to the best member, as in a council that knows it; a tie left open even then is not right.
        .zip(settled)
        .map(|(q, share)| (sureness(q), *share > 0.5))
        .collect();
    Council {
        best,
        mean: mean_member,
        oracle,
        errors: Errors {
            correlation,
            n_eff: correlation.and_then(|rho| n_eff(members, rho)),
            same_wrong: same_wrong(&answers, &marks),
        },
        agreement: agreement(questions, vote, &blind),
        gains: Reward {
            vote: plurality - mean_member,
            tie_break: mean(settled) - plurality,
            weights: weights - mean(settled),
            oracle_gap: oracle - plurality,
        },
        votes: calibration(&said),
        fitted: calibration(&fitted(&said, setting.halves)),
        spearman_dawid_skene: spearman(&dawid_skene(&blind, members, setting.options).right, &each),
        spearman_peer: spearman(&peer_scores(&blind, members), &each),
    }
}

/// Returns the share of members supporting the leading answer; a close rival lowers it by less than a vote.
fn sureness(q: &Question) -> f64 {
    let counts = counts(q);
    let members = q.answers.len().max(1) as f64;
    let (top, next) = (
        counts.first().copied().unwrap_or(0) as f64,
        counts.get(1).copied().unwrap_or(0) as f64,
    );
    ((top - next / (members + 1.0)) / members).max(0.0)
}

/// Applies to each half the map learned on the other half.
fn fitted(said: &[(f64, bool)], halves: &Halves) -> Vec<(f64, bool)> {
    let maps: Vec<Isotonic> = (0..2)
        .map(|half| {
            let other: Vec<(f64, bool)> = said
                .iter()
                .enumerate()
                .filter(|(at, _)| halves.of(*at) != half)
                .map(|(_, f)| *f)
                .collect();
            Isotonic::fit(&other)
        })
        .collect();
    said.iter()
        .enumerate()
        .map(|(at, (p, came))| (maps[halves.of(at)].at(*p), *came))
        .collect()
}

/// Returns the number of votes for each answer, descending.
fn counts(q: &Question) -> Vec<usize> {
    let mut counts = vec![0; q.keys.len()];
    q.answers.iter().flatten().for_each(|k| counts[*k] += 1);
    counts.retain(|c| *c > 0);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

fn agreement(questions: &[Question], vote: &[f64], codes: &[Vec<Option<usize>>]) -> Agreement {
    let mut patterns: BTreeMap<Vec<usize>, (usize, f64)> = BTreeMap::new();
    let (mut wrong, mut rescued) = (0.0, 0.0);
    for (q, share) in questions.iter().zip(vote) {
        let pattern = patterns.entry(counts(q)).or_default();
        pattern.0 += 1;
        pattern.1 += share;
        wrong += 1.0 - share;
        if q.answers.iter().flatten().any(|k| q.right[*k]) {
            rescued += 1.0 - share;
        }
    }
    let members = questions.first().map_or(0, |q| q.answers.len());
    let (n, right) = patterns.get(&vec![members]).copied().unwrap_or_default();
    let named = patterns.iter().rev().map(|(counts, (n, right))| Pattern {
        votes: if counts.is_empty() {
            "nobody".into()
        } else {
            counts
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("-")
        },
        n: *n,
        right: right / *n as f64,
    });
    Agreement {
        unanimous: n as f64 / questions.len().max(1) as f64,
        unanimous_right: if n == 0 { 0.0 } else { right / n as f64 },
        minority_right: if wrong > 0.0 { rescued / wrong } else { 0.0 },
        alpha: krippendorff(codes),
        patterns: named.collect(),
    }
}

/// Returns the changes of agents' answers between the first and the second round.
fn debate(replay: &Replay, first_vote: f64, last_vote: f64) -> Debate {
    let mut d = Debate {
        first_vote,
        last_vote,
        corrected: (0, 0),
        subverted: (0, 0),
        conformed: (0, 0),
    };
    for q in &replay.questions {
        let is_right = |key: Option<usize>| key.is_some_and(|k| q.right[k]);
        for (m, trail) in q.trails.iter().enumerate() {
            let [first, second, ..] = trail.as_slice() else {
                continue;
            };
            let (of, to) = if is_right(*first) {
                (&mut d.subverted, !is_right(*second))
            } else {
                (&mut d.corrected, is_right(*second))
            };
            of.1 += 1;
            of.0 += u64::from(to);
            if first != second {
                d.conformed.1 += 1;
                let others: Vec<Option<usize>> = q
                    .trails
                    .iter()
                    .enumerate()
                    .filter(|(o, _)| *o != m)
                    .filter_map(|(_, t)| t.first().copied())
                    .collect();
                let same = others
                    .iter()
                    .filter(|k| k.is_some() && *k == second)
                    .count();
                d.conformed.0 += u64::from(2 * same > others.len());
            }
        }
    }
    d
}
