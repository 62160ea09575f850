//! Joins the answers of several models: a row for each question, a column for each member.

use crate::file::File;
use crate::record::{Record, Score, Unread, Wanted};
use kd_eval::replay::{Question, Table};
use kd_reading::sameness;
use std::collections::BTreeMap;

/// The joined answers.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// The answers.
    pub table: Table,
    /// What was read.
    pub sources: Vec<Source>,
    /// The dropped records, and why.
    pub dropped: Vec<Dropped>,
    /// The questions, by their ids in the table.
    pub about: BTreeMap<String, About>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub path: String,
    /// The name of its format.
    pub format: &'static str,
    /// The models in it.
    pub models: Vec<String>,
    /// Its answers.
    pub answers: usize,
}

/// Something that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// What, in words: `2 answers`, `1 question`.
    pub what: String,
    /// Why.
    pub why: String,
    /// One of them.
    pub example: String,
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The task or data set.
    pub task: String,
    /// The id in its file.
    pub id: String,
    /// The text.
    pub input: String,
    /// The right answers.
    pub gold: Vec<String>,
}

/// Why something is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// A file holds no answers.
    NoFormat,
    /// An answer has no score: it failed, or was not scored.
    Unscored,
    /// There is no right answer.
    NoGold,
    /// A score is neither right nor wrong.
    Partial,
    /// The same model answered it in another file.
    Twice,
    /// The same id has another text.
    OtherText,
    /// The same question has another right answer.
    OtherGold,
}

impl Why {
    fn words(self) -> &'static str {
        match self {
            Why::NoFormat => "no format fits",
            Why::Unscored => "no score: the model or the scorer failed",
            Why::NoGold => "the file of right answers does not have the id",
            Why::Partial => "the score is neither 0 nor 1; `--metric` chooses another",
            Why::Twice => "the same model answered the same question in another file",
            Why::OtherText => "the id belongs to another text in another file",
            Why::OtherGold => "the right answer differs between files",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Why::NoFormat => "file",
            Why::Unscored | Why::NoGold | Why::Partial | Why::Twice => "answer",
            Why::OtherText | Why::OtherGold => "question",
        }
    }
}

/// A question with the answers so far.
#[derive(Debug)]
struct Row {
    about: About,
    is_checked: bool,
    answers: BTreeMap<(String, u32), Record>,
    /// Why the whole question is dropped.
    fault: Option<Why>,
}

/// The answers so far.
#[derive(Debug, Default)]
pub(crate) struct Join {
    rows: Vec<Row>,
    places: BTreeMap<(String, String), usize>,
    /// The models in the order of the files, and the number of answers of each to one question.
    models: Vec<(String, u32)>,
    sources: Vec<Source>,
    dropped: BTreeMap<Why, (usize, String)>,
    options: Option<u64>,
}

impl Join {
    /// Counts a file that holds no answers.
    pub(crate) fn skip(&mut self, file: &File) {
        self.drop_one(Why::NoFormat, file.path.clone());
    }

    fn drop_one(&mut self, why: Why, example: String) {
        let (count, _) = self.dropped.entry(why).or_insert((0, example));
        *count += 1;
    }

    /// Adds the answers of a file.
    pub(crate) fn add(&mut self, file: &File, format: &'static str, records: Vec<Record>) {
        let mut source = Source {
            path: file.path.clone(),
            format,
            models: Vec::new(),
            answers: records.len(),
        };
        for record in records {
            if !source.models.contains(&record.model) {
                source.models.push(record.model.clone());
            }
            self.put(record);
        }
        self.sources.push(source);
    }

    fn put(&mut self, record: Record) {
        match self
            .models
            .iter_mut()
            .find(|(model, _)| *model == record.model)
        {
            Some((_, runs)) => *runs = record.run.max(*runs),
            None => self.models.push((record.model.clone(), record.run)),
        }
        let place = (record.task.clone(), record.key.clone());
        let at = *self.places.entry(place).or_insert_with(|| {
            self.rows.push(Row::of(&record));
            self.rows.len() - 1
        });
        self.options = self.options.max(record.options);
        let Some(row) = self.rows.get_mut(at) else {
            return;
        };
        row.check(&record);
        let named = format!("{} on {}", record.model, record.id);
        let why = match record.score {
            Score::None => Some(Why::Unscored),
            Score::NoGold => Some(Why::NoGold),
            Score::Number(score) if score != 0.0 && score != 1.0 => Some(Why::Partial),
            Score::Number(_) => None,
        };
        let answer = (record.model.clone(), record.run);
        match why {
            Some(why) => self.drop_one(why, named),
            None if row.answers.contains_key(&answer) => self.drop_one(Why::Twice, named),
            None => drop(row.answers.insert(answer, record)),
        }
    }

