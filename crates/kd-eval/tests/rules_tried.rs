//! The counting rules of `docs/rules-tried.md`, as registered there before any of them was tried.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

mod support;

use kd_eval::auto::Strength;
use kd_eval::correlation::pearson;
use kd_eval::intervals::bootstrap;
use kd_eval::marks::{Evidence, Sum, Sums, strengths};
use kd_eval::replay::{Question, Replay, Table};
use kd_eval::weights::{Labelled, learned, learned_towards, odds};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use support::table;

const GSM: (&str, &str) = ("GSM8K", "zeroeval_gsm_44models.csv");
const MATH: (&str, &str) = ("MATH", "zeroeval_math-l5_43models.csv");
const CRUX: (&str, &str) = ("CRUXEval", "zeroeval_crux_51models.csv");
const KEPT_ASIDE: (&str, &str) = ("MMLU-Pro", "mmlu_pro_29models.csv");
/// The models of the set kept aside, with their names in the other sets.
const MATCHED: [(&str, &str); 7] = [
    ("DeepSeek-Coder-V2", "DeepSeek-Coder-V2-0724"),
    ("Meta-Llama-3_1-8B-Instruct", "Meta-Llama-3.1-8B-Instruct"),
    ("Meta-Llama-3_1-70B-Instruct", "Meta-Llama-3.1-70B-Instruct"),
    ("Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B-Instruct-v0.1"),
    ("Phi-3-mini-4k-instruct", "Phi-3-mini-4k-instruct"),
    ("gemini-1.5-pro-002", "gemini-1.5-pro"),
    ("gemini-1.5-flash-002", "gemini-1.5-flash"),
];
const SIZE: usize = 5;
const COUNCILS: usize = 120;
const SEED: u64 = 1;
const DRAWS: usize = 10_000;
/// The weight of the strengths learned elsewhere in Dawid and Skene's method, in questions.
const EM_PULL: f64 = 50.0;
const EM_ROUNDS: usize = 50;
/// The precision of the prior of joint weights at the logarithm of odds weights: a variance of 1/4.
const TOWARDS_ODDS: f64 = 4.0;

/// A council with everything that its rules may use.
struct Council<'a> {
    replay: &'a Replay,
    /// The members' shares of right answers elsewhere.
    right: Vec<f64>,
    /// Their error correlations elsewhere, by pair.
    correlations: Vec<Vec<f64>>,
    /// Their answers elsewhere, with known right answers.
    elsewhere: Vec<Question>,
    options: u64,
}

/// A rule: returns the winning answers of each question; several if tied.
type Rule = (&'static str, fn(&Council<'_>) -> Vec<Vec<usize>>);

const BAR: Rule = ("odds weights", |c| weighted(c, &odds(&c.right)));
const BASELINES: [Rule; 2] = [
    ("plurality", |c| weighted(c, &[1.0; SIZE])),
    ("trust the best elsewhere", |c| {
        let of = |at: &usize| c.right[*at];
        let best = (0..SIZE).rev().max_by(|a, b| of(a).total_cmp(&of(b)));
        let alone = |q: &Question| q.answers[best.unwrap()].into_iter().collect();
        c.replay.questions.iter().map(alone).collect()
    }),
];
const RULES: [Rule; 7] = [
    ("Dawid–Skene with shrinkage", |c| {
        weighted(c, &odds(&dawid_skene(c)))
    }),
    ("correlated errors", |c| {
        let shared = |m: usize| {
            1.0 + (0..SIZE)
                .filter(|o| *o != m)
                .map(|o| c.correlations[m][o])
                .sum::<f64>()
        };
        let weights = odds(&c.right).into_iter().enumerate();
        weighted(c, &weights.map(|(m, w)| w / shared(m)).collect::<Vec<_>>())
    }),
    ("joint weights elsewhere", |c| {
        weighted(c, &learned(&labelled(&c.elsewhere), SIZE))
    }),
    ("joint weights towards odds", |c| {
        let prior: Vec<f64> = odds(&c.right).into_iter().map(f64::ln).collect();
        weighted(
            c,
            &learned_towards(&labelled(&c.elsewhere), &prior, TOWARDS_ODDS),
        )
    }),
    ("tempered odds, power 1/2", |c| tempered(c, 0.5)),
    ("tempered odds, power 2", |c| tempered(c, 2.0)),
    ("surprising answers", surprising),
];

fn labelled(questions: &[Question]) -> Vec<Labelled<'_>> {
    let labelled = questions.iter().map(|q| Labelled {
        answers: &q.answers,
        right: &q.right,
    });
    labelled.collect()
}

fn tempered(council: &Council<'_>, power: f64) -> Vec<Vec<usize>> {
    let weights: Vec<f64> = odds(&council.right)
        .into_iter()
        .map(|w| w.powf(power))
        .collect();
    weighted(council, &weights)
}

