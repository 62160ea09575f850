//! Marks many verdicts by a file of right answers.

use super::verdict;
use crate::batch::{find, of};
use crate::env::Env;
use crate::error::UserError;
use crate::threads;
use kd_core::batch::{Gold, Method, Of, Row, Status};
use kd_core::deliberation::judge_by_value;
use kd_eval::marks::{By, Mark};
use kd_sql::marks::Marks;
use kd_store::{Layout, Place, Thread, Verdicts};
use serde::Serialize;
use std::collections::BTreeMap;

/// The result of marking by a file of right answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ByGold {
    /// The batch whose questions the file names; `None` if it names threads only.
    pub batch: Option<String>,
    /// Number of verdicts marked.
    pub marked: u64,
    /// Number of them that are right.
    pub right: u64,
    /// Number of them that had a mark before.
    pub replaced: u64,
    /// The rows that marked nothing.
    pub skipped: Vec<Skipped>,
}

/// A row that marked nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The question or thread that it names.
    pub id: String,
    /// The reason.
    pub why: String,
}

/// Marks the verdicts that a file of right answers names: all of them in one transaction. Answers are compared as in
/// `kd mark THREAD ANSWER`. The questions come from a batch of this project, by default the newest.
///
/// # Errors
/// There is no such batch, or the marks cannot be kept. A row that cannot be used is skipped.
pub fn by_gold(batch: Option<&str>, gold: &[Gold], env: &Env) -> Result<ByGold, UserError> {
    let layout = env.layout()?;
    let wants_batch = batch.is_some() || gold.iter().any(|row| matches!(row.of, Of::Question(_)));
    let answered = match wants_batch {
        true => Some(Answered::read(batch, env)?),
        false => None,
    };
    let lookup = Lookup {
        batch_threads: (layout.batch_threads()?.into_iter())
            .map(|place| (place.id.0.clone(), place))
            .collect(),
        fell: layout.verdicts()?,
        layout,
        answered,
    };
    let mut out = ByGold {
        batch: lookup.answered.as_ref().map(|a| a.batch.clone()),
        ..ByGold::default()
    };
    let now = env.now()?;
    let mut marks: Vec<Mark> = Vec::new();
    let mut lines: BTreeMap<(String, u32), usize> = BTreeMap::new();
    for row in gold {
        let mark = lookup.mark(row).and_then(|mark| match mark.fault() {
            Some(why) => Err(why.to_owned()),
            None => Ok(mark),
        });
        let skip = match mark {
            Ok(mark) => match lines.insert((mark.thread.clone(), mark.message), row.line) {
                // Equal questions of a batch share one answer.
                Some(first) => format!("line {first} marked the same verdict"),
                None => {
                    out.right += u64::from(mark.is_right());
                    marks.push(Mark { at: now, ..mark });
                    continue;
                }
            },
            Err(why) => why,
        };
        let (Of::Question(id) | Of::Thread(id)) = &row.of;
        out.skipped.push(Skipped {
            line: row.line,
            id: id.clone(),
            why: skip,
        });
    }
    out.marked = marks.len() as u64;
    if !marks.is_empty() {
        let before = Marks::open(&env.user_dirs())?.add_all(&marks)?;
        out.replaced = before.iter().flatten().count() as u64;
    }
    Ok(out)
}

/// The answers of a batch.
struct Answered {
    batch: String,
    /// How each question ended, and its thread.
    rows: BTreeMap<String, (Status, Method, Option<String>)>,
}

impl Answered {
    fn read(batch: Option<&str>, env: &Env) -> Result<Self, UserError> {
        let batches = of(env)?;
        let batch = find(batches.as_ref(), batch)?.about.id;
        let mut rows = BTreeMap::new();
        if let Some(batches) = batches {
            batches.results(&batch, |line| {
                // A line that cannot be parsed leaves its question without an answer.
                if let Ok(row) = serde_json::from_str::<Row>(line) {
                    rows.insert(row.id, (row.status, row.method, row.thread));
                }
                Ok::<_, UserError>(())
            })?;
        }
        Ok(Self { batch, rows })
    }
}

/// Finds the verdicts that rows name.
struct Lookup {
    layout: Layout,
    batch_threads: BTreeMap<String, Place>,
    fell: Verdicts,
    answered: Option<Answered>,
}

impl Lookup {
    /// Returns the judged mark of a row, or why there is none.
    fn mark(&self, row: &Gold) -> Result<Mark, String> {
        if row.answer.is_null() {
            return Err("the file has no answer for it".to_owned());
        }
        let id = match &row.of {
            Of::Thread(id) => id,
            Of::Question(id) => self.thread_of(id)?,
        };
        let place = match self.batch_threads.get(id) {
            Some(place) => place.clone(),
            None => threads::resolve(&self.layout, Some(id)).map_err(|why| why.as_line())?,
        };
        let thread = Thread::open(&place).map_err(|why| why.to_string())?;
        let found = verdict(&self.layout, &thread, &self.fell).map_err(|why| why.as_line())?;
        let Some((mut mark, report)) = found else {
            return Err("it has no verdict to mark".to_owned());
        };
        mark.by = By::Gold;
        judge_by_value(&mut mark, &row.answer, &report).map_err(|why| match mark.winner {
            None => "an open answer cannot be compared: use `kd mark THREAD right`".to_owned(),
            Some(_) => why.to_string(),
        })?;
        Ok(mark)
    }

    /// Returns the thread in which a question of the batch was answered.
    fn thread_of(&self, id: &str) -> Result<&String, String> {
        let Some(answered) = &self.answered else {
            return Err("no batch was read".to_owned());
        };
        let batch = &answered.batch;
        match answered.rows.get(id) {
            None => Err(format!("{batch} has no answer to it")),
            Some((Status::Failed, ..)) => Err(format!("it failed in {batch}")),
            Some((_, Method::Ask | Method::Think, _)) => Err(
                "it was not deliberated, so it has no verdict: `kd batch run --as deliberate`"
                    .to_owned(),
            ),
            Some((_, _, thread)) => {
                let gone = || "its thread was forgotten".to_owned();
                thread.as_ref().ok_or_else(gone)
            }
        }
    }
}
