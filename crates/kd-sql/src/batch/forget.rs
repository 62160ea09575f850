//! Forgetting threads in the batches of a project, as a part of [`kd_store::forget`].

use super::{Batches, jobs, parcel_rows};
use kd_store::forget::{Found, Holder, Job, Scope, Target};
use kd_store::{Error, Place};
use rusqlite::{Transaction, params};
use std::path::{Path, PathBuf};

/// The batches of a project, by the path of their file.
#[derive(Clone, Debug)]
pub struct BatchesFile(PathBuf);

impl BatchesFile {
    /// Takes the path of the file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the files of results that hold a line of a thread.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn outputs(&self, thread: &str) -> Result<Vec<PathBuf>, Error> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        Batches::at(&self.0)?.outputs(thread)
    }

    /// Returns which of these threads of batches asked the question of another thread again, as `eval.share` and `kd
    /// eval --live` do. The id of such a question is the id of that thread.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn again(&self, thread: &str, of_batches: Vec<Place>) -> Result<Vec<Place>, Error> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let (lines, alone) = Batches::at(&self.0)?.again(thread)?;
        let is_again = |place: &Place| {
            // A thread of a question that was stopped has no line.
            lines.iter().any(|line| is_of(line, &place.id.0))
                || batch_of(&place.path).is_some_and(|batch| alone.iter().any(|one| one == batch))
        };
        Ok(of_batches.into_iter().filter(is_again).collect())
    }

    /// Forgets the questions that ask the question of a thread again, with their results.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn forget_again(&self, thread: &str) -> Result<(), Error> {
        if self.0.exists() {
            let is_again = |question: &Question| is_about(&question.id, thread);
            Batches::at(&self.0)?.forget(&is_again, thread, false)?;
        }
        Ok(())
    }

    /// Returns the batch of the thread in this folder if it is not here but in the database of a fleet, which has the thread
    /// too.
    pub fn of_fleet(&self, thread: &Path) -> Option<String> {
        let batch = batch_of(thread)?;
        let here = self.0.exists()
            && Batches::at(&self.0)
                .and_then(|own| own.get(batch))
                .ok()?
                .is_some();
        (!here).then(|| batch.to_owned())
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Holder for BatchesFile {
    /// Forgets the questions whose answer is in the forgotten thread, in all batches that use it, and questions of its
    /// batch without an answer that repeat it.
    fn forget(&self, job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let is_gone = |question: &Question| {
            let is_of_thread = question.line.as_deref().map_or_else(
                || Some(question.batch.as_str()) == batch_of(&target.place.path),
                |line| is_of(line, &target.place.id.0),
            );
            let is_whole = target.scope == Scope::Whole;
            let whole = is_whole && question.line.is_some();
            let texts = [Some(&question.text), question.line.as_ref()];
            // The same question, asked again in other ways.
            let is_again = is_about(&question.id, &target.place.id.0);
            is_again && is_whole
                || is_of_thread
                    && (whole || texts.into_iter().flatten().any(|text| job.is_in(text)))
        };
        let what = match Batches::at(&self.0)?.forget(&is_gone, &target.place.id.0, dry)? {
            0 => return Ok(Vec::new()),
            1 => "1 question of a batch".to_owned(),
            n => format!("{n} questions of batches"),
        };
        Ok(vec![Found {
            path: self.0.clone(),
            what,
        }])
    }
}

/// A question of a batch with its result.
struct Question {
    id: String,
    batch: String,
    place: i64,
    text: String,
    line: Option<String>,
}

impl Batches {
    fn forget(
        &mut self,
        is_gone: &dyn Fn(&Question) -> bool,
        thread: &str,
        dry: bool,
    ) -> Result<u64, Error> {
        let gone = self.write(|tx| {
            let gone = questions(tx, is_gone)?;
            if !dry {
                parcel_rows::forget(tx, thread)?;
                for (batch, place) in &gone {
                    tx.execute(
                        "DELETE FROM results WHERE batch = ?1 AND place = ?2",
                        params![batch, place],
                    )?;
                    jobs::remove(tx, batch, *place)?;
                }
            }
            Ok(gone.len() as u64)
        })?;
        if gone > 0 && !dry {
            // Deleted text remains in the log of writes until that is written back.
            self.read(|db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))?;
        }
        Ok(gone)
    }

    /// Returns the results of questions with the id of a thread, and the batches that have only such a question.
    fn again(&self, thread: &str) -> Result<(Vec<String>, Vec<String>), Error> {
        self.read(|db| {
            let mut found = db.prepare(
                "SELECT jobs.id, jobs.batch, results.line,
                        (SELECT count(*) FROM jobs AS all_of WHERE all_of.batch = jobs.batch)
                 FROM jobs LEFT JOIN results ON results.batch = jobs.batch AND results.place = jobs.place
                 WHERE instr(jobs.id, ?1) = 1",
            )?;
            let mut rows = found.query([thread])?;
            let (mut lines, mut alone) = (Vec::new(), Vec::new());
            while let Some(row) = rows.next()? {
                let id: String = row.get(0)?;
                if !is_about(&id, thread) {
                    continue;
                }
                if row.get::<_, i64>(3)? == 1 {
                    alone.push(row.get(1)?);
                }
                lines.extend(row.get::<_, Option<String>>(2)?);
            }
            Ok((lines, alone))
        })
    }

    fn outputs(&self, thread: &str) -> Result<Vec<PathBuf>, Error> {
        self.read(|db| {
            let mut found = db.prepare(
                "SELECT results.line, batches.output FROM results JOIN batches ON batches.id = results.batch
                 WHERE batches.output IS NOT NULL AND instr(results.line, ?1) > 0",
            )?;
            let mut rows = found.query([thread])?;
            let mut outputs: Vec<PathBuf> = Vec::new();
            while let Some(row) = rows.next()? {
                let (line, output): (String, String) = (row.get(0)?, row.get(1)?);
                let output = PathBuf::from(output);
                if is_of(&line, thread) && !outputs.contains(&output) {
                    outputs.push(output);
                }
            }
            Ok(outputs)
        })
    }
}