/// Returns the answers with the most weight on each question.
fn weighted(council: &Council<'_>, weights: &[f64]) -> Vec<Vec<usize>> {
    let each = council.replay.questions.iter().map(|q| {
        let mut sums = vec![0.0; q.keys.len()];
        for (answer, weight) in q.answers.iter().zip(weights) {
            if let Some(key) = answer {
                // An answer that only members without weight gave still wins against none.
                sums[*key] += weight.max(1e-6);
            }
        }
        top(&sums)
    });
    each.collect()
}

/// Returns the answers with the highest score; scores of answers that nobody gave are 0.
fn top(scores: &[f64]) -> Vec<usize> {
    let most = scores.iter().copied().fold(0.0, f64::max);
    let is_top = |at: &usize| scores[*at] > 0.0 && most - scores[*at] < 1e-9;
    (0..scores.len()).filter(is_top).collect()
}

/// Re-estimates strengths on unmarked answers: one-coin EM, started from and shrunk towards the strengths elsewhere.
fn dawid_skene(council: &Council<'_>) -> Vec<f64> {
    let wrong = (council.options.max(2) - 1) as f64;
    let n = council.replay.questions.len() as f64;
    let mut p = council.right.clone();
    for _ in 0..EM_ROUNDS {
        let log_odds: Vec<f64> = p.iter().map(|p| (p * wrong / (1.0 - p)).ln()).collect();
        let mut sum = [0.0; SIZE];
        for q in &council.replay.questions {
            let mut logs = vec![f64::NEG_INFINITY; q.keys.len()];
            for (answer, log) in q.answers.iter().zip(&log_odds) {
                if let Some(key) = answer {
                    logs[*key] = if logs[*key].is_finite() {
                        logs[*key] + log
                    } else {
                        *log
                    };
                }
            }
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let shares: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
            let all: f64 = shares.iter().sum();
            for (sum, answer) in sum.iter_mut().zip(&q.answers) {
                *sum += answer.map_or(0.0, |key| shares[key] / all);
            }
        }
        p = sum
            .iter()
            .zip(&council.right)
            .map(|(sum, known)| ((sum + EM_PULL * known) / (n + EM_PULL)).clamp(0.01, 0.99))
            .collect();
    }
    p
}

/// Divides the share of each answer by the share that it has when another member gives it: how often other members agree
/// with those who gave it, on unmarked answers.
fn surprising(council: &Council<'_>) -> Vec<Vec<usize>> {
    let questions = &council.replay.questions;
    let agreement = |m: usize| -> f64 {
        let given = questions.iter().filter(|q| q.answers[m].is_some());
        let others = |q: &Question| {
            let same = |o: &usize| *o != m && q.answers[*o] == q.answers[m];
            (0..SIZE).filter(same).count() as f64 / (SIZE - 1) as f64
        };
        let n = given.clone().count().max(1) as f64;
        given.map(others).sum::<f64>() / n
    };
    let expected: Vec<f64> = (0..SIZE).map(agreement).collect();
    let each = questions.iter().map(|q| {
        let score = |key: usize| {
            let gave = (0..SIZE).filter(|m| q.answers[*m] == Some(key));
            let votes = gave.clone().count() as f64;
            let mean = gave.map(|m| expected[m]).sum::<f64>() / votes.max(1.0);
            votes / SIZE as f64 / mean.max(1e-9)
        };
        top(&(0..q.keys.len()).map(score).collect::<Vec<_>>())
    });
    each.collect()
}

/// Recorded answers elsewhere, from one file or several.
struct Elsewhere(Vec<Table>);

impl Elsewhere {
    fn column(table: &Table, model: &str) -> Option<usize> {
        table.members.iter().position(|m| m == model)
    }

    /// Returns whether each question was answered right by a model that was asked it.
    fn rights<'a>(&'a self, model: &'a str) -> impl Iterator<Item = Option<bool>> + 'a {
        self.0.iter().flat_map(move |table| {
            let column = Self::column(table, model);
            table.rows().iter().map(move |(q, missing)| {
                let asked = column.filter(|at| !missing[*at]);
                asked.map(|at| q.is_right(at))
            })
        })
    }

    /// Returns the sums of all of `models`, as marks of one kind.
    fn sums(&self, models: &[String]) -> Sums {
        let mut sums = Sums::default();
        for model in models {
            let asked: Vec<bool> = self.rights(model).flatten().collect();
            let sum = Sum {
                right: asked.iter().filter(|right| **right).count() as u64,
                questions: asked.len() as u64,
            };
            sums.set("recorded".into(), model.clone(), sum);
        }
        sums
    }

