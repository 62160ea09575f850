//! Forgets marks: finds the marks of a thread, and removes every trace of them from the file.

use super::sums::sum_up;
use super::{Marks, refused, writing};
use kd_store::error::Error;
use rusqlite::params;

/// A thread that has marks, of any project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedThread {
    /// The project, as its marks name it.
    pub project: String,
    /// The thread.
    pub thread: String,
    /// Number of its verdicts with a mark, readable or not.
    pub marks: u64,
}

impl Marks {
    /// Returns the threads of all projects that have marks, readable or not, sorted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn threads(&self) -> Result<Vec<MarkedThread>, Error> {
        let read = || -> Result<Vec<MarkedThread>, rusqlite::Error> {
            let mut found = self.db.prepare(
                "SELECT project, thread, count(*) FROM marks WHERE current = 1
                 GROUP BY project, thread ORDER BY project, thread",
            )?;
            let rows = found.query_map([], |row| {
                Ok(MarkedThread {
                    project: row.get(0)?,
                    thread: row.get(1)?,
                    marks: row.get::<_, i64>(2)?.max(0) as u64,
                })
            })?;
            rows.collect()
        };
        read().map_err(|source| refused(&self.path, source))
    }

    /// Forgets the marks of a thread, or of some of its messages, including all earlier ones. Returns the number of
    /// verdicts that had a mark; changes nothing in a dry run.
    ///
    /// # Errors
    /// Those of [`Marks::add`].
    pub fn forget(
        &mut self,
        project: &str,
        thread: &str,
        messages: Option<&[u32]>,
        dry: bool,
    ) -> Result<usize, Error> {
        let path = self.path.clone();
        let mut forget = || -> Result<usize, rusqlite::Error> {
            let tx = writing(&mut self.db)?;
            let mut gone = 0;
            let here = "project = ?1 AND thread = ?2";
            let numbers: Vec<u32> = {
                let mut found =
                    tx.prepare(&format!("SELECT DISTINCT message FROM marks WHERE {here}"))?;
                let rows = found.query_map(params![project, thread], |row| row.get(0))?;
                rows.collect::<Result<_, _>>()?
            };
            for number in numbers {
                if messages.is_none_or(|messages| messages.contains(&number)) {
                    gone += 1;
                    if !dry {
                        tx.execute(
                            &format!("DELETE FROM marks WHERE {here} AND message = ?3"),
                            params![project, thread, number],
                        )?;
                    }
                }
            }
            if gone > 0 && !dry {
                sum_up(&tx)?;
            }
            tx.commit()?;
            Ok(gone)
        };
        forget().map_err(|source| refused(&path, source))
    }

    /// Forgets all marks. Returns the number of verdicts that had one.
    ///
    /// # Errors
    /// Those of [`Marks::add`].
    pub fn forget_all(&mut self) -> Result<usize, Error> {
        let path = self.path.clone();
        let mut forget = || -> Result<usize, rusqlite::Error> {
            let tx = writing(&mut self.db)?;
            let count = tx.execute("DELETE FROM marks WHERE current = 1", [])?;
            tx.execute("DELETE FROM marks", [])?;
            tx.execute("DELETE FROM sums", [])?;
            tx.commit()?;
            self.db.execute_batch("VACUUM")?;
            Ok(count)
        };
        forget().map_err(|source| refused(&path, source))
    }
}
