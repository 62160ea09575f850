//! Recorded answers: what members said to questions whose right answer is known.

mod councils;
mod drifts;
mod promises;
mod read;
mod report;

pub use councils::{Councils, Gain, councils};
pub use drifts::{Change, DriftTrial, Drifts, Noticed, drifts};
pub use promises::{Calibrated, Kept, Promises, Trial, promises};
pub use read::{Empty, ReadError, Select, Table, read_csv, read_debates};
pub use report::{
    Agreement, Council, Debate, Errors, MemberReport, Pattern, Report, Reward, RuleReport, Setup,
    report,
};

/// Answers of the same members to many questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// The members, in the order chosen. In recorded debates they are places at the table: somebody else each time.
    pub members: Vec<String>,
    /// Whether the members are the same ones on every question.
    pub named: bool,
    /// The questions, in the order of the file.
    pub questions: Vec<Question>,
    /// How many questions were left out because one of the members was never asked.
    pub dropped: usize,
    /// The number of possible answers, where the file says it.
    pub options: Option<u64>,
}

/// A question and what was answered. An answer is a place in `keys`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// What it is called.
    pub id: String,
    /// The distinct answers, in the order in which they were first given.
    pub keys: Vec<String>,
    /// Whether each of them is right.
    pub right: Vec<bool>,
    /// The last answer of each member; `None` gave none.
    pub answers: Vec<Option<usize>>,
    /// All answers of each member, round by round; empty where there was one round.
    pub trails: Vec<Vec<Option<usize>>>,
    /// How sure each member said it was, 0 to 1.
    pub stated: Vec<Option<f64>>,
    /// What each member's answer cost, in money.
    pub cost: Vec<Option<f64>>,
}

impl Question {
    /// Whether a member's last answer is right.
    pub fn is_right(&self, member: usize) -> bool {
        self.answers
            .get(member)
            .copied()
            .flatten()
            .is_some_and(|k| self.right[k])
    }

    /// The expected share of right answers in a set, one of which a lot picks.
    pub fn share_right(&self, winners: &[usize]) -> f64 {
        if winners.is_empty() {
            return 0.0;
        }
        winners.iter().filter(|k| self.right[**k]).count() as f64 / winners.len() as f64
    }

    /// The number of a key; a new one where nobody gave it before.
    fn key(&mut self, text: &str) -> usize {
        match self.keys.iter().position(|k| k == text) {
            Some(at) => at,
            None => {
                self.keys.push(text.to_owned());
                self.right.push(false);
                self.keys.len() - 1
            }
        }
    }
}

/// The SHA-256 of a text, in hexadecimal: what was replayed can be told again.
pub fn fingerprint(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}
