//! The shares of right answers of members, learned from marks.
//!
//! Input: sums of marks, a kind of question, the models of a council. Output: a [`Strength`] for each. A model's marks on this
//! kind count in full. Its marks on other kinds, marks of its other versions, what is published about its family, and the
//! marks of all models together act as a prior worth [`PULL`] questions: strong while there are few marks, negligible once
//! there are many. So a strength that comes from elsewhere is never more certain than one from that many marks.

use super::evidence::{Evidence, Sum};
use super::mark::family;
use super::published::{Found, UNKNOWN_RIGHT};
use crate::auto::Strength;

/// Maximum weight of the prior, in questions.
pub const PULL: f64 = 8.0;
/// The weight of a mark of another version of the model.
const OTHER_VERSION: f64 = 0.5;
/// The weight of a published strength on this kind of question, and on other kinds, in questions.
const PUBLISHED: [f64; 2] = [8.0, 4.0];
/// The number of marks on a kind from which the prior has less than a tenth of the weight, and is not mentioned.
const ENOUGH_HERE: u64 = 72;
/// The number of marks of a member on a kind of question from which it may decide questions of this kind alone.
const MEASURED: u64 = 40;
/// The number of questions that the assumed share of an unknown model counts as.
const UNKNOWN_COUNTS: f64 = 2.0;

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

/// Where the strength of a member comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// Number of marks of the model on this kind of question.
    pub here: u64,
    /// Number of its marks on other kinds, and of marks of its other versions.
    pub wider: u64,
    /// Published results of its family.
    pub published: Option<Found>,
}

impl Source {
    /// Returns whether there are enough marks of the model on this kind of question to compare it with others by them.
    pub fn is_measured(&self) -> bool {
        self.here >= MEASURED
    }

    /// Describes it in a few words.
    pub fn words(&self) -> String {
        let marks = |n: u64| if n == 1 { "mark" } else { "marks" };
        let mut parts = Vec::new();
        if self.here > 0 {
            parts.push(format!("{} {}", self.here, marks(self.here)));
        }
        // Many marks leave nothing to say for what is known elsewhere.
        if self.here < ENOUGH_HERE {
            if self.wider > 0 {
                let n = self.wider;
                parts.push(format!("{n} {} of other kinds or versions", marks(n)));
            }
            if let Some(found) = &self.published {
                parts.push(format!("published: {}", found.sets));
            }
        }
        match parts.is_empty() {
            true => "unknown; as members are on average".to_owned(),
            false => parts.join(" and "),
        }
    }
}

/// The evidence about a model.
#[derive(Clone, Debug, Default)]
struct Known {
    own: Tally,
    wider: Tally,
    source: Source,
}

/// Returns the strengths of these models on this kind of question; all `None` if no mark is informative and nothing is
/// published about one of them.
pub fn strengths(evidence: &Evidence, kind: &str, models: &[&str]) -> Vec<Option<Strength>> {
    let (everybody, of) = known(evidence, kind, models);
    let is_marked = everybody.n > 0.0 || of.iter().any(|of| of.own.n + of.wider.n > 0.0);
    let is_published = of.iter().all(|of| of.source.published.is_some());
    if !is_marked && (!is_published || models.is_empty()) {
        return vec![None; models.len()];
    }
    let mean = everybody.pulled(UNKNOWN_RIGHT, UNKNOWN_COUNTS);
    let strength = |known: &Known| {
        let mut wider = known.wider;
        if let Some(found) = &known.source.published {
            let weight = PUBLISHED[usize::from(!found.is_same_kind)];
            wider.right += found.right_where_average_is(mean) * weight;
            wider.n += weight;
        }
        let prior = wider.pulled(mean, UNKNOWN_COUNTS);
        let pull = (wider.n + UNKNOWN_COUNTS).min(PULL);
        Some(Strength {
            right: known.own.pulled(prior, pull),
            questions: (known.own.n + pull).floor() as u64,
        })
    };
    of.iter().map(strength).collect()
}

/// Returns where the strengths of these models come from.
pub fn sources(evidence: &Evidence, kind: &str, models: &[&str]) -> Vec<Source> {
    let (_, of) = known(evidence, kind, models);
    of.into_iter().map(|known| known.source).collect()
}

