//! The rules of a single forum: the table `rules`. They are set by orders (`order.rs`), which record who, when and why.

use super::ForumStore;
use super::db::{Db, args};
use super::error::ForumError;
use jiff::Timestamp;
use kd_core::config::forum::Settings;
use kd_forum::rules::{self, Rules};

/// Returns the rules that are set in a forum.
pub(super) fn all(db: &mut Db, forum: &str) -> Result<Rules, ForumError> {
    let rows = db.rows(
        "SELECT key, value FROM rules WHERE forum = $1",
        args![forum],
    )?;
    let pairs = rows.iter().map(|row| Ok((row.line(0)?, row.line(1)?)));
    let pairs = pairs.collect::<Result<Vec<_>, ForumError>>()?;
    let pairs = pairs
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    Ok(Rules::of(pairs))
}

/// Returns the time before which a thread's last post makes it archived. An archived thread itself is unchanged: a
/// reply, or another value of the rule, brings it back.
pub(super) fn archived_before(
    db: &mut Db,
    forum: &str,
    now: Timestamp,
) -> Result<Timestamp, ForumError> {
    let before = all(db, forum)?.archived_before(now);
    Ok(before.unwrap_or(Timestamp::MIN))
}

/// Sets a rule; its default value removes it.
///
/// # Errors
/// There is no such rule, or the value is invalid.
pub(super) fn put(db: &mut Db, forum: &str, key: &str, value: &str) -> Result<(), ForumError> {
    let rule = rules::find(key)?;
    let value = rule.read(value)?;
    if value == rule.usual() {
        db.run(
            "DELETE FROM rules WHERE forum = $1 AND key = $2",
            args![forum, rule.key],
        )?;
        return Ok(());
    }
    db.run(
        "INSERT INTO rules (forum, key, value) VALUES ($1, $2, $3) ON CONFLICT (forum, key) DO UPDATE SET value = excluded.value",
        args![forum, rule.key, value],
    )?;
    Ok(())
}

impl ForumStore {
    /// Returns the rules of a forum. They only narrow the settings, so the rules of a store of another user count too.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn rules(&mut self, forum: &str) -> Result<Rules, ForumError> {
        all(&mut self.db, forum)
    }

    /// Narrows settings by the rules of a forum.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn narrow(&mut self, forum: &str, settings: &Settings) -> Result<Settings, ForumError> {
        Ok(self.rules(forum)?.narrow(settings))
    }

    /// Returns the forums of this store with their numbers of threads, by name.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn forums(&mut self) -> Result<Vec<(String, i64)>, ForumError> {
        let rows = self.db.rows(
            "SELECT f.forum, (SELECT COUNT(*) FROM threads t WHERE t.forum = f.forum AND t.deleted_at IS NULL) FROM \
             (SELECT forum FROM threads UNION SELECT forum FROM members UNION SELECT forum FROM charters UNION SELECT forum FROM rules) f \
             ORDER BY f.forum",
            &[],
        )?;
        let rows = rows.iter().map(|row| Ok((row.line(0)?, row.int(1)?)));
        rows.collect()
    }
}
