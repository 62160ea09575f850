//! The names of forums: which a new forum may have, and which forums exist.

use super::ForumStore;
use super::db::{Db, args};
use super::error::ForumError;
use kd_core::clean::clean_line;
use kd_forum::MAIN;

/// Maximum characters of a name.
const NAME_MAX: usize = 64;
/// Maximum distance of a name that is suggested.
const NEAR: usize = 2;
/// The tables with rows of a forum that was used.
const USED: &[&str] = &[
    "threads", "members", "charters", "rules", "cycles", "runs", "notes", "log",
];

/// Checks the name of a forum that does not exist yet.
fn check_new(name: &str) -> Result<(), ForumError> {
    let why = if name.trim().is_empty() {
        "it is empty"
    } else if name.chars().count() > NAME_MAX {
        "it has more than 64 characters"
    } else if name.contains(['@', '/']) {
        "`@` marks visits to other machines, and `/` separates folders"
    } else if clean_line(name, NAME_MAX) != name || name.trim() != name {
        "it has control characters, line ends, or spaces around it"
    } else {
        return Ok(());
    };
    let name = clean_line(name, NAME_MAX);
    Err(ForumError::Invalid(format!(
        "`{name}` is no name for a forum: {why}"
    )))
}

/// Returns whether anything was written or run in a forum. The main one always exists.
fn exists(db: &mut Db, forum: &str) -> Result<bool, ForumError> {
    if forum == MAIN {
        return Ok(true);
    }
    for table in USED {
        let sql = format!("SELECT 1 FROM {table} WHERE forum = $1 LIMIT 1");
        if db.row(&sql, args![forum])?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks that something may be written in a forum: it exists, or its name is one that a forum may have.
pub(super) fn check(db: &mut Db, forum: &str) -> Result<(), ForumError> {
    match exists(db, forum)? {
        true => Ok(()),
        false => check_new(forum),
    }
}

impl ForumStore {
    /// Checks that a forum exists.
    ///
    /// # Errors
    /// [`ForumError::NoForum`] if it does not; also if the database fails.
    pub fn check_forum(&mut self, forum: &str) -> Result<(), ForumError> {
        if exists(&mut self.db, forum)? {
            return Ok(());
        }
        let forums = self.forums()?.into_iter().map(|(name, _)| name);
        let near = forums
            .chain([MAIN.to_owned()])
            .map(|name| (strsim::damerau_levenshtein(forum, &name), name))
            .filter(|(distance, _)| *distance <= NEAR)
            .min();
        Err(ForumError::NoForum {
            name: clean_line(forum, NAME_MAX),
            near: near.map(|(_, name)| clean_line(&name, NAME_MAX)),
        })
    }
}