/// Returns the sum of all models on this kind, and the evidence about each of these.
fn known(evidence: &Evidence, kind: &str, models: &[&str]) -> (Tally, Vec<Known>) {
    let mut everybody = Tally::default();
    let mut of = vec![Known::default(); models.len()];
    let families: Vec<&str> = models.iter().map(|model| family(model)).collect();
    for (other, name, sum) in evidence.sums.iter() {
        let is_here = other == kind;
        if is_here {
            everybody.add(sum, 1.0);
        }
        for ((model, its), known) in models.iter().zip(&families).zip(&mut of) {
            if name == *model && is_here {
                known.own.add(sum, 1.0);
                known.source.here += sum.questions;
            } else if name == *model {
                known.wider.add(sum, 1.0);
                known.source.wider += sum.questions;
            } else if family(name) == *its {
                known.wider.add(sum, OTHER_VERSION);
                known.source.wider += sum.questions;
            }
        }
    }
    for (model, known) in models.iter().zip(&mut of) {
        known.source.published = evidence.published.find(model, kind);
    }
    (everybody, of)
}

#[cfg(test)]
mod tests {
    use super::super::mark::{By, Mark, Member, VERSION};
    use super::super::published::Published;
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
            unasked: Vec::new(),
            stopping: None,
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
        strengths(&Evidence::of(marks.to_vec()), kind, &[model])[0]
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
        let known = strengths(&Evidence::of(old), "number", &["m-20260101", "other", "n"]);
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
            strengths(&Evidence::default(), "number", &["m", "n"]),
            [None, None]
        );
        let mut wrong = mark("number", &[("m", false)]);
        wrong.credit = 0.0;
        assert_eq!(
            strengths(&Evidence::of(vec![wrong]), "number", &["m"]),
            [None]
        );
    }

    /// A strong and a weak family of the published table.
    const STRONG: &str = "openai/gpt-4o-2024-08-06";
    const WEAK: &str = "google/gemma-2-2b-it";

    #[test]
    fn a_published_strength_stands_in_for_marks_and_gives_way_to_them() {
        let published = || Evidence::default().with(Published::all());
        let of = |evidence: &Evidence, models: &[&str]| -> Vec<Strength> {
            let known = strengths(evidence, "number", models);
            known.into_iter().flatten().collect()
        };
        let known = of(&published(), &[STRONG, WEAK]);
        assert!(known[0].right > known[1].right + 0.2, "{known:?}");
        assert!(known.iter().all(|known| known.questions == PULL as u64));
        // About one of them nothing is published, and nothing is marked: then votes count alike.
        assert_eq!(of(&published(), &[STRONG, "scripted"]), []);
        // The user's marks decide: here the weak one is right, and the strong one is not.
        let marked = Evidence::of(marks("number", 200, &[(WEAK, true), (STRONG, false)]));
        let known = of(&marked.with(Published::all()), &[STRONG, WEAK]);
        assert!(known[0].right < 0.05 && known[1].right > 0.95, "{known:?}");
        let sources = sources(&published(), "number", &[STRONG]);
        assert_eq!((sources[0].here, sources[0].wider), (0, 0));
        assert_eq!(sources[0].words(), "published: GSM8K; MATH level 5");
        assert!(
            sources[0]
                .published
                .as_ref()
                .is_some_and(|found| found.sets.contains("GSM8K"))
        );
    }

    #[test]
    fn words_say_where_a_strength_comes_from() {
        let source = |here, wider| Source {
            here,
            wider,
            published: None,
        };
        assert_eq!(source(1, 0).words(), "1 mark");
        assert_eq!(
            source(12, 3).words(),
            "12 marks and 3 marks of other kinds or versions"
        );
        assert_eq!(source(300, 3).words(), "300 marks");
        assert_eq!(source(0, 0).words(), "unknown; as members are on average");
    }

    /// The interval is wide where a strength comes from other kinds, other versions or the published table.
    #[test]
    fn away_from_home_a_strength_is_uncertain() {
        let width = |evidence: &Evidence, kind: &str, model: &str| {
            let interval = strengths(evidence, kind, &[model])[0].unwrap().interval();
            interval.high - interval.low
        };
        let evidence = Evidence::of(marks("number", 200, &[("m-20250101", true)]));
        let home = width(&evidence, "number", "m-20250101");
        assert!(home < 0.06, "{home}");
        for (kind, model) in [("choice", "m-20250101"), ("number", "m-20260101")] {
            let away = width(&evidence, kind, model);
            assert!(away > 0.3, "{kind}, {model}: {away}");
        }
        let published = Evidence::default().with(Published::all());
        assert!(width(&published, "number", STRONG) > 0.4);
    }
}