/// Returns the batch and place of the questions to forget.
fn questions(
    tx: &Transaction<'_>,
    is_gone: &dyn Fn(&Question) -> bool,
) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut all = tx.prepare(
        "SELECT jobs.batch, jobs.place, jobs.question, results.line, jobs.id FROM jobs
         LEFT JOIN results ON results.batch = jobs.batch AND results.place = jobs.place",
    )?;
    let mut rows = all.query([])?;
    let mut gone = Vec::new();
    while let Some(row) = rows.next()? {
        let question = Question {
            batch: row.get(0)?,
            place: row.get(1)?,
            text: row.get(2)?,
            line: row.get(3)?,
            id: row.get(4)?,
        };
        if is_gone(&question) {
            gone.push((question.batch, question.place));
        }
    }
    Ok(gone)
}

/// Returns whether a question has the id of a verdict of a thread: `THREAD#MESSAGE`.
fn is_about(id: &str, thread: &str) -> bool {
    let message = id
        .strip_prefix(thread)
        .and_then(|rest| rest.strip_prefix('#'));
    message.is_some_and(|message| message.parse::<u32>().is_ok())
}

/// Returns whether a result is the answer of a thread.
fn is_of(line: &str, thread: &str) -> bool {
    // Most lines are of others, and are not parsed.
    line.contains(thread)
        && serde_json::from_str::<serde_json::Value>(line)
            .is_ok_and(|line| line["thread"].as_str() == Some(thread))
}

/// Returns the batch in whose folder a thread is.
fn batch_of(thread: &Path) -> Option<&str> {
    let batch = thread.parent()?.parent()?;
    let folder = batch.parent()?.file_name()?;
    (folder == "batches")
        .then(|| batch.file_name()?.to_str())
        .flatten()
}
