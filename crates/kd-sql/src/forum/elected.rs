//! The values of settings that motions changed: the table `settings`.

use super::db::{Db, args};
use super::error::ForumError;

/// Returns the elected value of a parameter; empty if there is none.
pub(super) fn stored(db: &mut Db, forum: &str, key: &str) -> Result<String, ForumError> {
    let row = db.row(
        "SELECT value FROM settings WHERE forum = $1 AND key = $2",
        args![forum, key],
    )?;
    row.map_or(Ok(String::new()), |row| row.line(0))
}

/// Stores the elected value of a parameter; an empty one lets the configuration count again.
pub(super) fn store(
    db: &mut Db,
    forum: &str,
    key: &str,
    value: &str,
    motion: Option<i64>,
) -> Result<(), ForumError> {
    if value.is_empty() {
        db.run(
            "DELETE FROM settings WHERE forum = $1 AND key = $2",
            args![forum, key],
        )?;
        return Ok(());
    }
    db.run(
        "INSERT INTO settings (forum, key, value, motion_id) VALUES ($1, $2, $3, $4) ON CONFLICT (forum, key) \
         DO UPDATE SET value = excluded.value, motion_id = excluded.motion_id",
        args![forum, key, value, motion.unwrap_or(0)],
    )?;
    Ok(())
}
