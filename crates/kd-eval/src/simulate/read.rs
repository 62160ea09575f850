//! Reads a simulation. Input: JSON. Output: a [`Spec`] in which every value is possible, or all mistakes in it.

use super::protocols::{PROTOCOLS, find};
use super::spec::Spec;

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
            if find(name).is_none() {
                let names: Vec<&str> = PROTOCOLS.iter().map(|p| p.name).collect();
                wrong.push(format!(
                    "no protocol is named `{name}`; there are {}",
                    names.join(", ")
                ));
            }
        }
        wrong
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