    /// Returns the joined answers.
    ///
    /// # Errors
    /// If none is left.
    pub(crate) fn finish(mut self, wanted: &Wanted) -> Result<Joined, Unread> {
        let members: Vec<(String, u32)> = self
            .models
            .iter()
            .flat_map(|(model, runs)| (1..=*runs).map(|run| (model.clone(), run)))
            .collect();
        let several: BTreeMap<&String, u32> = self
            .models
            .iter()
            .map(|(model, runs)| (model, *runs))
            .collect();
        let names: Vec<String> = members
            .iter()
            .map(|(model, run)| match several.get(model) {
                Some(1) | None => model.clone(),
                Some(_) => format!("{model}#{run}"),
            })
            .collect();
        let tasks: std::collections::BTreeSet<&str> = self
            .rows
            .iter()
            .map(|row| row.about.task.as_str())
            .collect();
        let has_tasks = tasks.len() > 1;
        let mut joined = Joined::default();
        let mut rows = Vec::new();
        let mut faults = Vec::new();
        for row in std::mem::take(&mut self.rows) {
            if let Some(fault) = row.fault {
                faults.push((fault, row.about.id.clone()));
                continue;
            }
            if row.answers.is_empty() {
                continue;
            }
            let id = unique(&row.about, has_tasks, &joined.about);
            rows.push(row.question(&id, &members));
            joined.about.insert(id, row.about);
        }
        for (fault, id) in faults {
            self.drop_one(fault, id);
        }
        joined.dropped = std::mem::take(&mut self.dropped)
            .into_iter()
            .map(|(why, (count, example))| Dropped {
                what: format!(
                    "{count} {}{}",
                    why.noun(),
                    if count == 1 { "" } else { "s" }
                ),
                why: why.words().to_owned(),
                example,
            })
            .collect();
        if rows.is_empty() {
            return Err(self.nothing(&joined.dropped, wanted));
        }
        joined.table = Table::of(names, rows, self.options);
        joined.sources = self.sources;
        Ok(joined)
    }

    fn nothing(&self, dropped: &[Dropped], wanted: &Wanted) -> Unread {
        let path = self
            .sources
            .first()
            .map_or("the files", |source| &source.path);
        let whys: Vec<String> = dropped
            .iter()
            .map(|one| format!("{}: {}", one.what, one.why))
            .collect();
        let what = match whys.is_empty() {
            true => "no file holds answers".to_owned(),
            false => format!("no answer is left ({})", whys.join("; ")),
        };
        let hint = match wanted.metric.is_some() {
            true => "choose another metric, or omit --metric",
            false => {
                "give the files with the answers of each model; docs/eval.md shows each format"
            }
        };
        Unread::new(path, what, hint)
    }
}

/// Returns an id that no other question has.
fn unique(about: &About, has_tasks: bool, taken: &BTreeMap<String, About>) -> String {
    let id = match has_tasks && !about.task.is_empty() {
        true => format!("{} {}", about.task, about.id),
        false => about.id.clone(),
    };
    let mut all = std::iter::once(id.clone()).chain((2_u32..).map(|n| format!("{id} ({n})")));
    all.find(|id| !taken.contains_key(id)).unwrap_or(id)
}

impl Row {
    fn of(record: &Record) -> Self {
        Self {
            about: About {
                task: record.task.clone(),
                id: record.id.clone(),
                input: record.input.clone(),
                gold: record.gold.clone(),
            },
            is_checked: record.is_checked,
            answers: BTreeMap::new(),
            fault: None,
        }
    }

    /// Checks that a record answers the same question.
    fn check(&mut self, record: &Record) {
        if self.is_checked && !is_same_text(&self.about.input, &record.input) {
            self.fault = Some(Why::OtherText);
        } else if self.about.gold != record.gold {
            self.fault = self.fault.or(Some(Why::OtherGold));
        }
    }

    /// Returns the question with the answers of these members, and whether each of them was not asked.
    fn question(&self, id: &str, members: &[(String, u32)]) -> (Question, Vec<bool>) {
        let right = self.about.gold.first().map_or("right", String::as_str);
        let mut question = Question {
            id: id.to_owned(),
            ..Question::default()
        };
        let mut keys: BTreeMap<String, usize> = BTreeMap::new();
        let mut missing = Vec::with_capacity(members.len());
        for member in members {
            let record = self.answers.get(member);
            missing.push(record.is_none());
            let key = record.and_then(|record| key(record, right));
            question.answers.push(key.map(|(key, is_right)| {
                let at = question.keys.len();
                *keys.entry(key.clone()).or_insert_with(|| {
                    question.keys.push(key);
                    question.right.push(is_right);
                    at
                })
            }));
            question.stated.push(None);
            question.cost.push(record.and_then(|record| record.cost));
        }
        (question, missing)
    }
}

/// Returns the answer by which members agree, and whether it is right. The tool decides what is right: right answers are
/// the same answer, and a wrong one is never the right one, however it is written.
fn key(record: &Record, right: &str) -> Option<(String, bool)> {
    if record.score == Score::Number(1.0) {
        return Some((right.to_owned(), true));
    }
    let said = record
        .said
        .as_deref()
        .map(str::trim)
        .filter(|said| !said.is_empty())?;
    let key = sameness::key(said);
    let key = if key.is_empty() { said.to_owned() } else { key };
    match key == right || key == sameness::key(right) {
        true => Some((format!("{key} (wrong)"), false)),
        false => Some((key, false)),
    }
}

/// Returns whether two texts are the same, even if one of them was cut.
fn is_same_text(one: &str, other: &str) -> bool {
    /// Texts that are shorter were not cut.
    const CUT_CHARS_MIN: usize = 1000;
    let (short, long) = match one.len() <= other.len() {
        true => (one, other),
        false => (other, one),
    };
    short == long || (short.chars().count() >= CUT_CHARS_MIN && long.starts_with(short))
}
