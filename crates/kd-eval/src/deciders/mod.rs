//! Ways to decide recorded questions: one file and one row in [`DECIDERS`] each; and all rules of `kd vote`.
//!
//! Everything learned from right answers is learned on the other half of the questions ([`Halves`], drawn by the seed),
//! so no decider sees the right answers of the half that it decides.

mod auto;
mod best;
mod cascade;
mod certain;
mod dawid_skene;
mod enough;
mod halves;
mod learned;
mod lock;
mod oracle;
mod peer;
mod rounds;
mod tie_breaks;
mod vote;

use super::auto::{Auto, Known, Strength, Task};
use super::enough::{Aim, Enough, MARGIN};
use super::replay::{Question, Replay};
use super::weights::Labelled;
use crate::marks::{By, Evidence, Learned, Mark, Member, VERSION};
use jiff::Timestamp;

pub use halves::Halves;
pub(crate) use peer::codes;

/// The input of a decider.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The answers.
    pub replay: &'a Replay,
    /// Number of possible answers.
    pub options: u64,
    /// The seed of random draws and orders.
    pub seed: u64,
    /// The half of each question.
    pub halves: &'a Halves,
}

/// The decision on one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The winning answers; several if tied, none without answers.
    pub winners: Vec<usize>,
    /// The members that had to be asked; `None` for all.
    pub asked: Option<Vec<usize>>,
}

/// The data that a decider needs in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Only answers.
    Answers,
    /// The same members on every question.
    Members,
    /// Several rounds.
    Rounds,
}

/// A decider.
#[derive(Clone, Copy)]
pub struct Decider {
    /// Its name.
    pub name: &'static str,
    /// The description, for people.
    pub doc: &'static str,
    /// The origin of the rule: a publication, or this project.
    pub source: &'static str,
    /// The data that it needs in the record.
    pub needs: Needs,
    /// Decides all questions.
    pub decide: fn(&Setting<'_>) -> Vec<Decision>,
}

impl std::fmt::Debug for Decider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decider({})", self.name)
    }
}

/// All deciders other than the rules of `kd vote`.
pub const DECIDERS: &[Decider] = &[
    auto::DECIDER,
    learned::DECIDER,
    best::DECIDER,
    tie_breaks::FIRST,
    tie_breaks::BEST,
    dawid_skene::DECIDER,
    peer::DECIDER,
    cascade::DECIDER,
    certain::DECIDER,
    enough::DECIDER,
    rounds::FIRST,
    rounds::LAST,
    lock::DECIDER,
    oracle::DECIDER,
];

/// A way to decide: a row of [`DECIDERS`], or a rule of `kd vote`.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// A row of the table.
    Decider(&'static Decider),
    /// A rule of `kd vote`: votes are weighted by the odds of their voters, whose reliability is measured on the other
    /// half.
    Rule(&'static kd_vote::Rule),
}

impl Way {
    /// Returns the way with this name; case, blanks and underscores do not matter.
    pub fn find(name: &str) -> Option<Self> {
        let plain = name.to_lowercase().replace([' ', '_'], "-");
        let own = DECIDERS.iter().find(|d| d.name == plain).map(Way::Decider);
        own.or_else(|| kd_vote::find(name).map(Way::Rule))
    }

    /// Returns the nearest known name, if it is similar enough.
    pub fn nearest(name: &str) -> Option<String> {
        kd_vote::nearest(name, Self::names())
    }

    /// Iterates over all names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let own = DECIDERS.iter().map(|d| d.name);
        own.chain(kd_vote::RULES.iter().map(|r| r.name))
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Way::Decider(d) => d.name,
            Way::Rule(r) => r.name,
        }
    }

    /// Checks whether it can be used on this record.
    ///
    /// # Errors
    /// The data that the record lacks, in words.
    pub fn fits(self, replay: &Replay) -> Result<(), &'static str> {
        let rounds = replay
            .questions
            .iter()
            .any(|q| q.trails.iter().any(|t| t.len() > 1));
        match self {
            Way::Decider(d) if d.needs == Needs::Members && !replay.named => Err(
                "it needs the same members on every question, and a debate's agents are places at a table",
            ),
            Way::Decider(d) if d.needs == Needs::Rounds && !rounds => {
                Err("it needs several rounds, and this record has one")
            }
            Way::Rule(r) if matches!(r.reads, kd_vote::Reads::Scores | kd_vote::Reads::Points) => {
                Err("it counts points, and the record has one answer of each member")
            }
            Way::Rule(r) if r.reads == kd_vote::Reads::Orders => {
                Err("it needs verdicts in both orders")
            }
            Way::Rule(r) if r.details.contains(&kd_vote::Detail::Predictions) => {
                Err("it needs what members expect of each other")
            }
            Way::Rule(r)
                if r.details.contains(&kd_vote::Detail::Confidence)
                    && !replay
                        .questions
                        .iter()
                        .any(|q| q.stated.iter().any(Option::is_some)) =>
            {
                Err("it needs a column `confidence:NAME` for each member")
            }
            _ => Ok(()),
        }
    }

    /// Decides all questions.
    pub fn decide(self, setting: &Setting<'_>) -> Vec<Decision> {
        match self {
            Way::Decider(d) => (d.decide)(setting),
            Way::Rule(r) => vote::by_rule(r, setting),
        }
    }
}

