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

/// Maximum members, and answers in total, of one simulation, so that it ends within an acceptable time.
const MEMBERS_MAX: usize = 1000;
const ANSWERS_MAX: u64 = 100_000_000;

impl Spec {
    /// Parses and validates a simulation.
    ///
    /// # Errors
    /// All problems, one per line.
    pub fn read(text: &str) -> Result<Self, Vec<String>> {
        let spec: Self = serde_json::from_str(text).map_err(|e| vec![e.to_string()])?;
        let wrong = spec.wrong();
        if wrong.is_empty() {
            Ok(spec)
        } else {
            Err(wrong)
        }
    }

    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut share = |path: String, x: f64, below_one: bool| {
            let fits = if below_one {
                (0.0..1.0).contains(&x)
            } else {
                (0.0..=1.0).contains(&x)
            };
            if !fits {
                let to = if below_one { "to below 1" } else { "to 1" };
                wrong.push(format!("{path} is {x}, but must be from 0 {to}"));
            }
        };
        share("correlation".into(), self.correlation, true);
        share("lure".into(), self.lure, false);
        for (at, m) in self.members.iter().enumerate() {
            for (key, x) in [
                ("accuracy", m.accuracy),
                ("conformity", m.conformity),
                ("skill", m.skill),
                ("obstinacy", m.obstinacy),
                ("persuasion", m.persuasion),
                ("failure", m.failure),
            ] {
                share(format!("members[{at}].{key}"), x, false);
            }
        }
        if self.options < 2 {
            wrong.push(format!(
                "options is {}, but a question has at least 2 answers",
                self.options
            ));
        }
        let seats: u64 = self.members.iter().map(|m| u64::from(m.count)).sum();
        if seats == 0 {
            wrong.push(
                "members is empty: list at least one, such as {\"accuracy\": 0.7, \"count\": 5}"
                    .into(),
            );
        }
        if seats > MEMBERS_MAX as u64 {
            wrong.push(format!(
                "there are {seats} members, but at most {MEMBERS_MAX} are allowed"
            ));
        }
        if self.questions == 0 {
            wrong.push("questions is 0: nothing is asked".into());
        }
        let answers = seats
            .saturating_mul(u64::from(self.questions))
            .saturating_mul(u64::from(self.rounds) + 1);
        if answers > ANSWERS_MAX {
            wrong.push(format!("{answers} answers are too many (maximum {ANSWERS_MAX}): use fewer questions or rounds"));
        }
        for name in &self.protocols {
            if super::protocols::find(name).is_none() {
                let names: Vec<&str> = super::protocols::PROTOCOLS.iter().map(|p| p.name).collect();
                wrong.push(format!(
                    "no protocol is named `{name}`; there are {}",
                    names.join(", ")
                ));
            }
        }
        wrong
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulation_is_read_and_everything_wrong_is_said_at_once() {
        let spec = Spec::read(
            r#"{"members":[{"accuracy":0.8,"count":2},{"name":"eve","adversary":true}]}"#,
        )
        .unwrap();
        let names: Vec<String> = spec.seats().into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["member 1", "member 2", "eve"]);
        let wrong = Spec::read(r#"{"options":1,"correlation":1,"questions":0,"protocols":["chat"],"members":[{"skill":2}]}"#).unwrap_err();
        assert_eq!(wrong.len(), 5, "{wrong:?}");
        assert!(
            wrong
                .iter()
                .any(|w| w.contains("members[0].skill is 2, but must be from 0 to 1"))
        );
        assert!(Spec::read("{}").unwrap_err()[0].contains("members is empty"));
        assert!(Spec::read(r#"{"member":[]}"#).unwrap_err()[0].contains("unknown field `member`"));
        assert!(
            Spec::read(r#"{"questions":4000000,"members":[{"count":900}]}"#).unwrap_err()[0]
                .contains("answers are too many")
        );
    }
}
