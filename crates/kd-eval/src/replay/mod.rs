//! Recorded answers of members to questions with known right answers.

mod councils;
mod drifts;
mod promises;
mod public;
mod read;
mod report;

pub use councils::{Behind, COMPLETE, Councils, Gain, councils};
pub use drifts::{Change, DriftTrial, Drifts, Noticed, drifts};
pub use promises::{Calibrated, Kept, Promises, Trial, marked, promises};
pub use public::{PUBLIC, Public};
pub use read::{Empty, ReadError, Select, Table, read_csv, read_debates};
pub use report::{
    Agreement, Council, Debate, Errors, MemberReport, Pattern, Report, Reward, RuleReport, Setup,
    report,
};

/// Answers of the same members to many questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replay {
    /// The members, in the chosen order. In recorded debates they are positions, held by different agents each time.
    pub members: Vec<String>,
    /// Whether the members are the same on every question.
    pub named: bool,
    /// The questions, in the order of the file.
    pub questions: Vec<Question>,
    /// Number of questions skipped because one of the members was never asked.
    pub dropped: usize,
    /// The number of possible answers, if the file states it.
    pub options: Option<u64>,
}

/// A question and its answers. An answer is an index into `keys`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// The distinct answers, in the order in which they were first given.
    pub keys: Vec<String>,
    /// Whether each of them is right.
    pub right: Vec<bool>,
    /// The last answer of each member; `None` if it gave none.
    pub answers: Vec<Option<usize>>,
    /// All answers of each member, by round; empty if there was one round.
    pub trails: Vec<Vec<Option<usize>>>,
    /// Each member's stated confidence, 0 to 1.
    pub stated: Vec<Option<f64>>,
    /// The cost of each member's answer, in money.
    pub cost: Vec<Option<f64>>,
}

impl Question {
    /// Returns whether a member's last answer is right.
    pub fn is_right(&self, member: usize) -> bool {
        self.answers
            .get(member)
            .copied()
            .flatten()
            .is_some_and(|k| self.right[k])
    }

    /// Returns the expected share of right answers if one of `winners` is picked at random.
    pub fn share_right(&self, winners: &[usize]) -> f64 {
        if winners.is_empty() {
            return 0.0;
        }
        winners.iter().filter(|k| self.right[**k]).count() as f64 / winners.len() as f64
    }

    /// Returns the index of a key, adding it if new.
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

/// Returns the SHA-256 of bytes, such as those of a replayed file, in hexadecimal digits.
pub fn fingerprint(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    crate::hex::hex(&Sha256::digest(bytes))
}