    /// Returns the error correlation of two models on the questions that both were asked; `None` without such questions.
    fn correlation(&self, one: &str, other: &str) -> Option<f64> {
        let pairs = self.rights(one).zip(self.rights(other));
        let both: Vec<(bool, bool)> = pairs.filter_map(|(a, b)| a.zip(b)).collect();
        let (a, b): (Vec<bool>, Vec<bool>) = both.into_iter().unzip();
        pearson(&a, &b)
    }

    /// Returns the answers of these models; a model that was not asked abstains.
    fn answers(&self, models: &[&str]) -> Vec<Question> {
        let mut out = Vec::new();
        for table in &self.0 {
            let columns: Vec<Option<usize>> =
                models.iter().map(|m| Self::column(table, m)).collect();
            for (q, missing) in table.rows() {
                let answer = |at: &Option<usize>| q.answers[at.filter(|at| !missing[*at])?];
                out.push(Question {
                    answers: columns.iter().map(answer).collect(),
                    right: q.right.clone(),
                    ..Question::default()
                });
            }
        }
        out
    }
}

/// The scores of all rules in one transfer.
struct Transfer {
    name: String,
    councils: usize,
    /// By rule: the mean over councils of the gain over the best member.
    over_best: BTreeMap<&'static str, f64>,
    /// By rule: each question's mean difference from the bar over its councils.
    over_bar: BTreeMap<&'static str, Vec<f64>>,
}

/// Lets all rules decide the questions of `target` in councils of `names`: models of `target`, each with its name elsewhere.
fn transfer(
    name: String,
    target: &Table,
    elsewhere: &Elsewhere,
    councils: &[Vec<(String, String)>],
    all: &[String],
) -> Transfer {
    let evidence = Evidence {
        sums: elsewhere.sums(all),
        ..Evidence::default()
    };
    let mut correlations: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for (at, one) in all.iter().enumerate() {
        for other in &all[..at] {
            if let Some(rho) = elsewhere.correlation(one, other) {
                correlations.insert((one, other), rho);
                correlations.insert((other, one), rho);
            }
        }
    }
    // Of two models that have no question in common the mean of all pairs is assumed.
    let mean = correlations.values().sum::<f64>() / correlations.len().max(1) as f64;
    let mut found = Transfer {
        name,
        councils: councils.len(),
        over_best: BTreeMap::new(),
        over_bar: BTreeMap::new(),
    };
    let mut by_question: BTreeMap<&str, BTreeMap<String, (f64, f64)>> = BTreeMap::new();
    for council in councils {
        let here: Vec<String> = council.iter().map(|(here, _)| here.clone()).collect();
        let there: Vec<&str> = council.iter().map(|(_, there)| there.as_str()).collect();
        let replay = target.council(&here).unwrap();
        let known = strengths(&evidence, "recorded", &there);
        let right: Vec<f64> = known
            .into_iter()
            .flatten()
            .map(Strength::estimate)
            .collect();
        assert_eq!(right.len(), SIZE);
        let rho = |a: &&str, b: &&str| correlations.get(&(*a, *b)).copied().unwrap_or(mean);
        let council = Council {
            right,
            correlations: there
                .iter()
                .map(|a| there.iter().map(|b| rho(a, b)).collect())
                .collect(),
            elsewhere: elsewhere.answers(&there),
            options: replay.options.unwrap_or(20),
            replay: &replay,
        };
        let n = replay.questions.len() as f64;
        let hits = |m: usize| replay.questions.iter().filter(|q| q.is_right(m)).count();
        let best = (0..SIZE).map(hits).max().unwrap() as f64 / n;
        let scores = |rule: &Rule| -> Vec<f64> {
            let winners = rule.1(&council);
            let pairs = replay.questions.iter().zip(&winners);
            pairs.map(|(q, winners)| q.share_right(winners)).collect()
        };
        let bar = scores(&BAR);
        for rule in BASELINES.iter().chain([&BAR]).chain(&RULES) {
            let own = scores(rule);
            let gain = own.iter().sum::<f64>() / n - best;
            *found.over_best.entry(rule.0).or_default() += gain / councils.len() as f64;
            let values = by_question.entry(rule.0).or_default();
            for ((q, own), bar) in replay.questions.iter().zip(&own).zip(&bar) {
                let value = values.entry(q.id.clone()).or_default();
                *value = (value.0 + own - bar, value.1 + 1.0);
            }
        }
    }
    for (rule, values) in by_question {
        let values = values.values().map(|(sum, n)| sum / n);
        found.over_bar.insert(rule, values.collect());
    }
    found
}

