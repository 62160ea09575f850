//! Measures the number of marks until a broken promise is detected, if something changes after the marks from which it
//! was learned.
//!
//! Promises come from [`Basis`], relearned after every few marks as in `kd deliberate`. A promise has ended once not
//! even a unanimous verdict gets it: because the sequential test has withdrawn it, or because its own test no longer
//! passes.

use super::promises::{fail, verdicts};
use super::{Question, ReadError, Replay};
use crate::marks::{Basis, Evidence, LEVELS, Mark, Promise};
use jiff::Timestamp;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

/// Marks after the change, if the record has that many.
const AFTER: usize = 200;
/// Number of marks between checks of the promise.
const STEP: usize = 5;
/// The share of unanimous verdicts marked by a user who mainly marks doubtful ones.
const UNDOUBTED: f64 = 0.2;

/// The setup of a drift trial.
#[derive(Clone, Debug, PartialEq)]
pub struct DriftTrial {
    /// The members; the best of them is replaced.
    pub members: Vec<String>,
    /// The promised shares of right verdicts, each above 0 and below 1.
    pub promises: Vec<f64>,
    /// Marks to learn from before the change.
    pub marks: Vec<usize>,
    /// Number of random splits of the questions.
    pub splits: usize,
    /// The seed of splits, ties and marks.
    pub seed: u64,
}

/// The number of marks until broken promises are detected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drifts {
    /// The members.
    pub members: Vec<String>,
    /// Number of questions asked of every model in the file.
    pub questions: usize,
    /// Number of splits.
    pub splits: usize,
    /// The seed of splits, ties and marks.
    pub seed: u64,
    /// The best member, and the model that replaces it in the swap.
    pub swap: (String, String),
    /// One row for each promise, number of marks and change.
    pub rows: Vec<Noticed>,
}

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Nothing: every alarm is false.
    Nothing,
    /// The weakest model of the file answers in place of the best member, under its name.
    Swap,
    /// Questions come from the harder half, which fewer models of the file answer correctly.
    Harder,
    /// All verdicts with a dissent are marked, and one in five of the others.
    Doubted,
}

impl Change {
    const ALL: [Change; 4] = [
        Change::Nothing,
        Change::Swap,
        Change::Harder,
        Change::Doubted,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Change::Nothing => "nothing",
            Change::Swap => "swap",
            Change::Harder => "harder",
            Change::Doubted => "doubted",
        }
    }
}

/// The number of marks until one promise is found broken after one change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Noticed {
    /// The promised share of right verdicts.
    pub promise: f64,
    /// Marks before the change.
    pub marks: usize,
    /// The change.
    pub change: Change,
    /// Number of splits in which the promise was made before the change.
    pub promised: usize,
    /// The mean number of marks after the change covered by the promise.
    pub covered: f64,
    /// The share of wrong ones among them; `None` without such marks.
    pub wrong: Option<f64>,
    /// Number of splits in which the promise ended, among those in which it was made.
    pub gone: usize,
    /// Number of splits in which the sequential test withdrew the promise.
    pub withdrawn: usize,
    /// Marks from the change until it ended: the median and the 90 % quantile over the splits in which it did.
    pub delay: Option<(usize, usize)>,
    /// The mean number of marks available after the change.
    pub looked: f64,
}

/// Measures the marks until a promise is found to have ended, for every change.
///
/// # Errors
/// An invalid share, an unknown member, or not more questions than marks.
pub fn drifts(all: &Replay, trial: &DriftTrial) -> Result<Drifts, ReadError> {
    let columns = columns(all, trial)?;
    let right = |at: &usize| all.questions.iter().filter(|q| q.is_right(*at)).count();
    let best = (0..columns.len())
        .max_by_key(|at| right(&columns[*at]))
        .unwrap_or(0);
    let weakest = (0..all.members.len()).min_by_key(right).unwrap_or(0);
    let mut swapped = columns.clone();
    swapped[best] = weakest;
    let names: Vec<String> = columns.iter().map(|at| all.members[*at].clone()).collect();
    let before = verdicts(&seated(all, &columns, &names), trial.seed);
    let after = verdicts(&seated(all, &swapped, &names), trial.seed);
    let harder = harder(all);
    let usable: Vec<usize> = (0..all.questions.len())
        .filter(|at| before[*at].is_some())
        .collect();
    if let Some(n) = trial.marks.iter().find(|n| **n >= usable.len()) {
        let what = format!(
            "{} questions have a verdict; {n} marks leave none to test",
            usable.len()
        );
        return Err(fail(what, "choose fewer marks"));
    }
    let mut chance = ChaCha12Rng::seed_from_u64(trial.seed);
    // A separate stream: the same seed is also used for ties and promises.
    chance.set_stream(u64::from_be_bytes(*b"___drift"));
    let mut cells = cells(trial);
    let mut order = usable.clone();
    for _ in 0..trial.splits {
        order.shuffle(&mut chance);
        let doubts: Vec<f64> = order.iter().map(|_| chance.random()).collect();
        for (row, tried) in &mut cells {
            let (marked, rest) = order.split_at(row.marks);
            let stream = rest.iter().zip(&doubts).filter_map(|(at, doubt)| {
                let verdict = match row.change {
                    Change::Swap => after[*at].as_ref()?,
                    _ => before[*at].as_ref()?,
                };
                let is_taken = match row.change {
                    Change::Nothing | Change::Swap => true,
                    Change::Harder => harder[*at],
                    Change::Doubted => {
                        verdict.members.iter().any(|m| !m.backs) || *doubt < UNDOUBTED
                    }
                };
                is_taken.then_some(verdict)
            });
            let marked: Vec<&Mark> = marked
                .iter()
                .filter_map(|at| before[*at].as_ref())
                .collect();
            let stream: Vec<&Mark> = stream.take(AFTER).collect();
            tried.split(row.promise, &marked, &stream);
        }
    }
    Ok(Drifts {
        members: names.clone(),
        questions: usable.len(),
        splits: trial.splits,
        seed: trial.seed,
        swap: (names[best].clone(), all.members[weakest].clone()),
        rows: cells
            .into_iter()
            .map(|(row, tried)| tried.row(row))
            .collect(),
    })
}

