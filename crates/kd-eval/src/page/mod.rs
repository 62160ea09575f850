//! The page *Do councils beat their best member?*: random councils of recorded models, on several sets.
//!
//! Input: tables of answers. Output: a [`Study`], and the page as blocks, in Markdown or HTML.

mod render;
mod words;

pub use render::markdown;
pub use words::TITLE;

use crate::deciders::{Decision, Halves, Setting, Way};
use crate::intervals::{Interval, bootstrap};
use crate::paired::{DRAWS, compare};
use crate::replay::{ReadError, Table};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use serde::Serialize;
use std::collections::BTreeMap;

/// The ways to decide that are compared with single members.
pub const WAYS: [&str; 3] = ["plurality", "weighted", "auto"];
/// The largest p-value that shows a difference.
const LEVEL: f64 = 0.05;
/// The default number of possible answers of a set that does not state it.
const OPTIONS: u64 = 20;

/// A set of recorded answers.
#[derive(Clone, Debug)]
pub struct Set<'a> {
    /// The name, as on the page.
    pub name: String,
    /// The answers.
    pub table: &'a Table,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// The councils to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Draw {
    /// Number of councils drawn from each set.
    pub councils: usize,
    /// Members per council.
    pub size: usize,
    /// The seed of councils, halves, ties and bootstraps.
    pub seed: u64,
}

/// The results on all sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// The councils drawn.
    #[serde(flatten)]
    pub draw: Draw,
    /// One entry for each set.
    pub sets: Vec<Measured>,
}

/// The results on one set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The name.
    pub name: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// Number of models in the file.
    pub models: usize,
    /// Number of questions in the file.
    pub questions: usize,
    /// The mean share of right answers of each council's best member, known only afterwards.
    pub best: f64,
    /// The same of the member that is best on the other half of the questions.
    pub picked: f64,
    /// One row for each of [`WAYS`].
    pub rows: Vec<Row>,
}

/// The results of one way to decide.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub way: &'static str,
    /// The mean share of right answers.
    pub right: f64,
    /// The mean number of members asked.
    pub asked: f64,
    /// The gain over each council's best member, known only afterwards.
    pub over_best: Gain,
    /// The gain over the member that is best on the other half.
    pub over_picked: Gain,
}

/// The gain over single members.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The mean over councils, as a share of the questions.
    pub mean: f64,
    /// Its 95 % interval: a paired bootstrap over questions.
    pub interval: Interval,
    /// Number of councils that are better, corrected for their number (Holm 1979).
    pub better: usize,
    /// Number of councils that are worse.
    pub worse: usize,
    /// Number of councils without a shown difference.
    pub not_shown: usize,
}

impl Gain {
    /// Returns the conclusion, in words.
    pub fn word(&self) -> &'static str {
        match (self.interval.spans_zero(), self.mean > 0.0) {
            (true, _) => "no difference shown",
            (false, true) => "better",
            (false, false) => "worse",
        }
    }
}

/// The scores of one way beside single members, over all councils of a set.
#[derive(Default)]
struct Beside {
    sum: f64,
    /// By council: the p-value, and whether the way is ahead.
    tests: Vec<(f64, bool)>,
    /// By question: the sum of differences, each divided by the number of questions of its council. So the mean over
    /// questions is the mean over councils, however many questions a council has.
    questions: BTreeMap<String, f64>,
}

impl Beside {
    fn add(&mut self, ids: &[&str], ours: &[f64], theirs: &[f64], seed: u64) {
        let found = compare(ours, theirs, seed);
        self.sum += found.difference;
        self.tests.push((found.p, found.difference > 0.0));
        let n = ids.len().max(1) as f64;
        for ((id, ours), theirs) in ids.iter().zip(ours).zip(theirs) {
            *self.questions.entry((*id).to_owned()).or_default() += (ours - theirs) / n;
        }
    }

    fn gain(self, seed: u64) -> Gain {
        let councils = self.tests.len();
        let scale = self.questions.len() as f64 / councils.max(1) as f64;
        let values: Vec<f64> = self.questions.values().map(|sum| sum * scale).collect();
        let shown = shown(&self.tests);
        Gain {
            mean: self.sum / councils.max(1) as f64,
            interval: bootstrap(&values, DRAWS, seed),
            better: shown.0,
            worse: shown.1,
            not_shown: councils - shown.0 - shown.1,
        }
    }
}

/// Returns how many tests show an advantage and how many a disadvantage, corrected for their number (Holm 1979).
fn shown(tests: &[(f64, bool)]) -> (usize, usize) {
    let mut sorted = tests.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = sorted.len();
    let passes = |(at, test): &(usize, &(f64, bool))| test.0 * (n - at) as f64 <= LEVEL;
    let passed = sorted.iter().enumerate().take_while(passes);
    passed.fold((0, 0), |(better, worse), (_, (_, ahead))| match ahead {
        true => (better + 1, worse),
        false => (better, worse + 1),
    })
}