/// Draws councils of models that occur in both files.
fn drawn(
    target: &Table,
    source: &Table,
    councils: usize,
) -> (Vec<Vec<(String, String)>>, Vec<String>) {
    let is_common = |model: &&String| source.members.contains(model);
    let all: Vec<String> = target.members.iter().filter(is_common).cloned().collect();
    let mut names = all.clone();
    let mut chance = ChaCha12Rng::seed_from_u64(SEED);
    let mut draw = |_| {
        names.shuffle(&mut chance);
        names[..SIZE]
            .iter()
            .map(|name| (name.clone(), name.clone()))
            .collect()
    };
    ((0..councils).map(&mut draw).collect(), all)
}

fn six(councils: usize) -> Vec<Transfer> {
    let sets = [GSM, MATH, CRUX].map(|(name, file)| (name, table(file)));
    let mut out = Vec::new();
    for (to, target) in &sets {
        for (from, source) in sets.iter().filter(|(from, _)| from != to) {
            let (drawn, all) = drawn(target, source, councils);
            let elsewhere = Elsewhere(vec![source.clone()]);
            out.push(transfer(
                format!("{from} → {to}"),
                target,
                &elsewhere,
                &drawn,
                &all,
            ));
        }
    }
    out
}

fn kept_aside() -> Transfer {
    let elsewhere = Elsewhere([GSM, MATH, CRUX].map(|(_, file)| table(file)).to_vec());
    let mut councils = Vec::new();
    for left_out in 0..MATCHED.len() {
        for second in 0..left_out {
            let stays = |at: &usize| *at != left_out && *at != second;
            let of = |at: usize| (MATCHED[at].0.to_owned(), MATCHED[at].1.to_owned());
            councils.push((0..MATCHED.len()).filter(stays).map(of).collect());
        }
    }
    let all: Vec<String> = MATCHED
        .iter()
        .map(|(_, there)| (*there).to_owned())
        .collect();
    let name = format!("three sets → {}", KEPT_ASIDE.0);
    transfer(name, &table(KEPT_ASIDE.1), &elsewhere, &councils, &all)
}

/// The results as Markdown.
fn told(six: &[Transfer], aside: &Transfer) -> String {
    let mut out = String::from(
        "| learned → used, councils | plurality | odds weights | trust the best elsewhere |\n|---|---:|---:|---:|\n",
    );
    for found in six.iter().chain([aside]) {
        let gain = |rule: &str| found.over_best[rule] * 100.0;
        let (plurality, best) = (gain(BASELINES[0].0), gain(BASELINES[1].0));
        writeln!(
            out,
            "| {}, {} | {plurality:+.2} | {:+.2} | {best:+.2} |",
            found.name,
            found.councils,
            gain(BAR.0)
        )
        .unwrap();
    }
    out.push_str("\n| rule | ");
    let names: Vec<&str> = six
        .iter()
        .chain([aside])
        .map(|found| found.name.as_str())
        .collect();
    writeln!(
        out,
        "{} | passes |\n|---|{}---|",
        names.join(" | "),
        "---|".repeat(names.len())
    )
    .unwrap();
    for (rule, _) in RULES {
        let mut row = format!("| {rule} |");
        let mut passes = true;
        for (at, found) in six.iter().chain([aside]).enumerate() {
            let values = &found.over_bar[rule];
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let interval = bootstrap(values, DRAWS, SEED);
            write!(
                row,
                " {:+.2} ({:+.2} to {:+.2}) |",
                mean * 100.0,
                interval.low * 100.0,
                interval.high * 100.0
            )
            .unwrap();
            passes &= if at < six.len() {
                mean >= -0.003
            } else {
                interval.low > 0.0
            };
        }
        writeln!(out, "{row} {} |", if passes { "yes" } else { "no" }).unwrap();
    }
    out
}

/// Few councils: every rule decides, and no rule but `surprising answers` and plurality is far from the bar.
#[test]
fn every_registered_rule_decides() {
    let found = &six(2)[0];
    for (rule, _) in RULES {
        let gain = found.over_best[rule] - found.over_best[BAR.0];
        let limit = if rule == "surprising answers" {
            0.5
        } else {
            0.1
        };
        assert!(gain.abs() < limit, "{rule}: {gain}");
    }
    assert!(found.over_bar[BAR.0].iter().all(|d| *d == 0.0));
}

/// `cargo test --release -p kd-eval --test rules_tried -- --ignored --nocapture`
#[test]
#[ignore = "it decides 741 councils with ten rules"]
fn all_registered_rules_are_tried() {
    let told = told(&six(COUNCILS), &kept_aside());
    println!("{told}");
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules-tried.md");
    let page = std::fs::read_to_string(page).unwrap();
    for line in told.lines().filter(|line| line.starts_with("| ")) {
        assert!(page.contains(line), "docs/rules-tried.md lacks: {line}");
    }
}