/// Returns the columns of the members, if the promises of the trial are possible.
fn columns(all: &Replay, trial: &DriftTrial) -> Result<Vec<usize>, ReadError> {
    if let Some(share) = trial.promises.iter().find(|s| Promise::of(**s).is_none()) {
        let what = format!("{share} cannot be promised");
        return Err(fail(what, "give a share above 0 and below 1"));
    }
    let place = |name: &String| all.members.iter().position(|m| m == name);
    let columns: Option<Vec<usize>> = match trial.members.is_empty() {
        true => Some((0..all.members.len()).collect()),
        false => trial.members.iter().map(place).collect(),
    };
    columns
        .filter(|columns| !columns.is_empty())
        .ok_or_else(|| {
            fail(
                "a member is not in the file".into(),
                "choose members of the file",
            )
        })
}

/// Returns a row for each promise, number of marks and change, with nothing tried yet.
fn cells(trial: &DriftTrial) -> Vec<(Noticed, Tried)> {
    let mut cells = Vec::new();
    for promise in &trial.promises {
        for marks in &trial.marks {
            cells.extend(
                Change::ALL.map(|change| (row(*promise, *marks, change), Tried::default())),
            );
        }
    }
    cells
}

fn row(promise: f64, marks: usize, change: Change) -> Noticed {
    Noticed {
        promise,
        marks,
        change,
        promised: 0,
        covered: 0.0,
        wrong: None,
        gone: 0,
        withdrawn: 0,
        delay: None,
        looked: 0.0,
    }
}

/// Counts for one cell over all splits.
#[derive(Debug, Default)]
struct Tried {
    promised: usize,
    covered: usize,
    wrong: usize,
    looked: usize,
    withdrawn: usize,
    delays: Vec<usize>,
}

impl Tried {
    /// Adds a split: marks before the change, and after it.
    fn split(&mut self, promise: f64, marked: &[&Mark], stream: &[&Mark]) {
        let timed = |(at, mark): (i64, &&Mark)| Mark {
            at: Timestamp::from_second(at).unwrap_or(Timestamp::UNIX_EPOCH),
            ..(*mark).clone()
        };
        let mut given = Evidence::of((0i64..).zip(marked).map(timed).collect());
        let Some(sample) = marked.first() else {
            return;
        };
        // An unmarked verdict supported by all members.
        let mut surest = (*sample).clone();
        surest.message = 0;
        surest.members.iter_mut().for_each(|m| m.backs = true);
        let own = (!LEVELS.contains(&promise)).then_some(promise);
        let basis = Basis::of(&given, &surest, own);
        let is_made = |basis: &Basis| basis.right(&surest).is_some_and(|right| right >= promise);
        if !is_made(&basis) {
            return;
        }
        self.promised += 1;
        let covered = |mark: &&&Mark| basis.right(mark).is_some_and(|right| right >= promise);
        for mark in stream.iter().filter(covered) {
            self.covered += 1;
            self.wrong += usize::from(!mark.is_right());
        }
        self.looked += stream.len();
        let first = given.recent.len() as i64;
        let change = Timestamp::from_second(first).ok();
        for (step, marks) in stream.chunks(STEP).enumerate() {
            (first + (step * STEP) as i64..)
                .zip(marks)
                .for_each(|mark| given.add(timed(mark)));
            let now = Basis::of(&given, &surest, own);
            let is_withdrawn = now.withdrawn().is_some_and(|at| Some(at) >= change);
            if is_withdrawn || !is_made(&now) {
                self.delays.push(step * STEP + marks.len());
                self.withdrawn += usize::from(is_withdrawn);
                break;
            }
        }
    }