impl<'a> Setting<'a> {
    /// Returns the questions from which the deciders of a half learn: the questions of the other half.
    fn taught(&self, half: usize) -> impl Iterator<Item = &'a Question> + use<'a> {
        let halves = self.halves;
        self.replay
            .questions
            .iter()
            .enumerate()
            .filter(move |(at, _)| halves.of(*at) != half)
            .map(|(_, q)| q)
    }

    /// Returns each member's strength on the training questions of a half.
    pub fn strengths(&self, half: usize) -> Vec<Strength> {
        let n = self.taught(half).count() as u64;
        (0..self.replay.members.len())
            .map(|m| {
                let hits = self.taught(half).filter(|q| q.is_right(m)).count();
                Strength {
                    right: if n == 0 { 0.5 } else { hits as f64 / n as f64 },
                    questions: n,
                }
            })
            .collect()
    }

    /// Returns weights fitted on the training questions of a half.
    pub fn learned(&self, half: usize) -> Vec<f64> {
        let rows: Vec<Labelled<'_>> = self
            .taught(half)
            .map(|q| Labelled {
                answers: &q.answers,
                right: &q.right,
            })
            .collect();
        super::weights::learned(&rows, self.replay.members.len())
    }

    /// Returns what `auto` chooses for a half.
    pub fn auto(&self, half: usize) -> Auto {
        let learned = self.marked(half);
        super::auto::auto(&Known {
            task: Task::Reasoning,
            joint: learned.joint(),
            measured: learned.is_measured(),
            silent: learned.silent,
            members: learned.strengths,
            thrifty: false,
        })
    }

    /// Returns when enough members have answered a question of a half.
    pub fn enough(&self, half: usize) -> Enough {
        let learned = self.marked(half);
        let members = self.replay.members.len();
        let taught = learned.enough(&vec![1.0; members], Aim::Margin(MARGIN), self.seed);
        taught.unwrap_or_else(|| {
            let measured = learned.is_measured();
            let known: Option<Vec<f64>> = (learned.strengths.into_iter())
                .map(|strength| strength.map(Strength::estimate))
                .collect();
            Enough::by_strength(&known.unwrap_or_else(|| vec![0.5; members]), measured)
        })
    }

    /// Returns the marks of the training questions of a half, by a user who knows the right answers.
    pub fn marks(&self, half: usize) -> Vec<Mark> {
        let members = &self.replay.members;
        let mark = |(number, question)| gold_mark(number, question, members);
        (1..).zip(self.taught(half)).map(mark).collect()
    }

    /// Returns what the training questions of a half teach if each is a mark with the right answer: the path of
    /// `kd deliberate` from marks to weights.
    fn marked(&self, half: usize) -> Learned {
        let models: Vec<&str> = self.replay.members.iter().map(String::as_str).collect();
        Learned::of(&Evidence::of(self.marks(half)), RECORDED, &models, |_| true)
    }

