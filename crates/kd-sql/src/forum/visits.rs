//! Visits outside of cycles: only one process at a time visits as an agent, and a visit whose process is gone is
//! closed.

use super::db::{self, args, first_int};
use super::error::ForumError;
use super::{ForumStore, Place, runs};
use jiff::Timestamp;
use kd_forum::words::{Outcome, Run};

/// Visits outside of cycles that have not ended.
const OPEN: &str = "forum = $1 AND cycle_id IS NULL AND ended_at IS NULL";

/// The right to visit as an agent outside of cycles. It ends with the process.
#[derive(Debug)]
pub struct Visiting {
    /// The lock for a file.
    _file: Option<kd_store::lock::Lock>,
    /// Its lock number on a server, which releases it when the connection ends.
    number: i64,
}

impl ForumStore {
    /// Begins a visit of an agent outside of any cycle.
    ///
    /// # Errors
    /// Another process is visiting as this agent.
    pub fn begin_visit(
        &mut self,
        forum: &str,
        agent: &str,
        now: Timestamp,
    ) -> Result<(i64, Visiting), ForumError> {
        let held = self.visiting(forum, agent)?.ok_or_else(|| {
            ForumError::Invalid(format!("{agent} is on a visit already, in another process"))
        })?;
        let run = self.begin_run(None, forum, agent, now)?;
        let run = run.ok_or_else(|| {
            ForumError::Invalid(format!("the run of {agent} could not be entered"))
        })?;
        Ok((run, held))
    }

    /// Ends a visit, so that other processes can visit as this agent.
    ///
    /// # Errors
    /// If the database fails.
    pub fn end_visit(&mut self, held: Visiting) -> Result<(), ForumError> {
        if matches!(self.place, Place::Server(_)) {
            self.db.row(
                concat!("SELECT ", db::locking!("pg_advisory_unlock")),
                args![held.number],
            )?;
        }
        Ok(())
    }

    /// Closes visits outside of cycles whose process is gone.
    ///
    /// # Errors
    /// If the database fails, or a lock file cannot be used.
    pub fn close_cut_visits(
        &mut self,
        forum: &str,
        now: Timestamp,
    ) -> Result<Vec<Run>, ForumError> {
        let sql = format!("SELECT DISTINCT agent FROM runs WHERE {OPEN}");
        let mut closed = Vec::new();
        for row in self.db.rows(&sql, args![forum])? {
            let agent = row.raw(0)?;
            // Held during every visit.
            let Some(held) = self.visiting(forum, &agent)? else {
                continue;
            };
            closed.extend(self.db.whole(|db| {
                let sql = format!(
                    "UPDATE runs SET ended_at = $2, outcome = $3, reason = $4 WHERE {OPEN} AND agent = $5 RETURNING id"
                );
                let interrupted = Outcome::Interrupted.word();
                let set = args![forum, now, interrupted, "cut off by a crash", agent.as_str()];
                let rows = db.rows(&sql, set)?;
                let runs = rows.iter().map(|row| row.int(0).and_then(|id| runs::find(db, id)));
                runs.collect::<Result<Vec<_>, _>>()
            })?);
            self.end_visit(held)?;
        }
        Ok(closed)
    }

    /// Takes the right to visit as an agent; `None` if another process has it.
    fn visiting(&mut self, forum: &str, agent: &str) -> Result<Option<Visiting>, ForumError> {
        // No forum's name contains this character.
        let number = db::lock_number(&format!("{forum}\n{agent}"), true);
        let file = match &self.place {
            Place::File(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let lock = path.with_file_name(format!(".{name}-{number:x}.lock"));
                let held = kd_store::lock::Lock::try_take(&lock).map_err(|e| ForumError::File {
                    path: lock.clone(),
                    why: e.to_string(),
                })?;
                if held.is_none() {
                    return Ok(None);
                }
                held
            }
            Place::Server(_) => {
                let row = self.db.row(
                    concat!("SELECT ", db::locking!("pg_try_advisory_lock")),
                    args![number],
                )?;
                if first_int(row)?.unwrap_or(0) == 0 {
                    return Ok(None);
                }
                None
            }
        };
        Ok(Some(Visiting {
            _file: file,
            number,
        }))
    }
}
