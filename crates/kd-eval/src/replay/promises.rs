//! Whether promises are kept: they are learned from marks of some recorded questions and applied to the others.
//!
//! Promises come from [`Basis`], as in `kd deliberate`. The verdict of a question is the plurality, with ties broken at
//! random. A mark tells whether the verdict was right, not what the right answer was.

use super::{ReadError, Replay};
use crate::calibration::agreement;
use crate::calibration::{Forecast, calibration};
use crate::deciders::{Halves, Setting, Way};
use crate::intervals::{Interval, wilson};
use crate::marks::{Basis, By, Evidence, LEVELS, Mark, Member, Promise, VERSION};
use jiff::Timestamp;
use rand::rngs::ChaCha12Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use serde::Serialize;

/// The setup of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The promised shares of right verdicts, each above 0 and below 1.
    pub promises: Vec<f64>,
    /// Numbers of marks to learn from.
    pub marks: Vec<usize>,
    /// Number of random splits of the questions into marked and unmarked ones.
    pub splits: usize,
    /// The seed of splits and ties.
    pub seed: u64,
}

/// The results of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Promises {
    /// The members.
    pub members: Vec<String>,
    /// Number of questions with a verdict.
    pub questions: usize,
    /// Number of splits.
    pub splits: usize,
    /// The seed of splits and ties.
    pub seed: u64,
    /// The share of verdicts that are right.
    pub right: f64,
    /// The risk of each promise.
    pub risk: f64,
    /// One row for each promise and number of marks.
    pub rows: Vec<Kept>,
    /// One row for each number of marks.
    pub calibration: Vec<Calibrated>,
}

/// Expected calibration errors on the unmarked questions, ten bins, means over splits: 0 is best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibrated {
    /// Number of marks used for learning.
    pub marks: usize,
    /// The error of the agreement, taken as a probability.
    pub agreement: f64,
    /// The error of the probability derived from the marks; `None` if there are too few.
    pub probability: Option<f64>,
    /// The error that these probabilities would show if they were exact: above 0, because the number of questions is
    /// finite.
    pub ideal: Option<f64>,
}

/// Sums of errors over splits.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    agreement: f64,
    probability: f64,
    ideal: f64,
    told: usize,
}

impl Errors {
    /// Adds the unmarked questions of a split.
    fn add(&mut self, basis: &Basis, rest: &[&Mark], chance: &mut ChaCha12Rng) {
        let ece = |forecasts: &[Forecast]| calibration(forecasts).map_or(0.0, |found| found.ece);
        let agreed = |mark: &&Mark| {
            let backers = mark.members.iter().filter(|m| m.backs).count() as u64;
            let voters = mark.members.iter().filter(|m| m.key.is_some()).count() as u64;
            (agreement(backers, voters), mark.is_right())
        };
        self.agreement += ece(&rest.iter().map(agreed).collect::<Vec<_>>());
        let told = |mark: &&Mark| Some((basis.probability(mark)?, mark.is_right()));
        if let Some(told) = rest.iter().map(told).collect::<Option<Vec<Forecast>>>() {
            self.told += 1;
            self.probability += ece(&told);
            let drawn = |(p, _): &Forecast| (*p, chance.random::<f64>() < *p);
            self.ideal += ece(&told.iter().map(drawn).collect::<Vec<_>>());
        }
    }

    fn row(self, marks: usize, splits: usize) -> Calibrated {
        let told = (self.told > 0).then_some(self.told as f64);
        Calibrated {
            marks,
            agreement: self.agreement / splits.max(1) as f64,
            probability: told.map(|n| self.probability / n),
            ideal: told.map(|n| self.ideal / n),
        }
    }
}

/// The results of one promise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// The promised share of right verdicts.
    pub promise: f64,
    /// Number of marks used for learning.
    pub marks: usize,
    /// Number of splits in which more of the answered questions were wrong than promised.
    pub broken: usize,
    /// Wilson's 95 % interval of their share of all splits.
    pub broken_interval: Interval,
    /// Number of splits in which no question was answered.
    pub refused: usize,
    /// The mean share of questions answered, over all splits.
    pub answered: f64,
    /// The share of wrong verdicts among all answered ones; `None` if none was.
    pub wrong: Option<f64>,
    /// The largest share that could be answered by someone who knows which verdicts are right.
    pub possible: f64,
}