    fn row(mut self, row: Noticed) -> Noticed {
        self.delays.sort_unstable();
        let quantile = |share: f64| {
            let at = (self.delays.len() as f64 * share).ceil() as usize;
            self.delays.get(at.saturating_sub(1)).copied()
        };
        Noticed {
            promised: self.promised,
            covered: self.covered as f64 / self.promised.max(1) as f64,
            wrong: (self.covered > 0).then(|| self.wrong as f64 / self.covered as f64),
            gone: self.delays.len(),
            withdrawn: self.withdrawn,
            delay: quantile(0.5).zip(quantile(0.9)),
            looked: self.looked as f64 / self.promised.max(1) as f64,
            ..row
        }
    }
}

/// Returns a record with some of the members, under these names.
fn seated(all: &Replay, columns: &[usize], names: &[String]) -> Replay {
    let question = |from: &Question| {
        let mut to = Question {
            id: from.id.clone(),
            ..Question::default()
        };
        for at in columns {
            let answer = from.answers[*at].map(|key| {
                let place = to.key(&from.keys[key]);
                to.right[place] = from.right[key];
                place
            });
            to.answers.push(answer);
            to.stated.push(from.stated[*at]);
            to.cost.push(from.cost[*at]);
        }
        to
    };
    Replay {
        members: names.to_vec(),
        named: true,
        questions: all.questions.iter().map(question).collect(),
        dropped: all.dropped,
        options: all.options,
    }
}

/// Returns which questions are in the harder half: those that fewer models of the file answer correctly.
fn harder(all: &Replay) -> Vec<bool> {
    let right = |q: &Question| (0..all.members.len()).filter(|m| q.is_right(*m)).count();
    let rights: Vec<usize> = all.questions.iter().map(right).collect();
    let mut order: Vec<usize> = (0..rights.len()).collect();
    order.sort_by_key(|at| (rights[*at], *at));
    let mut hard = vec![false; rights.len()];
    order[..rights.len() / 2]
        .iter()
        .for_each(|at| hard[*at] = true);
    hard
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds three models with correlated errors, one that is right on easy questions, and one that is never right.
    /// Every second question is harder.
    fn record(n: usize) -> Replay {
        let mut chance = ChaCha12Rng::seed_from_u64(9);
        let mut question = |at: usize| {
            let is_hard = at.is_multiple_of(2);
            let right = chance.random::<f64>() < if is_hard { 0.96 } else { 1.0 };
            let mut answers = vec![Some(usize::from(!right)); 3];
            // The fourth is right on easy questions, the last one never.
            answers.push(Some(2 * usize::from(is_hard)));
            answers.push(Some(2));
            Question {
                id: at.to_string(),
                keys: vec!["a".into(), "b".into(), "c".into()],
                right: vec![true, false, false],
                answers,
                stated: vec![None; 5],
                cost: vec![None; 5],
                ..Question::default()
            }
        };
        Replay {
            members: ["x", "y", "z", "easy", "never"].map(str::to_owned).to_vec(),
            named: true,
            questions: (0..n).map(&mut question).collect(),
            ..Replay::default()
        }
    }

    fn trial(members: &[&str]) -> DriftTrial {
        DriftTrial {
            members: members.iter().map(|m| (*m).to_owned()).collect(),
            promises: vec![0.9],
            marks: vec![200],
            splits: 30,
            seed: 1,
        }
    }

    fn of(found: &Drifts, change: Change) -> &Noticed {
        let row = found.rows.iter().find(|row| row.change == change);
        row.expect("a row of each change")
    }

    #[test]
    fn a_swap_that_makes_verdicts_wrong_is_noticed_and_no_change_is_not() {
        // One member: after the swap all verdicts are wrong.
        let found = drifts(&record(1000), &trial(&["x"])).expect("a record");
        assert_eq!(found.swap, ("x".to_owned(), "never".to_owned()));
        let (still, swap) = (of(&found, Change::Nothing), of(&found, Change::Swap));
        assert!(still.promised > 10, "{still:?}");
        assert!(still.gone <= 3, "{still:?}");
        assert_eq!((swap.gone, swap.wrong), (swap.promised, Some(1.0)));
        assert!(swap.withdrawn > 0, "{swap:?}");
        let (median, most) = swap.delay.expect("a delay");
        assert!((5..=30).contains(&median) && most <= 30, "{swap:?}");
    }

    #[test]
    fn harder_questions_and_doubted_verdicts_are_what_they_are_called() {
        let all = record(1000);
        assert_eq!(harder(&all).iter().filter(|hard| **hard).count(), 500);
        let found = drifts(&all, &trial(&["x", "y", "z"])).expect("a record");
        let (still, hard) = (of(&found, Change::Nothing), of(&found, Change::Harder));
        assert!(hard.wrong > still.wrong, "{hard:?} {still:?}");
        let doubted = of(&found, Change::Doubted);
        assert!(doubted.looked > 0.0 && doubted.promised == still.promised);
    }

    #[test]
    fn members_and_shares_that_are_none_are_refused() {
        let all = record(100);
        assert!(drifts(&all, &trial(&["x", "nobody"])).is_err());
        assert!(drifts(&all, &trial(&["x"])).is_err(), "200 marks of 100");
        let nan = DriftTrial {
            promises: vec![f64::NAN],
            marks: vec![10],
            ..trial(&["x"])
        };
        assert!(drifts(&all, &nan).is_err());
    }
}
