//! How strong models are according to published evaluations: a table in this crate, for members without marks.
//!
//! The table has one row for each family of models and kind of question: the share of right answers that a member of
//! the family would reach on questions on which the average model of the table reaches [`UNKNOWN_RIGHT`]. Sets differ
//! in difficulty and in the models that were asked, so strengths and difficulties are fitted together: the logarithm of
//! a model's odds is the sum of its strength and of the ease of the set ([`Published::derive`]).

use super::mark::family;
use crate::replay::{Public, Table};

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The assumed share of right answers of an unknown model.
pub const UNKNOWN_RIGHT: f64 = 0.6;
/// The table, as derived by `cargo test -p kd-eval --test published`.
const TABLE: &str = include_str!("published.csv");
/// Steps of the fit; it converges in far fewer.
const STEPS: usize = 200;

/// Published strengths. The default is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published(Arc<Vec<Listed>>);

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The family of models, as returned by [`name`].
    pub family: String,
    /// The kind of question.
    pub kind: String,
    /// The share of right answers, at the difficulty at which the average model has [`UNKNOWN_RIGHT`].
    pub right: f64,
    /// The names of the sets.
    pub sets: String,
}

/// A published result of a model for a kind of question.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The share of right answers, as in [`Listed::right`].
    pub right: f64,
    /// Whether it is about this kind of question; otherwise it is the mean of other kinds.
    pub is_same_kind: bool,
    /// The names of the sets.
    pub sets: String,
}

/// Returns the name under which a model is looked up: its family, without its vendor, in lower case.
pub fn name(model: &str) -> String {
    let plain = model.rsplit_once('/').map_or(model, |(_, name)| name);
    let plain = family(plain).to_lowercase().replace('_', ".");
    plain.strip_prefix("meta-").unwrap_or(&plain).to_owned()
}

fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