/// Counts of one promise over all splits.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    broken: usize,
    refused: usize,
    answered: usize,
    wrong: usize,
    shares: f64,
    possible: f64,
}

/// Learns promises on some questions and applies them to the others, once per split.
///
/// # Errors
/// A record without named members, an invalid share, or not more questions than marks.
pub fn promises(replay: &Replay, trial: &Trial) -> Result<Promises, ReadError> {
    let all = checked(replay, trial)?;
    let mut chance = ChaCha12Rng::seed_from_u64(trial.seed);
    // A separate stream: the same seed is also used for ties and councils.
    chance.set_stream(u64::from_be_bytes(*b"promises"));
    let mut order: Vec<usize> = (0..all.len()).collect();
    let cells: Vec<(f64, usize)> = (trial.promises.iter())
        .flat_map(|promise| trial.marks.iter().map(|marks| (*promise, *marks)))
        .collect();
    let mut counts = vec![Count::default(); cells.len()];
    let mut errors = vec![Errors::default(); trial.marks.len()];
    let mut outcomes = ChaCha12Rng::seed_from_u64(trial.seed);
    outcomes.set_stream(u64::from_be_bytes(*b"outcomes"));
    for _ in 0..trial.splits {
        order.shuffle(&mut chance);
        for (marks, errors) in trial.marks.iter().zip(&mut errors) {
            let (marked, rest) = order.split_at(*marks);
            let given = (0i64..)
                .zip(marked)
                .map(|(at, place)| Mark {
                    at: Timestamp::from_second(at).unwrap_or(Timestamp::UNIX_EPOCH),
                    ..all[*place].clone()
                })
                .collect();
            let given = Evidence::of(given);
            // Marks of the sample itself would be excluded.
            let sample = &all[rest.first().copied().unwrap_or(0)];
            let usual = Basis::of(&given, sample, None);
            let unmarked: Vec<&Mark> = rest.iter().map(|at| &all[*at]).collect();
            errors.add(&usual, &unmarked, &mut outcomes);
            let promised: Vec<Option<f64>> = rest.iter().map(|at| usual.right(&all[*at])).collect();
            for ((promise, n), count) in cells.iter().zip(&mut counts) {
                if n != marks {
                    continue;
                }
                // A share that is not one of the levels adds a test to the sequence.
                let own = (!LEVELS.contains(promise))
                    .then(|| Basis::of(&given, sample, Some(*promise)))
                    .map(|basis| rest.iter().map(|at| basis.right(&all[*at])).collect());
                let own: &Vec<Option<f64>> = own.as_ref().unwrap_or(&promised);
                count.add(*promise, rest.iter().map(|at| all[*at].is_right()).zip(own));
            }
        }
    }
    let many = trial.splits.max(1) as f64;
    let row = |((promise, marks), count): (&(f64, usize), &Count)| Kept {
        promise: *promise,
        marks: *marks,
        broken: count.broken,
        broken_interval: wilson(count.broken as f64, trial.splits as u64),
        refused: count.refused,
        answered: count.shares / many,
        wrong: (count.answered > 0).then(|| count.wrong as f64 / count.answered as f64),
        possible: count.possible / many,
    };
    let right = all.iter().filter(|mark| mark.is_right()).count();
    Ok(Promises {
        members: replay.members.clone(),
        questions: all.len(),
        splits: trial.splits,
        seed: trial.seed,
        right: right as f64 / all.len() as f64,
        risk: Promise::of(LEVELS[0]).map_or(0.0, |promise| promise.risk),
        rows: cells.iter().zip(&counts).map(row).collect(),
        calibration: (trial.marks.iter().zip(errors))
            .map(|(marks, errors)| errors.row(*marks, trial.splits))
            .collect(),
    })
}