/// Measures all sets.
///
/// # Errors
/// A set has fewer members than a council, or a council has no question in common.
pub fn study(sets: &[Set<'_>], draw: Draw) -> Result<Study, ReadError> {
    let each = sets.iter().map(|set| measured(set, draw));
    Ok(Study {
        draw,
        sets: each.collect::<Result<_, _>>()?,
    })
}

fn too_few(set: &Set<'_>, size: usize) -> ReadError {
    let members = set.table.members.len();
    ReadError {
        line: 1,
        what: format!("{} has {members} members; councils need {size}", set.name),
        hint: "choose a smaller size".into(),
    }
}

fn measured(set: &Set<'_>, draw: Draw) -> Result<Measured, ReadError> {
    let (councils, size, seed) = (draw.councils, draw.size, draw.seed);
    let mut names = set.table.members.clone();
    if size == 0 || size > names.len() || councils == 0 {
        return Err(too_few(set, size));
    }
    let ways: Vec<Way> = WAYS.iter().filter_map(|name| Way::find(name)).collect();
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    let (mut best_sum, mut picked_sum) = (0.0, 0.0);
    let mut sums = vec![(0.0, 0.0); ways.len()];
    let mut beside: Vec<[Beside; 2]> = ways.iter().map(|_| Default::default()).collect();
    for _ in 0..councils {
        names.shuffle(&mut chance);
        let replay = set.table.council(&names[..size])?;
        let n = replay.questions.len() as f64;
        let halves = Halves::drawn(replay.questions.len(), seed);
        let setting = Setting {
            replay: &replay,
            options: replay.options.unwrap_or(OPTIONS),
            seed,
            halves: &halves,
        };
        let ids: Vec<&str> = replay.questions.iter().map(|q| q.id.as_str()).collect();
        let alone = |member: usize| -> Vec<f64> {
            let right = |q: &crate::replay::Question| f64::from(u8::from(q.is_right(member)));
            replay.questions.iter().map(right).collect()
        };
        let scores = |decided: &[Decision]| -> Vec<f64> {
            let pairs = replay.questions.iter().zip(decided);
            pairs.map(|(q, d)| q.share_right(&d.winners)).collect()
        };
        let sum = |scores: &[f64]| scores.iter().sum::<f64>();
        let members = (0..size).map(alone);
        let best = members
            .max_by(|a, b| sum(a).total_cmp(&sum(b)))
            .unwrap_or_default();
        let picked = Way::find("best")
            .map(|way| scores(&way.decide(&setting)))
            .unwrap_or_default();
        best_sum += sum(&best) / n;
        picked_sum += sum(&picked) / n;
        for ((way, sums), [over_best, over_picked]) in ways.iter().zip(&mut sums).zip(&mut beside) {
            let decided = way.decide(&setting);
            let own = scores(&decided);
            let asked = |d: &Decision| d.asked.as_ref().map_or(size, Vec::len) as f64;
            sums.0 += sum(&own) / n;
            sums.1 += decided.iter().map(asked).sum::<f64>() / n;
            over_best.add(&ids, &own, &best, seed);
            over_picked.add(&ids, &own, &picked, seed);
        }
    }
    let many = councils as f64;
    let rows = ways.iter().zip(sums).zip(beside);
    let rows = rows.map(|((way, (right, asked)), [over_best, over_picked])| Row {
        way: way.name(),
        right: right / many,
        asked: asked / many,
        over_best: over_best.gain(seed),
        over_picked: over_picked.gain(seed),
    });
    Ok(Measured {
        name: set.name.clone(),
        sha256: set.sha256.clone(),
        models: set.table.members.len(),
        questions: set.table.rows().len(),
        best: best_sum / many,
        picked: picked_sum / many,
        rows: rows.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Empty;

    /// Three members; the first two are right on most questions, and never wrong together.
    fn table() -> Table {
        let rows = (0..300).map(|q| {
            let says = |right: bool| if right { "A" } else { "B" };
            let cells = [says(q % 5 != 0), says(q % 5 != 1), says(q % 5 != 2)];
            format!("{q},A,{}", cells.join(","))
        });
        let text = format!("id,gold,x,y,<z|>\n{}", rows.collect::<Vec<_>>().join("\n"));
        Table::read(&text, Empty::Abstains).unwrap()
    }

    fn found() -> Study {
        let table = table();
        let set = Set {
            name: "a|<b>".into(),
            table: &table,
            sha256: "00".into(),
        };
        let draw = Draw {
            councils: 2,
            size: 3,
            seed: 1,
        };
        study(&[set], draw).unwrap()
    }

    #[test]
    fn a_council_of_members_that_err_apart_beats_each_of_them() {
        let found = found();
        let set = &found.sets[0];
        assert_eq!((set.models, set.questions), (3, 300));
        assert!((set.best - 0.8).abs() < 1e-9, "{set:?}");
        let plurality = &set.rows[0];
        assert!((plurality.right - 1.0).abs() < 1e-9, "{plurality:?}");
        assert!((plurality.over_best.mean - 0.2).abs() < 1e-9);
        assert_eq!(plurality.over_best.better, 2);
        let interval = plurality.over_best.interval;
        assert!(
            interval.low < 0.2 && 0.2 < interval.high && interval.high < 0.3,
            "{interval:?}"
        );
        assert_eq!(plurality.over_best.word(), "better");
        assert!(plurality.over_picked.mean >= plurality.over_best.mean - 1e-9);
    }

    #[test]
    fn differences_are_shown_only_if_they_stand_out_among_all_tests() {
        assert_eq!(shown(&[(0.02, true), (0.9, true)]), (1, 0));
        assert_eq!(shown(&[(0.03, true), (0.9, true)]), (0, 0), "Holm: .03 × 2");
        assert_eq!(shown(&[(0.001, true), (0.04, false)]), (1, 1));
        assert_eq!(shown(&[]), (0, 0));
    }

    #[test]
    fn names_of_files_are_text_on_the_page() {
        let found = found();
        let page = markdown(&found);
        assert!(
            page.contains(r"a\|\<b\>") && !page.contains("<b>"),
            "{page}"
        );
        assert!(page.starts_with("# Do councils beat their best member?\n"));
    }
}
