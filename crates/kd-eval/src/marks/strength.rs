//! The shares of right answers of members, learned from marks.
//!
//! Input: sums of marks, a kind of question, the models of a council. Output: a [`Strength`] for each. A model's marks on this
//! kind count in full. Its marks on other kinds, marks of its other versions, and those of all models together act as a
//! prior worth [`PULL`] questions: strong while there are few marks, negligible once there are many.

use super::evidence::{Sum, Sums};
use super::mark::family;
use crate::auto::Strength;

/// Maximum weight of the prior, in questions.
pub const PULL: f64 = 8.0;
/// The weight of a mark of another version of the model.
const OTHER_VERSION: f64 = 0.5;
/// The assumed share of right answers of an unknown model, and the number of questions this counts as.
const UNKNOWN: (f64, f64) = (0.6, 2.0);

/// Right answers and questions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    right: f64,
    n: f64,
}

impl Tally {
    /// Adds right answers and questions with a weight.
    fn add(&mut self, sum: Sum, weight: f64) {
        self.right += sum.right as f64 * weight;
        self.n += sum.questions as f64 * weight;
    }

    /// Returns the share of right answers, shrunk towards `to` with the weight of `by` questions.
    fn pulled(self, to: f64, by: f64) -> f64 {
        (self.right + to * by) / (self.n + by)
    }
}

/// Returns the strengths of these models on this kind of question; all `None` if no mark is informative.
pub fn strengths(sums: &Sums, kind: &str, models: &[&str]) -> Vec<Option<Strength>> {
    let mut everybody = Tally::default();
    let mut of = vec![[Tally::default(); 2]; models.len()];
    let families: Vec<&str> = models.iter().map(|model| family(model)).collect();
    for (other, name, sum) in sums.iter() {
        let is_here = other == kind;
        if is_here {
            everybody.add(sum, 1.0);
        }
        for ((model, its), [own, wider]) in models.iter().zip(&families).zip(&mut of) {
            if name == *model {
                match is_here {
                    true => own.add(sum, 1.0),
                    false => wider.add(sum, 1.0),
                }
            } else if family(name) == *its {
                wider.add(sum, OTHER_VERSION);
            }
        }
    }
    let nothing = everybody.n == 0.0 && of.iter().flatten().all(|tally| tally.n == 0.0);
    if nothing {
        return vec![None; models.len()];
    }
    let mean = everybody.pulled(UNKNOWN.0, UNKNOWN.1);
    let strength = |[own, wider]: &[Tally; 2]| {
        let prior = wider.pulled(mean, UNKNOWN.1);
        let pull = (wider.n + UNKNOWN.1).min(PULL);
        Some(Strength {
            right: own.pulled(prior, pull),
            questions: (own.n + pull).floor() as u64,
        })
    };
    of.iter().map(strength).collect()
}

#[cfg(test)]
mod tests {
    use super::super::mark::{By, Mark, Member, VERSION};
    use super::*;
    use jiff::Timestamp;

    fn mark(kind: &str, members: &[(&str, bool)]) -> Mark {
        let member = |(model, backs): &(&str, bool)| Member {
            name: (*model).into(),
            model: (*model).into(),
            key: None,
            backs: *backs,
            confidence: None,
        };
        Mark {
            v: VERSION,
            project: "p".into(),
            thread: "t".into(),
            message: 1,
            at: Timestamp::UNIX_EPOCH,
            by: By::User,
            kind: kind.into(),
            protocol: "council".into(),
            members: members.iter().map(member).collect(),
            winner: None,
            credit: 1.0,
            answer: None,
            calls: 0,
            usd: 0.0,
        }
    }

    fn marks(kind: &str, n: usize, members: &[(&str, bool)]) -> Vec<Mark> {
        vec![mark(kind, members); n]
    }

    fn right(marks: &[Mark], kind: &str, model: &str) -> f64 {
        strengths(&Sums::of(marks), kind, &[model])[0]
            .expect("known")
            .right
    }

    #[test]
    fn many_marks_outweigh_what_is_known_elsewhere() {
        let mut all = marks("number", 300, &[("m", true)]);
        all.extend(marks("number", 100, &[("m", false)]));
        all.extend(marks("choice", 500, &[("m", false)]));
        assert!((right(&all, "number", "m") - 0.75).abs() < 0.02);
        assert!(right(&all, "choice", "m") < 0.05);
        let few = marks("number", 2, &[("m", true)]);
        let both: Vec<Mark> = few
            .into_iter()
            .chain(marks("choice", 50, &[("m", false)]))
            .collect();
        let pulled = right(&both, "number", "m");
        assert!((0.1..0.5).contains(&pulled), "{pulled}");
    }

    #[test]
    fn a_new_version_starts_near_the_old_one_and_knows_that_it_is_another() {
        let old = marks("number", 100, &[("m-20250101", true), ("n", false)]);
        let known = strengths(&Sums::of(&old), "number", &["m-20260101", "other", "n"]);
        let known: Vec<Strength> = known.into_iter().flatten().collect();
        let [new, stranger, weak] = known[..] else {
            panic!("{known:?}");
        };
        assert!(new.right > 0.9 && new.questions <= PULL as u64, "{new:?}");
        assert!(
            (stranger.right - 0.5).abs() < 0.05 && stranger.questions <= 2,
            "{stranger:?}"
        );
        assert!(weak.right < 0.05 && weak.questions >= 100, "{weak:?}");
    }

    #[test]
    fn marks_that_tell_nothing_leave_everybody_unknown() {
        assert_eq!(
            strengths(&Sums::default(), "number", &["m", "n"]),
            [None, None]
        );
        let mut wrong = mark("number", &[("m", false)]);
        wrong.credit = 0.0;
        assert_eq!(strengths(&Sums::of(&[wrong]), "number", &["m"]), [None]);
    }
}