fn share(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

impl Published {
    /// Returns the table of this crate.
    pub fn all() -> Self {
        static ALL: LazyLock<Published> = LazyLock::new(|| Published::parse(TABLE));
        ALL.clone()
    }

    /// Derives a table from recorded sets. A test that measures on a set must leave it out.
    pub fn derive(sets: &[(&Public, &Table)]) -> Self {
        // The logarithm of the odds of each family in each set; of several versions in one set, the mean.
        let mut cells: BTreeMap<(String, usize), Vec<f64>> = BTreeMap::new();
        for (at, (_, table)) in sets.iter().enumerate() {
            for (member, model) in table.members.iter().enumerate() {
                let asked = table.rows().iter().filter(|(_, missing)| !missing[member]);
                let (n, hits) = asked.fold((0.0, 0.0), |(n, hits), (q, _)| {
                    (n + 1.0, hits + f64::from(u8::from(q.is_right(member))))
                });
                let odds = logit((hits + 0.5) / (n + 1.0));
                cells.entry((name(model), at)).or_default().push(odds);
            }
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let cells: Vec<(&str, usize, f64)> = cells
            .iter()
            .map(|((family, set), odds)| (family.as_str(), *set, mean(odds)))
            .collect();
        let mut ease = vec![0.0; sets.len()];
        for _ in 0..STEPS {
            let strength = strengths(&cells, &ease);
            for (at, ease) in ease.iter_mut().enumerate() {
                let here = cells.iter().filter(|(_, set, _)| *set == at);
                let rest: Vec<f64> = here
                    .map(|(family, _, odds)| odds - strength[family])
                    .collect();
                *ease = mean(&rest);
            }
        }
        let middle = mean(&strengths(&cells, &ease).into_values().collect::<Vec<f64>>());
        let mut rows: BTreeMap<(&str, &str), Vec<(f64, &str)>> = BTreeMap::new();
        for (family, set, odds) in &cells {
            let public = sets[*set].0;
            let of = rows.entry((family, public.kind)).or_default();
            of.push((odds - ease[*set] - middle, public.name));
        }
        let listed = |((family, kind), cells): ((&str, &str), Vec<(f64, &str)>)| {
            let (strengths, names): (Vec<f64>, Vec<&str>) = cells.into_iter().unzip();
            Listed {
                family: family.to_owned(),
                kind: kind.to_owned(),
                right: share(mean(&strengths) + logit(UNKNOWN_RIGHT)),
                sets: names.join("; "),
            }
        };
        Self(Arc::new(rows.into_iter().map(listed).collect()))
    }

    /// Returns the table as CSV.
    pub fn csv(&self) -> String {
        let head = "family,kind,right,sets\n".to_owned();
        self.0.iter().fold(head, |out, row| {
            let Listed {
                family,
                kind,
                right,
                sets,
            } = row;
            format!("{out}{family},{kind},{right:.3},{sets}\n")
        })
    }

    fn parse(text: &str) -> Self {
        let row = |line: &str| {
            let mut cells = line.splitn(4, ',');
            let mut next = || cells.next().map(str::to_owned);
            Some(Listed {
                family: next()?,
                kind: next()?,
                right: next()?
                    .parse()
                    .ok()
                    .filter(|right| (0.001..0.999).contains(right))?,
                sets: next()?,
            })
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(Arc::new(lines.filter_map(row).collect()))
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[Listed] {
        &self.0
    }

    /// Returns the published results of a model on a kind of question.
    pub fn find(&self, model: &str, kind: &str) -> Option<Found> {
        let name = name(model);
        let of: Vec<&Listed> = self.0.iter().filter(|row| row.family == name).collect();
        if let Some(row) = of.iter().find(|row| row.kind == kind) {
            return Some(Found {
                right: row.right,
                is_same_kind: true,
                sets: row.sets.clone(),
            });
        }
        let sum: f64 = of.iter().map(|row| logit(row.right)).sum();
        let sets: Vec<&str> = of.iter().map(|row| row.sets.as_str()).collect();
        (!of.is_empty()).then(|| Found {
            right: share(sum / of.len() as f64),
            is_same_kind: false,
            sets: sets.join("; "),
        })
    }
}

impl Found {
    /// Returns the share of right answers if the average model has this one.
    pub(super) fn right_where_average_is(&self, average: f64) -> f64 {
        let average = average.clamp(0.01, 0.99);
        share(logit(self.right) - logit(UNKNOWN_RIGHT) + logit(average))
    }
}

/// Returns the mean strength of each family over its sets.
fn strengths<'a>(cells: &[(&'a str, usize, f64)], ease: &[f64]) -> BTreeMap<&'a str, f64> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (family, set, odds) in cells {
        let sum = sums.entry(family).or_default();
        *sum = (sum.0 + odds - ease[*set], sum.1 + 1.0);
    }
    sums.into_iter()
        .map(|(family, (sum, n))| (family, sum / n))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Empty;
    use crate::replay::PUBLIC;

    #[test]
    fn models_are_found_by_their_family() {
        for (model, family) in [
            ("openai/gpt-4o-2024-08-06", "gpt-4o"),
            ("Meta-Llama-3_1-70B-Instruct", "llama-3.1-70b-instruct"),
            (
                "Meta-Llama-3.1-70B-Instruct@hyperbolic",
                "llama-3.1-70b-instruct",
            ),
            ("gemini-1.5-pro-002", "gemini-1.5-pro"),
            ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ] {
            assert_eq!(name(model), family, "{model}");
        }
        let all = Published::all();
        assert!(all.rows().len() > 60, "{}", all.rows().len());
        let gpt = all.find("gpt-4o-2026-01-01", "number").unwrap();
        assert!(gpt.is_same_kind && gpt.right > 0.7, "{gpt:?}");
        let elsewhere = all.find("gpt-4o", "yes-no").unwrap();
        assert!(
            !elsewhere.is_same_kind && elsewhere.right > 0.7,
            "{elsewhere:?}"
        );
        assert_eq!(all.find("scripted", "number"), None);
        assert_eq!(Published::default().find("gpt-4o", "number"), None);
    }

    /// A model that was only asked the easy set does not count as the strongest.
    #[test]
    fn the_difficulty_of_sets_is_taken_out() {
        let set = |models: &[(&str, usize)]| {
            let names: Vec<&str> = models.iter().map(|(name, _)| *name).collect();
            let rows = (0..100).map(|q| {
                let cell = |(_, right): &(&str, usize)| if q < *right { "A" } else { "B" };
                format!(
                    "{q},A,{}",
                    models.iter().map(cell).collect::<Vec<_>>().join(",")
                )
            });
            let text = format!(
                "id,gold,{}\n{}",
                names.join(","),
                rows.collect::<Vec<_>>().join("\n")
            );
            Table::read(&text, Empty::Abstains).unwrap()
        };
        let easy = set(&[("strong", 95), ("middle", 90), ("weak", 85)]);
        let hard = set(&[("strong", 60), ("middle", 40)]);
        let found = Published::derive(&[(&PUBLIC[0], &easy), (&PUBLIC[2], &hard)]);
        let right = |model: &str| found.find(model, "choice").unwrap().right;
        assert!(right("strong") > right("middle"), "{found:?}");
        assert!(right("middle") > right("weak"), "{found:?}");
        let parsed = Published::parse(&found.csv());
        assert_eq!(parsed.csv(), found.csv());
    }

    #[test]
    fn a_strength_moves_with_the_difficulty_of_the_questions() {
        let found = Found {
            right: 0.8,
            is_same_kind: true,
            sets: String::new(),
        };
        assert!((found.right_where_average_is(UNKNOWN_RIGHT) - 0.8).abs() < 1e-9);
        assert!(found.right_where_average_is(0.9) > 0.95);
        assert!(found.right_where_average_is(0.3) < 0.6);
    }
}
