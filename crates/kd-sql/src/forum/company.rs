//! Notes, profiles, mentions and charters.

use super::ForumStore;
use super::db::{Db, args, first_int, first_text};
use super::error::ForumError;
use jiff::Timestamp;
use kd_forum::company::{self, Mention, Remember};
use kd_forum::order::Order;

/// Maximum characters of an excerpt.
const EXCERPT: usize = 200;

/// A table of texts, one per name of a forum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    Notes,
    Profiles,
}

impl Texts {
    fn table(self) -> &'static str {
        match self {
            Self::Notes => "notes",
            Self::Profiles => "profiles",
        }
    }
}

pub(super) fn get(db: &mut Db, of: Texts, forum: &str, name: &str) -> Result<String, ForumError> {
    let sql = format!(
        "SELECT body FROM {} WHERE forum = $1 AND name = $2",
        of.table()
    );
    let row = db.row(&sql, args![forum, name])?;
    Ok(first_text(row)?.unwrap_or_default())
}

/// Stores a text; removes it if it is empty.
pub(super) fn put(
    db: &mut Db,
    of: Texts,
    forum: &str,
    name: &str,
    body: &str,
    now: Timestamp,
) -> Result<(), ForumError> {
    let table = of.table();
    if body.is_empty() {
        let sql = format!("DELETE FROM {table} WHERE forum = $1 AND name = $2");
        db.run(&sql, args![forum, name])?;
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO {table} (forum, name, body, updated_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (forum, name) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at"
    );
    db.run(&sql, args![forum, name, body, now])?;
    Ok(())
}

/// Adds an imported text, unless there is one already.
pub(super) fn put_new(
    db: &mut Db,
    of: Texts,
    forum: &str,
    name: &str,
    body: &str,
    now: Timestamp,
) -> Result<(), ForumError> {
    let sql = format!(
        "INSERT INTO {} (forum, name, body, updated_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        of.table()
    );
    db.run(&sql, args![forum, name, body, now])?;
    Ok(())
}

/// Records the names that a new or edited post mentions. Only names known in the forum count.
pub(super) fn note_mentions(
    db: &mut Db,
    forum: &str,
    post: i64,
    author: &str,
    body: &str,
) -> Result<(), ForumError> {
    let names = company::mentions(body);
    let sql = "SELECT name FROM mentions WHERE post_id = $1 AND seen_at IS NULL";
    for row in db.rows(sql, args![post])? {
        let name = row.text(0)?;
        if !names.contains(&name) {
            db.run(
                "DELETE FROM mentions WHERE post_id = $1 AND name = $2",
                args![post, name],
            )?;
        }
    }
    for name in names.iter().filter(|name| *name != author) {
        db.run(
            "INSERT INTO mentions (forum, name, post_id) SELECT $1, $2, CAST($3 AS BIGINT) \
             WHERE EXISTS (SELECT 1 FROM members WHERE forum = $1 AND name = $2) \
             OR EXISTS (SELECT 1 FROM agents WHERE name = $2) ON CONFLICT DO NOTHING",
            args![forum, name.as_str(), post],
        )?;
    }
    Ok(())
}

/// Marks mentions as seen: a name has read a thread up to a post.
pub(super) fn saw_mentions(
    db: &mut Db,
    name: &str,
    thread: i64,
    post: i64,
    now: Timestamp,
) -> Result<(), ForumError> {
    db.run(
        "UPDATE mentions SET seen_at = $1 WHERE name = $2 AND seen_at IS NULL AND post_id <= $3 \
         AND post_id IN (SELECT id FROM posts WHERE thread_id = $4)",
        args![now, name, post, thread],
    )?;
    Ok(())
}

/// Returns the charter of a forum; empty if there is none.
pub(super) fn charter(db: &mut Db, forum: &str) -> Result<String, ForumError> {
    let row = db.row("SELECT body FROM charters WHERE forum = $1", args![forum])?;
    Ok(first_text(row)?.unwrap_or_default())
}

/// Stores a charter; an empty text removes it.
///
/// # Errors
/// It is too long, or the database fails.
pub(super) fn put_charter(
    db: &mut Db,
    forum: &str,
    text: &str,
    now: Timestamp,
) -> Result<(), ForumError> {
    let checked = Order::charter(forum, text)?;
    if checked.state.is_empty() {
        db.run("DELETE FROM charters WHERE forum = $1", args![forum])?;
        return Ok(());
    }
    db.run(
        "INSERT INTO charters (forum, body, updated_at) VALUES ($1, $2, $3) \
         ON CONFLICT (forum) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at",
        args![forum, checked.state, now],
    )?;
    Ok(())
}

impl ForumStore {
    /// Returns an agent's notes to itself; empty if there are none.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn notes(&mut self, forum: &str, name: &str) -> Result<String, ForumError> {
        // Notes of a foreign store were written by someone else.
        if self.is_foreign() {
            return Ok(String::new());
        }
        get(&mut self.db, Texts::Notes, forum, name)
    }

    /// Writes notes; returns the new text.
    ///
    /// # Errors
    /// They are too long, or the database fails.
    pub fn remember(
        &mut self,
        forum: &str,
        name: &str,
        how: Remember,
        text: &str,
        now: Timestamp,
    ) -> Result<String, ForumError> {
        let is_foreign = self.is_foreign();
        self.db.whole(|db| {
            let old = match is_foreign {
                true => String::new(),
                false => get(db, Texts::Notes, forum, name)?,
            };
            let notes = how.apply(&old, text)?;
            put(db, Texts::Notes, forum, name, &notes, now)?;
            Ok(notes)
        })
    }

    /// Returns a member's profile; empty if there is none.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn profile(&mut self, forum: &str, name: &str) -> Result<String, ForumError> {
        get(&mut self.db, Texts::Profiles, forum, name)
    }

    /// Returns the mentions of a name that it has not seen, the newest first, and their total number.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn mentions(
        &mut self,
        forum: &str,
        name: &str,
        limit: i64,
    ) -> Result<(Vec<Mention>, i64), ForumError> {
        let open = "FROM mentions m JOIN posts p ON p.id = m.post_id JOIN threads t ON t.id = p.thread_id \
             WHERE m.forum = $1 AND m.name = $2 AND m.seen_at IS NULL AND t.forum = $1 AND p.deleted_at IS NULL AND p.hidden_at IS NULL \
             AND t.deleted_at IS NULL AND t.hidden_at IS NULL";
        let sql = format!(
            "SELECT t.id, t.title, p.id, p.author, SUBSTR(p.body, 1, {EXCERPT}) {open} ORDER BY p.id DESC LIMIT $3"
        );
        let rows = self.db.rows(&sql, args![forum, name, limit])?;
        let shown = rows.iter().map(|row| {
            Ok(Mention {
                thread_id: row.int(0)?,
                title: row.line(1)?,
                post_id: row.int(2)?,
                author: row.line(3)?,
                excerpt: row.text(4)?,
            })
        });
        let shown = shown.collect::<Result<Vec<_>, ForumError>>()?;
        let all = self
            .db
            .row(&format!("SELECT COUNT(*) {open}"), args![forum, name])?;
        Ok((shown, first_int(all)?.unwrap_or(0)))
    }

    /// Marks these mentions as seen by a name.
    ///
    /// # Errors
    /// If the database fails.
    pub fn saw_mentions(
        &mut self,
        name: &str,
        posts: &[i64],
        now: Timestamp,
    ) -> Result<(), ForumError> {
        self.db.whole(|db| {
            posts.iter().try_for_each(|post| {
                db.run(
                    "UPDATE mentions SET seen_at = $1 WHERE name = $2 AND post_id = $3 AND seen_at IS NULL",
                    args![now, name, *post],
                )
                .map(|_| ())
            })
        })
    }

    /// Returns a number that changes when there is something new to a name: a post or a mention.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn news_mark(&mut self, forum: &str, name: &str) -> Result<(i64, i64), ForumError> {
        let last = self.db.row(
            "SELECT last_post_id FROM threads WHERE forum = $1 ORDER BY last_post_id DESC LIMIT 1",
            args![forum],
        )?;
        let mention = self.db.row(
            "SELECT MAX(post_id) FROM mentions WHERE forum = $1 AND name = $2 AND seen_at IS NULL",
            args![forum, name],
        )?;
        Ok((
            first_int(last)?.unwrap_or(0),
            first_int(mention)?.unwrap_or(0),
        ))
    }

    /// Returns the charter of a forum, for its agents. Empty if there is none, and in a foreign store.
    ///
    /// # Errors
    /// If the database fails or is damaged.
    pub fn charter(&mut self, forum: &str) -> Result<String, ForumError> {
        if self.is_foreign() {
            return Ok(String::new());
        }
        charter(&mut self.db, forum)
    }
}