/// Returns the verdicts of the questions, if the trial is possible with them: at least one, and more than its marks.
fn checked(replay: &Replay, trial: &Trial) -> Result<Vec<Mark>, ReadError> {
    if !replay.named {
        return Err(fail(
            "promises need named members".into(),
            "give a CSV table of answers",
        ));
    }
    if let Some(share) = trial.promises.iter().find(|s| Promise::of(**s).is_none()) {
        return Err(fail(
            format!("{share} cannot be promised"),
            "give a share above 0 and below 1",
        ));
    }
    let all: Vec<Mark> = verdicts(replay, trial.seed).into_iter().flatten().collect();
    if all.is_empty() {
        return Err(fail(
            "no question has an answer".into(),
            "choose other members",
        ));
    }
    if let Some(n) = trial.marks.iter().find(|n| **n >= all.len()) {
        return Err(fail(
            format!(
                "{} questions have a verdict; {n} marks leave none to test",
                all.len()
            ),
            "choose fewer marks",
        ));
    }
    Ok(all)
}

impl Count {
    /// Adds a split: for each question, whether its verdict is right, and the promise for it.
    fn add<'a>(&mut self, promise: f64, rest: impl Iterator<Item = (bool, &'a Option<f64>)>) {
        let (mut all, mut right, mut answered, mut wrong) = (0usize, 0usize, 0usize, 0usize);
        for (is_right, promised) in rest {
            all += 1;
            right += usize::from(is_right);
            if promised.is_some_and(|share| share >= promise) {
                answered += 1;
                wrong += usize::from(!is_right);
            }
        }
        // No division, so that a share exactly as promised counts as kept.
        let allowed = (1.0 - promise) * answered as f64 + 1e-9;
        self.broken += usize::from(wrong as f64 > allowed);
        self.refused += usize::from(answered == 0);
        self.answered += answered;
        self.wrong += wrong;
        self.shares += answered as f64 / all.max(1) as f64;
        self.possible += (right as f64 / promise / all.max(1) as f64).min(1.0);
    }
}

pub(super) fn fail(what: String, hint: &str) -> ReadError {
    ReadError {
        line: 1,
        what,
        hint: hint.into(),
    }
}

/// Returns the verdicts of all questions with answers, marked right or wrong.
pub fn marked(replay: &Replay, seed: u64) -> Vec<Mark> {
    verdicts(replay, seed).into_iter().flatten().collect()
}