    /// Decides each question with the weights learned for its half.
    fn by_half<T>(
        &self,
        teach: impl Fn(usize) -> T,
        decide: impl Fn(&T, &Question) -> Decision,
    ) -> Vec<Decision> {
        let taught: Vec<T> = (0..halves::HALVES).map(teach).collect();
        let each = |(at, q): (usize, &Question)| decide(&taught[self.halves.of(at)], q);
        self.replay.questions.iter().enumerate().map(each).collect()
    }
}

/// The kind of recorded questions in marks.
pub const RECORDED: &str = "recorded";
/// An answer that no member gives: the right one is unknown, and none of the given ones.
const NONE_RIGHT: &str = "\u{0}";

/// Returns the mark of a recorded question by a user who knows the right answer: as from `kd mark --gold`. The verdict
/// is the most common answer, the first one among equals.
pub fn gold_mark(message: u32, question: &Question, members: &[String]) -> Mark {
    let winner = commonest(question.answers.iter().flatten().copied());
    let winner = winner.into_iter().min();
    let key = |answer: usize| question.keys.get(answer).cloned();
    let right = question.right.iter().position(|right| *right);
    let member = |(name, answer): (&String, &Option<usize>)| Member {
        name: name.clone(),
        model: name.clone(),
        key: answer.and_then(key),
        backs: answer.is_some() && *answer == winner,
        confidence: None,
    };
    Mark {
        v: VERSION,
        project: "replay".into(),
        thread: "replay".into(),
        message,
        at: Timestamp::UNIX_EPOCH,
        by: By::Gold,
        kind: RECORDED.into(),
        protocol: "vote".into(),
        members: members.iter().zip(&question.answers).map(member).collect(),
        unasked: Vec::new(),
        stopping: None,
        winner: winner.and_then(key).or_else(|| Some(NONE_RIGHT.into())),
        credit: f64::from(u8::from(winner.is_some() && winner == right)),
        answer: right.and_then(key).or_else(|| Some(NONE_RIGHT.into())),
        calls: members.len() as u64,
        usd: 0.0,
    }
}

impl Decision {
    /// Creates a decision for which all members were asked.
    pub fn of(winners: Vec<usize>) -> Self {
        Self {
            winners,
            asked: None,
        }
    }
}

/// Returns the answers with the most weight. Weights within a billionth of each other tie; weights that are not
/// positive count as tiny positive ones, so that an answer given only by such members still wins.
pub(crate) fn heaviest(answers: &[Option<usize>], weights: &[f64]) -> Vec<usize> {
    const LEAST: f64 = 1e-6;
    let mut sums: Vec<(usize, f64)> = Vec::new();
    for (key, weight) in answers.iter().zip(weights) {
        let Some(key) = *key else { continue };
        let weight = weight.max(LEAST);
        match sums.iter_mut().find(|(k, _)| *k == key) {
            Some((_, sum)) => *sum += weight,
            None => sums.push((key, weight)),
        }
    }
    let top = sums.iter().map(|s| s.1).fold(0.0, f64::max);
    sums.iter()
        .filter(|(_, s)| top - s < 1e-9)
        .map(|(k, _)| *k)
        .collect()
}

/// Returns the most common answers.
pub(crate) fn commonest(answers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut counts: Vec<(usize, u32)> = Vec::new();
    for key in answers {
        match counts.iter_mut().find(|(k, _)| *k == key) {
            Some((_, n)) => *n += 1,
            None => counts.push((key, 1)),
        }
    }
    let top = counts.iter().map(|c| c.1).max();
    counts
        .iter()
        .filter(|(_, n)| Some(*n) == top)
        .map(|(k, _)| *k)
        .collect()
}

/// Returns the strongest member, the first one among equals.
pub(crate) fn strongest(strengths: &[Strength]) -> usize {
    (0..strengths.len())
        .max_by(|a, b| {
            strengths[*a]
                .right
                .total_cmp(&strengths[*b].right)
                .then(b.cmp(a))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod laws;
