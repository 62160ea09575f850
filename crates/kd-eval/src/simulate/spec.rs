//! The specification of a simulation: questions, members and protocols, as JSON.

use serde::{Deserialize, Serialize};

/// A simulation. Unknown keys are errors: a misspelt key would otherwise be ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// Number of questions.
    pub questions: u32,
    /// Number of answers per question, one of them right.
    pub options: u32,
    /// The correlation of two members' errors, 0 to below 1.
    pub correlation: f64,
    /// Probability that a wrong member gives the common wrong answer rather than a random one.
    pub lure: f64,
    /// The seed of the whole simulation.
    pub seed: u64,
    /// Rounds of discussion, for protocols with rounds.
    pub rounds: u32,
    /// The protocols, by name; all if empty.
    pub protocols: Vec<String>,
    /// The members.
    pub members: Vec<Script>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            questions: 10_000,
            options: 4,
            correlation: 0.0,
            lure: 0.4,
            seed: 1,
            rounds: 1,
            protocols: Vec::new(),
            members: Vec::new(),
        }
    }
}

/// The behavior of a scripted member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Its name; a number is appended if there are several.
    pub name: String,
    /// Number of members of this kind.
    pub count: u32,
    /// Probability that its first answer is right.
    pub accuracy: f64,
    /// Probability that it adopts the majority answer of the others, right or wrong.
    pub conformity: f64,
    /// Probability that it adopts the right answer when it sees it, and can say what was wrong with its own.
    pub skill: f64,
    /// Probability that it keeps its answer, whatever it sees.
    pub obstinacy: f64,
    /// Probability that a conforming reader who sees names follows this member instead of the majority.
    pub persuasion: f64,
    /// Always gives the common wrong answer and never changes it.
    pub adversary: bool,
    /// Probability that it gives no answer.
    pub failure: f64,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            name: "member".into(),
            count: 1,
            accuracy: 0.7,
            conformity: 0.0,
            skill: 0.0,
            obstinacy: 0.0,
            persuasion: 0.0,
            adversary: false,
            failure: 0.0,
        }
    }
}

impl Spec {
    /// Returns the members one by one, each with a unique name.
    pub fn seats(&self) -> Vec<Script> {
        let mut seats: Vec<Script> = Vec::new();
        for m in &self.members {
            for _ in 0..m.count {
                seats.push(Script {
                    count: 1,
                    ..m.clone()
                });
            }
        }
        let names: Vec<String> = seats.iter().map(|s| s.name.clone()).collect();
        for (at, seat) in seats.iter_mut().enumerate() {
            if names.iter().filter(|n| **n == names[at]).count() > 1 {
                let which = names[..=at].iter().filter(|n| **n == names[at]).count();
                seat.name = format!("{} {which}", names[at]);
            }
        }
        seats
    }
}
