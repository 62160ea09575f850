//! The forum's log.

use super::ForumStore;
use super::db::{Db, args, first_int};
use super::error::ForumError;
use kd_forum::logline::LogLine;

/// Adds a line.
pub(super) fn add(db: &mut Db, line: &LogLine) -> Result<(), ForumError> {
    let text = serde_json::to_string(line).map_err(|e| ForumError::Invalid(e.to_string()))?;
    db.run(
        "INSERT INTO log (forum, line) VALUES ($1, $2)",
        args![line.forum.as_str(), text],
    )?;
    Ok(())
}

impl ForumStore {
    /// Adds a line.
    ///
    /// # Errors
    /// If the database fails.
    pub fn log(&mut self, line: &LogLine) -> Result<(), ForumError> {
        add(&mut self.db, line)
    }

    /// Returns the last lines, the oldest first.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn log_tail(&mut self, forum: &str, limit: i64) -> Result<Vec<LogLine>, ForumError> {
        let rows = self.db.rows(
            "SELECT line FROM log WHERE forum = $1 ORDER BY id DESC LIMIT $2",
            args![forum, limit],
        )?;
        let lines = rows.iter().rev().map(|row| row.maybe_json(0));
        lines.filter_map(Result::transpose).collect()
    }

    /// Returns the lines after a number, the oldest first, each with its number, for live views.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn log_after(
        &mut self,
        forum: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<(i64, LogLine)>, ForumError> {
        let rows = self.db.rows(
            "SELECT id, line FROM log WHERE forum = $1 AND id > $2 ORDER BY id LIMIT $3",
            args![forum, after, limit],
        )?;
        let lines = rows.iter().map(|row| {
            let number = row.int(0)?;
            Ok(row.maybe_json(1)?.map(|line| (number, line)))
        });
        lines.filter_map(Result::transpose).collect()
    }

    /// Counts the lines that [`Self::log_tail`] can return.
    ///
    /// # Errors
    /// If the database fails.
    pub fn log_count(&mut self, forum: &str) -> Result<i64, ForumError> {
        let row = self
            .db
            .row("SELECT COUNT(*) FROM log WHERE forum = $1", args![forum])?;
        Ok(first_int(row)?.unwrap_or(0))
    }

    /// Returns the number of the last line.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn log_end(&mut self, forum: &str) -> Result<i64, ForumError> {
        let row = self
            .db
            .row("SELECT MAX(id) FROM log WHERE forum = $1", args![forum])?;
        Ok(first_int(row)?.unwrap_or(0))
    }
}