/// Returns the verdict of each question, marked right or wrong; `None` without answers.
pub(super) fn verdicts(replay: &Replay, seed: u64) -> Vec<Option<Mark>> {
    let Some(way) = Way::find("plurality") else {
        return vec![None; replay.questions.len()];
    };
    let halves = Halves::drawn(replay.questions.len(), seed);
    let decided = way.decide(&Setting {
        replay,
        options: replay.options.unwrap_or(2),
        seed,
        halves: &halves,
    });
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    chance.set_stream(u64::from_be_bytes(*b"___draws"));
    let numbered = (1u32..).zip(&replay.questions).zip(&decided);
    numbered
        .map(|((message, question), decision)| {
            let winner = *decision.winners.choose(&mut chance)?;
            let member = |(name, answer): (&String, &Option<usize>)| Member {
                name: name.clone(),
                model: name.clone(),
                key: answer.and_then(|key| question.keys.get(key).cloned()),
                backs: *answer == Some(winner),
                confidence: None,
            };
            let members = replay.members.iter().zip(&question.answers);
            Some(Mark {
                v: VERSION,
                project: "replay".into(),
                thread: "replay".into(),
                message,
                at: Timestamp::UNIX_EPOCH,
                by: By::Gold,
                kind: "recorded".into(),
                protocol: "vote".into(),
                members: members.map(member).collect(),
                unasked: Vec::new(),
                stopping: None,
                winner: question.keys.get(winner).cloned(),
                credit: f64::from(u8::from(question.share_right(&[winner]) == 1.0)),
                answer: None,
                calls: replay.members.len() as u64,
                usd: 0.0,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Question;
    use super::*;

    /// Builds three members whose agreement indicates how likely they are right: all three agree on half of the
    /// questions.
    fn replay(sure: f64, split: f64) -> Replay {
        let mut chance = ChaCha12Rng::seed_from_u64(3);
        let question = |at: usize| {
            let is_sure = at.is_multiple_of(2);
            let right = chance.random::<f64>() < if is_sure { sure } else { split };
            Question {
                id: at.to_string(),
                keys: vec!["a".into(), "b".into()],
                right: vec![right, !right],
                answers: vec![Some(0), Some(0), Some(usize::from(!is_sure))],
                stated: vec![None; 3],
                cost: vec![None; 3],
                ..Question::default()
            }
        };
        Replay {
            members: ["x", "y", "z"].map(str::to_owned).to_vec(),
            named: true,
            questions: (0..2000).map(question).collect(),
            ..Replay::default()
        }
    }

    fn trial(promise: f64, marks: usize) -> Trial {
        Trial {
            promises: vec![promise],
            marks: vec![marks],
            splits: 40,
            seed: 1,
        }
    }

    fn row(replay: &Replay, promise: f64, marks: usize) -> Kept {
        let found = promises(replay, &trial(promise, marks)).expect("a record");
        found.rows[0].clone()
    }

    #[test]
    fn sure_verdicts_are_answered_and_the_promise_is_kept() {
        let replay = replay(0.98, 0.6);
        for promise in [0.9, 0.85] {
            let kept = row(&replay, promise, 400);
            assert!((0.45..0.6).contains(&kept.answered), "{kept:?}");
            assert!(kept.wrong < Some(0.05), "{kept:?}");
            assert!(kept.broken <= 4 && kept.refused <= 4, "{kept:?}");
            assert!((0.85..0.95).contains(&kept.possible), "{kept:?}");
        }
    }

    #[test]
    fn where_agreement_tells_nothing_nothing_is_answered() {
        let kept = row(&replay(0.6, 0.6), 0.9, 400);
        assert_eq!(
            (kept.refused, kept.broken, kept.wrong),
            (40, 0, None),
            "{kept:?}"
        );
        assert_eq!(kept.answered, 0.0);
    }

    #[test]
    fn few_marks_answer_less() {
        let replay = replay(0.98, 0.6);
        let [few, many] = [50, 400].map(|marks| row(&replay, 0.9, marks).answered);
        assert!(few < many, "{few} {many}");
        let both = Trial {
            marks: vec![50, 400],
            ..trial(0.9, 50)
        };
        let found = promises(&replay, &both).expect("a record");
        assert_eq!(
            found.rows.iter().map(|r| r.answered).collect::<Vec<_>>(),
            [few, many],
            "rows do not depend on each other"
        );
    }

    #[test]
    fn what_marks_tell_is_calibrated_where_agreement_is_not() {
        // Agreement suggests .93 and .63; the true shares are .8 and .3.
        let found = promises(&replay(0.8, 0.3), &trial(0.9, 400)).expect("a record");
        let [told] = &found.calibration[..] else {
            panic!("{found:?}");
        };
        assert!(told.agreement > 0.15, "{told:?}");
        assert!(told.probability.is_some_and(|ece| ece < 0.06), "{told:?}");
        assert!(told.ideal < told.probability, "{told:?}");
        let few = promises(&replay(0.8, 0.3), &trial(0.9, 60)).expect("a record");
        assert_eq!(few.calibration[0].probability, None);
    }

    #[test]
    fn a_split_counts_what_was_promised_and_what_came() {
        let mut count = Count::default();
        let rest = [
            (true, &Some(0.9)),
            (true, &Some(0.95)),
            (false, &Some(0.9)),
            (false, &Some(0.8)),
            (false, &None),
        ];
        count.add(0.9, rest.into_iter());
        assert_eq!((count.broken, count.refused), (1, 0));
        assert_eq!((count.answered, count.wrong), (3, 1));
        assert!((count.shares - 0.6).abs() < 1e-12);
        assert!((count.possible - 2.0 / 5.0 / 0.9).abs() < 1e-12);
        // Exactly as promised.
        let mut even = Count::default();
        let some = Some(0.8);
        even.add(0.8, (0..5).map(|at| (at != 0, &some)));
        assert_eq!(even.broken, 0);
        even.add(0.99, (0..5).map(|at| (at != 0, &some)));
        assert_eq!((even.broken, even.refused), (0, 1));
    }

    #[test]
    fn what_cannot_be_tried_is_refused() {
        let mut replay = replay(0.9, 0.6);
        for wrong in [trial(0.9, 2000), trial(1.0, 100), trial(f64::NAN, 100)] {
            assert!(promises(&replay, &wrong).is_err(), "{wrong:?}");
        }
        replay.questions.clear();
        assert!(promises(&replay, &trial(0.9, 10)).is_err());
        replay.named = false;
        assert!(promises(&replay, &trial(0.9, 10)).is_err());
    }
}
